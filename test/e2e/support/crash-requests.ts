import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { post, type RawAnswer, type Sent } from "./client.ts";
import type { Lab, Program } from "./crash-lab.ts";

/** One submission: what a client would send again after a crash, unchanged. */
export interface Submission {
  readonly path: string;
  readonly key: string;
  readonly body: unknown;
}

let numbered = 1000;

/** A charge that is told apart from all others by its amount, at the provider too. */
export function chargeOf(key: string): Submission & { readonly amount: number } {
  const amount = numbered++;
  return { path: "/v1/charges", key, amount, body: { amount_minor: amount, currency: "EUR", source: "tok_visa" } };
}

/** An invoice. */
export function invoiceOf(key: string): Submission {
  return { path: "/v1/invoices", key, body: { customer_id: "cus_1", amount_minor: 1999, currency: "EUR" } };
}

/** Sends a submission once. */
export const submit = ({ url }: Program, { path, key, body }: Submission, more: Sent = {}): Promise<RawAnswer> =>
  post(`${url}${path}`, key, body, more);

/** Sends a submission whose process kills itself at that point; the client sees a broken connection. */
export async function submitUntilCrash(api: Program, submission: Submission, point: string): Promise<void> {
  await crashOne(api, () => submission, point, 1);
}

const MOST_TRIES = 5;

/**
 * The same with the first submission whose process gets so far. On a busy machine one may be kept from renewing a short lease
 * and give up before: it has passed nothing, and the next one begins anew under a key of its own.
 */
export async function crashOne<S extends Submission>(
  api: Program,
  make: (tried: number) => S,
  point: string,
  tries = MOST_TRIES,
): Promise<S> {
  for (let tried = 1; ; tried++) {
    const submission = make(tried);
    const answer = await submit(api, submission, { headers: { "x-lab-crash": point } }).catch(() => null);
    if (answer === null) {
      expect(await api.ended).toBe("SIGKILL");
      return submission;
    }
    const lostLease = answer.status === 503 && answer.text.includes("idempotency_lease_lost");
    if (!lostLease || tried >= tries) throw new Error(`${point} was never passed: ${answer.status} ${answer.text}`);
  }
}

const FINAL_LIMIT_MS = 50_000;

/** Whether an answer tells the client to come back with the same key. */
function saysComeBack({ status, headers }: RawAnswer): boolean {
  return (status === 409 || status === 503) && headers["retry-after"] !== undefined;
}

/** What an honest client does: the same request again until the answer is final. */
export async function submitUntilFinal(api: Program, submission: Submission): Promise<RawAnswer> {
  const deadline = Date.now() + FINAL_LIMIT_MS;
  for (;;) {
    const answer = await submit(api, submission);
    if (!saysComeBack(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`No final answer: ${answer.status} ${answer.text}`);
    await sleep(100);
  }
}

/** What a key has left in Oncekey's tables. */
export interface KeyTraces {
  readonly entries: readonly { readonly state: string; readonly attempt: number; readonly reason: string | null }[];
  readonly messages: number;
}

/** Reads them. */
export async function tracesOf(lab: Lab, { key }: Submission): Promise<KeyTraces> {
  const entries = await lab.sql<KeyTraces["entries"][number]>(
    "SELECT state, attempt, reason FROM oncekey.entry WHERE key = $1",
    [key],
  );
  const messages = await lab.sql<{ count: number }>(
    "SELECT count(*)::int AS count FROM oncekey.outbox o JOIN oncekey.entry e ON e.id = o.entry_id WHERE e.key = $1",
    [key],
  );
  return { entries, messages: messages[0]?.count ?? 0 };
}

/** How many rows of a business table a key made. */
export async function rowsOf(lab: Lab, table: "invoices" | "charges" | "refunds", key: string): Promise<number> {
  const found = await lab.sql<{ count: number }>(
    `SELECT count(*)::int AS count FROM ${table} WHERE idempotency_key = $1`,
    [key],
  );
  return found[0]?.count ?? 0;
}
