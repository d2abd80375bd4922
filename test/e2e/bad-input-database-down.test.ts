import { beforeAll, expect, it } from "vitest";
import { atEnd, createDatabase, startTestServer, type TestServer } from "../support/postgres.ts";
import { post, type RawAnswer, send } from "./support/client.ts";
import { type Lab, openLab, type Program } from "./support/crash-lab.ts";
import { effectsAtProvider } from "./support/crash-provider.ts";
import { chargeOf, invoiceOf, rowsOf, type Submission, submit, submitUntilFinal } from "./support/crash-requests.ts";
import { eventually } from "./support/example.ts";

// The database stops while the API serves: 503 with Retry-After within a bound, no crash, no hang, and everything goes
// on when it is back. A server of this file's own, with its writes on the disk.

const BOUND_MS = 25_000;

let server: TestServer;
let lab: Lab;
let api: Program;
let chargeId: string;

beforeAll(async () => {
  server = await startTestServer({ fsync: true });
  atEnd(() => server.close());
  const { url } = await createDatabase({ server, migrated: false });
  // Half of the retention is the longest run of a refund; after that its outcome can be reconciled.
  lab = await openLab({ databaseUrl: url, env: { ONCEKEY_LEASE_MS: "1000", ONCEKEY_RETENTION_MS: "60000" } });
  api = await lab.api();
  chargeId = (await submit(api, chargeOf("charge"))).json().id;
});

const refundOf = (key: string): Submission => ({
  path: "/v1/refunds",
  key,
  body: { charge_id: chargeId, amount_minor: 1 },
});

async function within<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${BOUND_MS} ms`)), BOUND_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function expectUnavailable(answer: RawAnswer): void {
  expect(`${answer.status} ${answer.text}`).toMatch(/^503 .*"idempotency_store_unavailable"/);
  expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
  expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  expect(answer.json()).toMatchObject({ retry: "same_key", state: "none" });
}

async function sleepersInDatabase(): Promise<number> {
  const [row] = await lab.sql<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND state = 'idle in transaction'`,
  );
  return row?.count ?? 0;
}

it("requests that were running get an answer, new ones get 503, and all of them succeed when it is back", async () => {
  const known = invoiceOf("known");
  const first = await submit(api, known);
  expect(first.status).toBe(201);

  const charge = chargeOf("running-charge");
  const running: readonly Submission[] = [invoiceOf("running-invoice"), charge, refundOf("running-refund")];
  const slow = { headers: { "x-lab-delay-ms": "4000" } };
  const answering = running.map((submission) => within(submit(api, submission, slow)));
  await eventually("all three are inside their transactions", 20_000, async () => (await sleepersInDatabase()) === 3);
  await server.stop("immediate");

  const fresh = ["a", "b", "c"].flatMap((name): Submission[] => [
    invoiceOf(`down-invoice-${name}`),
    chargeOf(`down-charge-${name}`),
    refundOf(`down-refund-${name}`),
  ]);
  const refused = await Promise.all([...fresh, known].map((submission) => within(submit(api, submission))));
  for (const answer of refused) expectUnavailable(answer);
  const list = await within(send("GET", `${api.url}/v1/invoices`));
  expect(list.status).toBe(500);
  // Refusals that need no store are the same as ever.
  expect((await within(post(`${api.url}/v1/invoices`, "a,b", {}))).status).toBe(400);
  expect((await within(submit(api, known, { token: "sk_test_nobody" }))).status).toBe(401);
  for (const answer of await Promise.all(answering)) {
    expect(answer.status).toBeGreaterThanOrEqual(500);
    expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
  }

  await server.start();
  expect((await submitUntilFinal(api, known)).bytes.equals(first.bytes)).toBe(true);
  for (const submission of [...fresh, ...running.filter(({ path }) => path !== "/v1/refunds")]) {
    expect((await submitUntilFinal(api, submission)).status).toBe(201);
  }
  expect(await rowsOf(lab, "invoices", "running-invoice")).toBe(1);
  expect(await rowsOf(lab, "charges", charge.key)).toBe(1);
  expect(await effectsAtProvider(lab.psp, charge.amount)).toEqual({ authorizations: 1, captures: 1 });
  for (const { path, key } of fresh) {
    expect(await rowsOf(lab, path.slice("/v1/".length) as "invoices", key)).toBe(1);
  }

  // The refund's handler may still run, for all that anybody knows; it is made at most once.
  const refund = await submit(api, refundOf("running-refund"));
  expect([201, 409]).toContain(refund.status);
  expect(await rowsOf(lab, "refunds", "running-refund")).toBe(refund.status === 201 ? 1 : 0);
  expect(await within(Promise.race([api.ended, Promise.resolve("alive")]))).toBe("alive");
});

it("an API that starts while the database is down says so and ends", async () => {
  await server.stop("fast");
  await expect(lab.api()).rejects.toThrow(/Not ready \(1\)/);
  await server.start();
  const late = await lab.api();
  expect((await submit(late, invoiceOf("after-all"))).status).toBe(201);
});
