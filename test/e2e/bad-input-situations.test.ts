import { beforeAll, describe, expect, it } from "vitest";
import { behave, post, type RawAnswer } from "./support/client.ts";
import { type Lab, openLab, type Program } from "./support/crash-lab.ts";
import { effectsAtProvider } from "./support/crash-provider.ts";
import { losingProxy } from "./support/crash-proxy.ts";
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

// The rows of DESIGN §5 from 422 on: what a key's entry, or the store, has to say. The entry that is already there is
// the same before and after, down to the transaction that last wrote it.

let lab: Lab;
let api: Program;

beforeAll(async () => {
  lab = await openLab();
  api = await lab.api({ ONCEKEY_WAIT_MS: "300" });
});

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly retry: "new_key" | "same_key" | "never";
  readonly state: string;
}

function expectRefusal(answer: RawAnswer, { status, code, retry, state }: Refusal): void {
  expect(`${answer.status} ${answer.text}`).toMatch(new RegExp(`^${status} .*"${code}"`));
  expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
  expect(answer.json()).toMatchObject({ status, code, retry, state });
  expect(answer.json().title).toMatch(/\w/);
  expect(answer.json().detail).toMatch(/\w/);
  const waits = retry === "same_key";
  if (waits) expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  else expect(answer.headers["retry-after"]).toBeUndefined();
}

const entryOf = ({ key }: Submission) => lab.sql("SELECT xmin, ctid, e.* FROM oncekey.entry e WHERE key = $1", [key]);

async function leavingEntry<T>(submission: Submission, run: () => Promise<T>): Promise<T> {
  const before = await entryOf(submission);
  expect(before).toHaveLength(1);
  const result = await run();
  expect(await entryOf(submission)).toEqual(before);
  return result;
}

const MISMATCH = { status: 422, code: "idempotency_payload_mismatch", retry: "new_key" } as const;
const changed = (submission: Submission): Submission => ({
  ...submission,
  body: { ...(submission.body as object), amount_minor: 7 },
});

describe("a key that was used for another request", () => {
  it("is refused with 422 and the state of the first one, which is untouched", async () => {
    const good = chargeOf("mismatch-good");
    expect((await submit(api, good)).status).toBe(201);
    const refused = await leavingEntry(good, () => submit(api, changed(good)));
    expectRefusal(refused, { ...MISMATCH, state: "succeeded" });

    const declined = { ...good, key: "mismatch-declined", body: { ...(good.body as object), source: "tok_declined" } };
    expect((await submit(api, declined)).status).toBe(402);
    const refusedToo = await leavingEntry(declined, () => submit(api, changed(declined)));
    expectRefusal(refusedToo, { ...MISMATCH, state: "failed" });
  });
});

describe("a key whose first request is still running", () => {
  it("gets 409 after the wait, and the first answer later", async () => {
    const charge = chargeOf("running");
    await behave(lab.psp.url, { latency_ms: 2_500 });
    const first = submit(api, charge);
    await eventually("the charge is being authorized", 20_000, async () => {
      const there = "SELECT FROM oncekey.entry WHERE key = $1 AND recovery_point = 'charge_created'";
      return (await lab.sql(there, [charge.key])).length > 0;
    });
    const refused = await leavingEntry(charge, () => submit(api, charge));
    await behave(lab.psp.url, { latency_ms: 0 });
    expectRefusal(refused, {
      status: 409,
      code: "idempotency_in_progress",
      retry: "same_key",
      state: "in_progress",
    });
    expect((await submitUntilFinal(api, charge)).bytes.equals((await first).bytes)).toBe(true);
  });
});

describe("a key whose outcome is not known", () => {
  it("gets 409 outcome_unknown and stays as it is", async () => {
    const careful = await lab.api({ ONCEKEY_PSP_RECOVER: "at_most_once" });
    const charge = chargeOf("unknown");
    await behave(lab.psp.url, { drop_next: 1 });
    const unknown = { status: 409, code: "idempotency_outcome_unknown", retry: "same_key", state: "needs_recovery" };
    expectRefusal(await submit(careful, charge), unknown as Refusal);
    expectRefusal(await leavingEntry(charge, () => submit(careful, charge)), unknown as Refusal);
    expectRefusal(await leavingEntry(charge, () => submit(careful, changed(charge))), {
      ...MISMATCH,
      state: "needs_recovery",
    });
    expect(await effectsAtProvider(lab.psp, charge.amount)).toEqual({ authorizations: 1, captures: 0 });
  });
});

describe("a key whose outcome is known but no longer kept", () => {
  it("gets 409 response_unavailable, never another run", async () => {
    const invoice = invoiceOf("gone");
    await submit(api, invoice);
    await lab.sql("UPDATE oncekey.entry SET outcome = NULL, outcome_gone = true WHERE key = $1", [invoice.key]);
    expectRefusal(await leavingEntry(invoice, () => submit(api, invoice)), {
      status: 409,
      code: "idempotency_response_unavailable",
      retry: "never",
      state: "succeeded",
    });
    expect(await rowsOf(lab, "invoices", invoice.key)).toBe(1);
  });
});

describe("a key whose entry a newer version wrote", () => {
  it("gets 503 version_unknown: neither run nor refused as another request", async () => {
    const invoice = invoiceOf("newer");
    await submit(api, invoice);
    await lab.sql(
      "UPDATE oncekey.entry SET fingerprint = set_byte(fingerprint, 0, 99), wire_digest = NULL WHERE key = $1",
      [invoice.key],
    );
    const answer = await leavingEntry(invoice, () => submit(api, invoice));
    expectRefusal(answer, {
      status: 503,
      code: "idempotency_version_unknown",
      retry: "same_key",
      state: "succeeded",
    });
    expect(await rowsOf(lab, "invoices", invoice.key)).toBe(1);
  });
});

describe("a request that outlives its time", () => {
  it("gets 503 lease_lost, and the retry finishes the charge that it began", async () => {
    // Half of the retention is the longest run of an operation.
    const hasty = await lab.api({ ONCEKEY_RETENTION_MS: "4000", ONCEKEY_LEASE_MS: "1000" });
    const charge = chargeOf("too-slow");
    const answer = await submit(hasty, charge, { headers: { "x-lab-delay-ms": "4000" } });
    expectRefusal(answer, {
      status: 503,
      code: "idempotency_lease_lost",
      retry: "same_key",
      state: "in_progress",
    });
    expect((await submitUntilFinal(hasty, charge)).status).toBe(201);
    expect(await rowsOf(lab, "charges", charge.key)).toBe(1);
    expect(await effectsAtProvider(lab.psp, charge.amount)).toEqual({ authorizations: 1, captures: 1 });
  });
});

describe("an invoice whose COMMIT was lost on the way", () => {
  it("gets 503 commit_unknown, and the retry makes it once", async () => {
    const proxy = await losingProxy(lab.databaseUrl);
    const far = await lab.api({ DATABASE_URL: proxy.url });
    const invoice = invoiceOf("commit-lost");
    proxy.loseNextCommit();
    const answer = await submit(far, invoice);
    expectRefusal(answer, {
      status: 503,
      code: "idempotency_commit_unknown",
      retry: "same_key",
      state: "in_progress",
    });
    expect((await submitUntilFinal(far, invoice)).status).toBe(201);
    expect(await rowsOf(lab, "invoices", invoice.key)).toBe(1);
    expect(await tracesOf(lab, invoice)).toMatchObject({ entries: [{ state: "succeeded" }], messages: 1 });
  });
});

describe("transactions that cannot be serialized, however often", () => {
  it("end in 503 contention with nothing stored, and the retry runs", async () => {
    await lab.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = 'serialization_failure'; END $$`);
    const tables = ["invoices", "charges"] as const;
    for (const table of tables) {
      await lab.sql(`CREATE TRIGGER refuse BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse()`);
    }
    const submissions = [invoiceOf("contended-invoice"), chargeOf("contended-charge")];
    for (const submission of submissions) {
      const answer = await submit(api, submission);
      expectRefusal(answer, { status: 503, code: "idempotency_contention", retry: "same_key", state: "none" });
      expect(await entryOf(submission)).toEqual([]);
    }
    for (const table of tables) {
      expect(await rowsOf(lab, table, `contended-${table.slice(0, -1)}`)).toBe(0);
      await lab.sql(`DROP TRIGGER refuse ON ${table}`);
    }
    for (const submission of submissions) expect((await submit(api, submission)).status).toBe(201);
  });
});

describe("a replay", () => {
  it("has the stored status, bytes and allowed headers, and says that it is one", async () => {
    const charge = chargeOf("replayed");
    const first = await submit(api, charge);
    const replay = await leavingEntry(charge, () => submit(api, charge));
    expect(replay.status).toBe(201);
    expect(replay.bytes.equals(first.bytes)).toBe(true);
    expect(first.headers["idempotent-replayed"]).toBeUndefined();
    expect(replay.headers["idempotent-replayed"]).toBe("true");
    for (const name of ["content-type", "location", "idempotency-retention"]) {
      expect(replay.headers[name]).toBe(first.headers[name]);
    }
  });

  it("of a refusal is one too", async () => {
    const body = { amount_minor: 5, currency: "EUR", source: "tok_declined" };
    const first = await post(`${api.url}/v1/charges`, "replayed-decline", body);
    const replay = await post(`${api.url}/v1/charges`, "replayed-decline", body);
    expect([first.status, replay.status]).toEqual([402, 402]);
    expect(replay.headers["idempotent-replayed"]).toBe("true");
    expect(replay.bytes.equals(first.bytes)).toBe(true);
  });
});
