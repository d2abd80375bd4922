import { beforeAll, describe, expect, it } from "vitest";
import { behave, post, type RawAnswer } from "./support/client.ts";
import { type Lab, openLab, type Program } from "./support/crash-lab.ts";
import { effectsAtProvider } from "./support/crash-provider.ts";
import {
  chargeOf,
  invoiceOf,
  rowsOf,
  type Submission,
  submit,
  submitUntilFinal,
  tracesOf,
} from "./support/crash-requests.ts";
import { eventually } from "./support/example.ts";

// A process that is stopped (SIGSTOP) past its lease and continued after another one took over: it must not commit, and
// not call anybody, on the strength of what it believed before.

let lab: Lab;

beforeAll(async () => {
  lab = await openLab({ env: { ONCEKEY_LEASE_MS: "1000" } });
});

interface Zombie {
  /** To be stopped. */
  readonly api: Program;
  readonly submission: Submission;
  readonly headers?: Readonly<Record<string, string>>;
  /** SQL that gives a row once the request is where it is to be stopped. */
  readonly isThere: string;
  /** Finishes the work while the zombie is stopped. */
  readonly successor: Program;
}

/** Stops a request midway, lets the successor finish it, continues the zombie and waits until it has ended by itself. */
async function overtake({ api, submission, headers = {}, isThere, successor }: Zombie) {
  const answerOfZombie = submit(api, submission, { headers });
  answerOfZombie.catch(() => undefined);
  await eventually("the request is midway", 20_000, async () => (await lab.sql(isThere, [submission.key])).length > 0);
  api.signal("SIGSTOP");
  const answer = await submitUntilFinal(successor, submission);
  api.signal("SIGCONT");
  const late = await answerOfZombie;
  // It drains: whatever it still had in hand is done, or given up, when it has ended.
  api.signal("SIGTERM");
  expect(await api.ended).toBe("0");
  return { answer, late };
}

function expectLeaseLost(late: RawAnswer): void {
  expect(late.status).toBe(503);
  expect(late.headers["content-type"]).toMatch(/^application\/problem\+json/);
  expect(Number(late.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  expect(late.json()).toMatchObject({ code: "idempotency_lease_lost", retry: "same_key", state: "in_progress" });
}

const pair = (env: Readonly<Record<string, string>> = {}) => Promise.all([lab.api(env), lab.api(env)]);

const CLAIMED = "SELECT FROM oncekey.entry WHERE key = $1 AND state = 'in_progress' AND recovery_point IS NULL";
const CALLING = "SELECT FROM oncekey.entry WHERE key = $1 AND recovery_point = 'charge_created'";

const SLEEPS = [
  { where: "inside a phase", form: "dedupes", delayMs: 3_000, latencyMs: 0, isThere: CLAIMED },
  { where: "inside a call that is deduped", form: "dedupes", delayMs: 0, latencyMs: 1_500, isThere: CALLING },
  { where: "inside a call that is cancelled", form: "find_cancel", delayMs: 0, latencyMs: 1_500, isThere: CALLING },
];

describe("a charge whose process slept past its lease", () => {
  for (const { where, form, delayMs, latencyMs, isThere } of SLEEPS) {
    it(`${where} is finished by another, and the sleeper commits nothing`, async () => {
      const [api, successor] = await pair({ ONCEKEY_PSP_RECOVER: form });
      const submission = chargeOf(`zombie-${form}-${delayMs}`);
      await behave(lab.psp.url, { latency_ms: latencyMs, dedupe: form === "dedupes" });
      const headers = { "x-lab-delay-ms": String(delayMs) };
      const { answer, late } = await overtake({ api, submission, headers, isThere, successor });
      await behave(lab.psp.url, { latency_ms: 0 });
      expect(answer.status).toBe(201);
      expectLeaseLost(late);
      expect(await rowsOf(lab, "charges", submission.key)).toBe(1);
      expect(await effectsAtProvider(lab.psp, submission.amount)).toEqual({ authorizations: 1, captures: 1 });
      expect(await tracesOf(lab, submission)).toMatchObject({ entries: [{ state: "succeeded" }], messages: 1 });
      expect((await submit(successor, submission)).bytes.equals(answer.bytes)).toBe(true);
    });
  }
});

// Half of the retention is the longest run of an operation here; the database ends what idles in a transaction longer.
const SHORT = { ONCEKEY_RETENTION_MS: "8000", ONCEKEY_LEASE_MS: "500" };
const DELAY = { "x-lab-delay-ms": "3000" };
const IN_TRANSACTION = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND $1::text <> ''
  AND state = 'idle in transaction' AND state_change < clock_timestamp() - interval '300 ms'`; // the delay, nobody's instant

it("an invoice whose process slept inside the transaction is made by another, once", async () => {
  const [api, successor] = await pair(SHORT);
  const submission = invoiceOf("zombie-invoice");
  const { answer, late } = await overtake({ api, submission, headers: DELAY, isThere: IN_TRANSACTION, successor });
  expect(answer.status).toBe(201);
  expect(late.status).toBe(503);
  expect(await rowsOf(lab, "invoices", submission.key)).toBe(1);
  expect(await tracesOf(lab, submission)).toMatchObject({ entries: [{ state: "succeeded" }], messages: 1 });
});

it("a captured refund whose process slept inside its own transaction is made by another, once", async () => {
  // Oncekey does not reach into a captured handler's transactions: that the database ends those that sleep is up to its
  // operator, and without that the charge's row would stay locked.
  const { pathname } = new URL(lab.databaseUrl);
  await lab.sql(`ALTER DATABASE ${pathname.slice(1)} SET idle_in_transaction_session_timeout = '2500ms'`);
  const [api, successor] = await pair(SHORT);
  const charge = await post(`${successor.url}/v1/charges`, "zombie-charge", chargeOf("zombie-charge").body);
  const refund = { charge_id: charge.json().id, amount_minor: 1 };
  const submission = { path: "/v1/refunds", key: "zombie-refund", body: refund };
  const { answer, late } = await overtake({ api, submission, headers: DELAY, isThere: IN_TRANSACTION, successor });
  expect(answer.status).toBe(201);
  expect(late.status).toBe(503);
  expect(await rowsOf(lab, "refunds", submission.key)).toBe(1);
});
