import { beforeAll, describe, expect, it } from "vitest";
import { type RawAnswer, type Sent, send } from "./support/client.ts";
import { type Lab, openLab, type Program } from "./support/crash-lab.ts";
import { effectsAtProvider } from "./support/crash-provider.ts";
import { chargeOf, invoiceOf, rowsOf, type Submission, submit, tracesOf } from "./support/crash-requests.ts";
import { eventually } from "./support/example.ts";

// Duplicates of one request, on one process and on three: one execution, equal answers. Waiting is generous, because
// what is tested is that all get the answer, not that a busy machine is quick.

const DUPLICATES = 50;

let lab: Lab;
let apis: readonly Program[];

beforeAll(async () => {
  lab = await openLab({ env: { ONCEKEY_WAIT_MS: "40000" } });
  apis = await Promise.all([lab.api(), lab.api(), lab.api()]);
});

const apiAt = (index: number): Program => apis[index % apis.length] as Program;

interface Kind {
  readonly table: "invoices" | "charges" | "refunds";
  /** Makes a submission of this kind under that key. */
  submission(key: string): Promise<Submission & { readonly amount?: number }>;
  /** The same with another amount. */
  changed(submission: Submission): Submission;
}

const withAmount = (submission: Submission): Submission => ({
  ...submission,
  body: { ...(submission.body as object), amount_minor: 2 },
});

const KINDS: readonly Kind[] = [
  { table: "invoices", submission: async (key) => invoiceOf(key), changed: withAmount },
  { table: "charges", submission: async (key) => chargeOf(key), changed: withAmount },
  {
    table: "refunds",
    async submission(key) {
      const charge = await submit(apiAt(0), chargeOf(`charged-for-${key}`));
      return { path: "/v1/refunds", key, body: { charge_id: charge.json().id, amount_minor: 1 } };
    },
    changed: withAmount,
  },
];

const DELAY: Sent = { headers: { "x-lab-delay-ms": "400" } };

function expectOneExecution(answers: readonly RawAnswer[]): void {
  expect([...new Set(answers.map(({ status, text }) => `${status} ${text}`))]).toHaveLength(1);
  expect(answers[0]?.status).toBe(201);
  expect(answers.filter(({ headers }) => headers["idempotent-replayed"] === undefined)).toHaveLength(1);
  expect(new Set(answers.map(({ headers }) => headers.location)).size).toBe(1);
}

function expectMismatch(answer: RawAnswer): void {
  expect(answer.status).toBe(422);
  expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
  expect(answer.headers["idempotent-replayed"]).toBeUndefined();
  expect(answer.json()).toMatchObject({ code: "idempotency_payload_mismatch", retry: "new_key" });
}

async function expectMadeOnce(table: Kind["table"], submission: Submission & { amount?: number }): Promise<void> {
  expect(await rowsOf(lab, table, submission.key)).toBe(1);
  expect((await tracesOf(lab, submission)).entries).toMatchObject([{ state: "succeeded", attempt: 1 }]);
  if (submission.amount === undefined) return;
  expect(await effectsAtProvider(lab.psp, submission.amount)).toEqual({ authorizations: 1, captures: 1 });
}

/** Waits until the first request is midway: an entry, or (transaction) a transaction that holds the key's lock. */
function firstIsRunning(table: Kind["table"], { key }: Submission): Promise<void> {
  const claimed = "SELECT FROM oncekey.entry WHERE key = $1 AND state = 'in_progress'";
  const locked = `SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'
    AND datname = current_database() AND state = 'idle in transaction' AND $1::text <> ''`;
  const sql = table === "invoices" ? locked : claimed;
  return eventually("the first request runs", 20_000, async () => (await lab.sql(sql, [key])).length > 0);
}

describe.each(KINDS)("$table", ({ table, submission: make, changed }) => {
  it(`sent ${DUPLICATES} times at once to one process are made once and answered alike`, async () => {
    const submission = await make(`one-process-${table}`);
    const answers = await Promise.all(Array.from({ length: DUPLICATES }, () => submit(apiAt(0), submission, DELAY)));
    expectOneExecution(answers);
    await expectMadeOnce(table, submission);
  });

  it(`sent ${DUPLICATES} times at once to three processes are made once and answered alike`, async () => {
    const submission = await make(`three-processes-${table}`);
    const answers = await Promise.all(
      Array.from({ length: DUPLICATES }, (_, index) => submit(apiAt(index), submission, DELAY)),
    );
    expectOneExecution(answers);
    await expectMadeOnce(table, submission);
  });

  it("are refused at once with another payload, wherever the first one runs, which is untouched", async () => {
    const submission = await make(`changed-${table}`);
    let finished = false;
    const first = submit(apiAt(0), submission, { headers: { "x-lab-delay-ms": "3000" } }).finally(() => {
      finished = true;
    });
    await firstIsRunning(table, submission);
    const duplicates = Array.from({ length: 6 }, (_, index) => submit(apiAt(index), submission));
    const others = await Promise.all(apis.map((api) => submit(api, changed(submission))));
    expect(finished).toBe(false);
    for (const other of others) expectMismatch(other);
    expectOneExecution([await first, ...(await Promise.all(duplicates))]);
    await expectMadeOnce(table, submission);
    expectMismatch(await submit(apiAt(1), changed(submission)));
  });

  it("with one changed payload among the duplicates: one payload runs, the other is refused", async () => {
    const submission = await make(`mixed-${table}`);
    const other = changed(submission);
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, index) => submit(apiAt(index), index === 11 ? other : submission, DELAY)),
    );
    const refused = answers.filter(({ status }) => status === 422);
    const made = answers.filter(({ status }) => status !== 422);
    for (const answer of refused) expectMismatch(answer);
    // Whichever came first: the odd one out, or all the others.
    expect([1, 23]).toContain(refused.length);
    expectOneExecution(made);
    expect(await rowsOf(lab, table, submission.key)).toBe(1);
  });
});

describe("one key", () => {
  it("is independent under another tenant, another client and another operation", async () => {
    const key = "shared";
    const tokens = ["sk_test_acme", "sk_test_acme_batch", "sk_test_globex"];
    const submissions = [invoiceOf(key), chargeOf(key)];
    const answers = await Promise.all(
      submissions.flatMap((submission) =>
        tokens.map((token, index) => submit(apiAt(index), submission, { token, ...DELAY })),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 201));
    expect(new Set(answers.map((answer) => answer.json().id)).size).toBe(6);
    expect(answers.every(({ headers }) => headers["idempotent-replayed"] === undefined)).toBe(true);
    expect(await rowsOf(lab, "invoices", key)).toBe(3);
    expect(await rowsOf(lab, "charges", key)).toBe(3);
  });

  it("of a revoked caller gets 401 on every process, never the stored answer", async () => {
    const submission = invoiceOf("revoked");
    const token = "sk_test_globex";
    const first = await submit(apiAt(0), submission, { token });
    expect(first.status).toBe(201);
    await send("POST", `${apiAt(0).url}/lab/revoke`, { token: null, body: { token } });
    for (const api of apis) {
      const refused = await submit(api, submission, { token });
      expect(refused.status).toBe(401);
      expect(refused.headers["idempotent-replayed"]).toBeUndefined();
      expect(refused.text).not.toContain(first.json().id);
    }
    await send("POST", `${apiAt(0).url}/lab/restore`, { token: null, body: { token } });
    const again = await submit(apiAt(1), submission, { token });
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect(again.bytes.equals(first.bytes)).toBe(true);
  });

  it("still gets the first answer after its resource has changed", async () => {
    const submission = invoiceOf("changed-since");
    const first = await submit(apiAt(0), submission);
    await lab.sql("UPDATE invoices SET status = 'paid' WHERE id = $1", [first.json().id]);
    const read = await send("GET", `${apiAt(1).url}${first.headers.location}`);
    expect(read.json().status).toBe("paid");
    const replay = await submit(apiAt(1), submission);
    expect(replay.json().status).toBe("draft");
    expect(replay.bytes.equals(first.bytes)).toBe(true);
  });
});

describe("after its retention of 2 seconds", () => {
  it.each([
    ["0", "counts as absent"],
    ["1", "is purged"],
  ])("a key (ONCEKEY_WORKER=%s) %s and runs anew, another payload too", async (worker, _what) => {
    const api = await lab.api({ ONCEKEY_RETENTION_MS: "2000", ONCEKEY_WORKER: worker });
    const submission = chargeOf(`retained-${worker}`);
    const first = await submit(api, submission);
    expect(first.status).toBe(201);
    expect(first.headers["idempotency-retention"]).toBe("2");
    await eventually("its retention is over", 20_000, async () => {
      const kept = await lab.sql("SELECT FROM oncekey.entry WHERE key = $1 AND expires_at > clock_timestamp()", [
        submission.key,
      ]);
      const purged = await lab.sql("SELECT FROM oncekey.entry WHERE key = $1", [submission.key]);
      return worker === "0" ? kept.length === 0 : purged.length === 0;
    });
    const anew = await submit(api, withAmount(submission));
    expect(anew.status).toBe(201);
    expect(anew.headers["idempotent-replayed"]).toBeUndefined();
    expect(anew.json().id).not.toBe(first.json().id);
    expect(anew.json().psp_authorization).not.toBe(first.json().psp_authorization);
    expect(await rowsOf(lab, "charges", submission.key)).toBe(2);
  });
});
