import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, it } from "vitest";
import { behave, type RawAnswer, send } from "./support/client.ts";
import { counted, holdOperations, openSdkWorld, type SdkWorld, untilRunning } from "./support/sdk-cases.ts";

// A create method as Google's guidelines have it, asked over plain HTTP: there is no SDK for an API of one's own.

let world: SdkWorld;

beforeAll(async () => {
  world = await openSdkWorld("google");
});

interface Wanted {
  readonly units?: string | number;
  readonly nanos?: number;
  readonly currencyCode?: string;
  readonly token?: string | null;
  readonly more?: Readonly<Record<string, unknown>>;
}

function create(requestId: string | null, { token = "sk_test_acme", more = {}, ...wanted }: Wanted = {}) {
  const amount = { currencyCode: "EUR", units: "19", nanos: 990_000_000, ...wanted };
  const query = requestId === null ? "" : `?requestId=${requestId}`;
  const url = `http://127.0.0.1:${world.proxy.port}/v1beta/customers/cus_1/invoices${query}`;
  return send("POST", url, { token, body: { amount, labels: { order: "7" }, ...more } });
}

/** What AIP-194 has a client do: the same request again while it is UNAVAILABLE. */
async function again(ask: () => Promise<RawAnswer>): Promise<RawAnswer> {
  for (let attempts = 0; attempts < 300; attempts++) {
    const answer = await ask().catch(() => null);
    if (answer !== null && answer.json().error?.status !== "UNAVAILABLE") return answer;
    await sleep(100);
  }
  throw new Error("There was never a final answer.");
}

const createAgain = (requestId: string) => again(() => create(requestId));

const INVOICE = {
  name: expect.stringMatching(/^customers\/cus_1\/invoices\/[0-9a-f]{32}$/),
  state: "DRAFT",
  amount: { currencyCode: "EUR", units: "19", nanos: 990_000_000 },
  labels: { order: "7" },
  createTime: expect.any(String),
};

const status = (answer: RawAnswer) => answer.json().error.status;

it("first call and duplicate: one invoice, the same bytes", async () => {
  const id = randomUUID();
  const { given, executions } = await counted(world, async () => [await create(id), await create(id)]);
  expect(given[0]?.status).toBe(200);
  expect(given[0]?.json()).toEqual(INVOICE);
  expect(given[1]?.bytes).toEqual(given[0]?.bytes);
  expect(executions).toBe(1);
});

it.each(["before", "after"] as const)("connection cut %s the work: the client's retry does it once", async (cut) => {
  world.proxy.plan({ cut });
  const { given, executions, attempts } = await counted(world, () => createAgain(randomUUID()));
  expect(given.json()).toEqual(INVOICE);
  expect([attempts.length, executions]).toEqual([2, 1]);
});

it("same id, other content: INVALID_ARGUMENT that names the field, and the first stays", async () => {
  const id = randomUUID();
  const first = await create(id);
  const { given, executions } = await counted(world, () => create(id, { units: "20" }));
  expect(given.status).toBe(400);
  expect(given.json().error).toMatchObject({
    code: 400,
    status: "INVALID_ARGUMENT",
    details: [{ reason: "IDEMPOTENCY_PAYLOAD_MISMATCH" }, { fieldViolations: [{ field: "request_id" }] }],
  });
  expect(executions).toBe(0);
  expect((await create(id)).bytes).toEqual(first.bytes);
});

it("duplicate of a first that runs for long: UNAVAILABLE with a time to come back, then the first one's answer", async () => {
  const id = randomUUID();
  const { given, executions } = await counted(world, async () => {
    const held = await holdOperations(world);
    const first = create(id);
    await untilRunning(world);
    const early = await create(id).finally(held.release);
    return { early, later: await createAgain(id), first: await first };
  });
  expect([given.early.status, given.early.headers["retry-after"]]).toEqual([503, "1"]);
  expect(given.early.json().error).toMatchObject({ status: "UNAVAILABLE", details: [{}, { retryDelay: "1s" }] });
  expect(given.later.bytes).toEqual(given.first.bytes);
  expect(executions).toBe(1);
});

it("store down: UNAVAILABLE and nothing run; the same id goes through when it is back", async () => {
  const id = randomUUID();
  world.database.down();
  const { given, executions } = await counted(world, async () => {
    const down = await create(id).finally(world.database.up);
    return { down, later: await createAgain(id) };
  });
  expect([given.down.status, status(given.down)]).toEqual([503, "UNAVAILABLE"]);
  expect(given.later.json()).toEqual(INVOICE);
  expect(executions).toBe(1);
});

it("a fault of the handler's own is UNAVAILABLE, and the id may try again", async () => {
  const id = randomUUID();
  const { given, executions } = await counted(world, async () => {
    await world.lab.sql("ALTER TABLE invoices RENAME TO invoices_away");
    const fault = await create(id);
    await world.lab.sql("ALTER TABLE invoices_away RENAME TO invoices");
    return { fault, later: await createAgain(id) };
  });
  expect([given.fault.status, status(given.fault)]).toEqual([503, "UNAVAILABLE"]);
  expect(given.later.json()).toEqual(INVOICE);
  expect(executions).toBe(1);
});

it("a failed operation is no answer to keep: the same id runs again, at the provider too", async () => {
  const id = randomUUID();
  const charge = () =>
    send("POST", `${world.api.url}/v1/charges?requestId=${id}`, {
      body: { amount_minor: 4_711, currency: "EUR", source: "tok_declined" },
    });
  const { given, effects } = await counted(world, async () => [await charge(), await charge()]);
  expect(given.map(({ status }) => status)).toEqual([402, 402]);
  expect(effects).toMatchObject({ charges: 2, authorizations: 2, captures: 0 });
});

it("money is exact in both directions, and what is no money is refused", async () => {
  const amountOf = async (wanted: Wanted) => (await create(randomUUID(), wanted)).json().amount;
  expect(await amountOf({ units: "90071992547409931", nanos: 10_000_000 })).toEqual({
    currencyCode: "EUR",
    units: "90071992547409931",
    nanos: 10_000_000,
  });
  expect(await amountOf({ units: "5", nanos: 0, currencyCode: "JPY" })).toEqual({ currencyCode: "JPY", units: "5" });
  const { given, executions } = await counted(world, () =>
    Promise.all([
      create(randomUUID(), { units: 19 }),
      create(randomUUID(), { units: "-19" }),
      create(randomUUID(), { nanos: 1 }),
      create(randomUUID(), { units: "5", nanos: 500_000_000, currencyCode: "JPY" }),
      create(randomUUID(), { more: { unknown: true } }),
    ]),
  );
  expect(given.map(status)).toEqual(Array.from({ length: 5 }, () => "INVALID_ARGUMENT"));
  expect(executions).toBe(0);
});

it("who may not ask hears UNAUTHENTICATED; without an id every request is its own", async () => {
  const { given, executions } = await counted(world, async () => [await create(null), await create(null)]);
  expect(given[0]?.json().name).not.toBe(given[1]?.json().name);
  expect(executions).toBe(2);
  for (const token of [null, "sk_test_nobody"]) {
    const answer = await create(randomUUID(), { token });
    expect([answer.status, status(answer)]).toEqual([401, "UNAUTHENTICATED"]);
  }
});

it("a provider that is down leaves a charge open: UNAVAILABLE, and the same id learns it later", async () => {
  const id = randomUUID();
  const charge = () =>
    send("POST", `${world.api.url}/v1/charges?requestId=${id}`, {
      body: { amount_minor: 4_712, currency: "EUR", source: "tok_visa" },
    });
  const { given, effects } = await counted(world, async () => {
    await behave(world.lab.psp.url, { down: true });
    const open = await charge();
    await behave(world.lab.psp.url, { down: false });
    return { open, later: await again(charge) };
  });
  expect([given.open.status, status(given.open)]).toEqual([503, "UNAVAILABLE"]);
  expect(given.later.status).toBe(201);
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 1 });
});

it("serves the common routes too: the id in query or body, refusals in Google's words", async () => {
  const ask = async (requestId: string, amount_minor: number) => {
    const body = { requestId, customer_id: "cus_1", amount_minor, currency: "EUR" };
    const answer = await send("POST", `${world.api.url}/v1/invoices`, { body });
    return answer.json().error?.status ?? answer.status;
  };
  const id = randomUUID();
  const { given, executions } = await counted(world, async () => [
    await ask(id, 1),
    await ask(id, 1),
    await ask(id, 2),
    await ask("7", 1),
  ]);
  expect(given).toEqual([201, 201, "INVALID_ARGUMENT", "INVALID_ARGUMENT"]);
  expect(executions).toBe(1);
});
