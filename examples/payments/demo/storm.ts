import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

/** One payment a customer wants to make, and what became of it. */
export interface Payment {
  readonly key: string;
  readonly amount: number;
  /** Distinct answers to the honest requests; exactly one in the end. */
  readonly answers: Set<string>;
  /** When the first answer came, by the monotonic clock. */
  answeredAtMs: number | null;
}

/** What the clients saw. */
export interface StormCounts {
  /** Requests sent, retries included. */
  requests: number;
  /** Payments with an answer. */
  answered: number;
  /** Answers that were replays. */
  replays: number;
  /** Of those, duplicates that were sent while the payment was still running. */
  waits: number;
  /** Requests told to come back with the same key. */
  comeBacks: number;
  /** Connections that broke. */
  broken: number;
  /** Changed payloads refused with 422. */
  mismatches: number;
  /** Answers that should not exist. */
  surprises: string[];
}

/** How the storm is made. */
export interface StormOptions {
  readonly payments: number;
  /** Every payment is sent so many times at once. */
  readonly copies: number;
  /** One payment in so many is also sent with a changed payload. */
  readonly changedEvery: number;
  /** Payments in flight at once. */
  readonly parallel: number;
  readonly token: string;
  /** Where the API answers now; empty while it is down. */
  readonly api: () => string;
}

/** A storm in progress. */
export interface Storm {
  readonly payments: readonly Payment[];
  readonly counts: StormCounts;
  /** Resolves when every request has its final answer. */
  readonly over: Promise<void>;
}

/** Long: on a busy machine two kills, each with a lease to lapse, take a minute. */
const GIVE_UP_MS = 180_000;

/** Sends every payment several times at once. Clients behave: they retry with the same key, as long as they are told to. */
export function startStorm(options: StormOptions): Storm {
  const payments = Array.from({ length: options.payments }, (_, index): Payment => {
    return { key: randomUUID(), amount: 100 + index, answers: new Set(), answeredAtMs: null };
  });
  const counts: StormCounts = {
    requests: 0,
    answered: 0,
    replays: 0,
    waits: 0,
    comeBacks: 0,
    broken: 0,
    mismatches: 0,
    surprises: [],
  };
  const queue = payments.entries();
  const worker = async () => {
    for (const [index, payment] of queue) {
      const copies = Array.from({ length: options.copies }, () => payHonestly(options, counts, payment));
      const changed = index % options.changedEvery === 0 ? payDishonestly(options, counts, payment) : undefined;
      await Promise.all([...copies, changed]);
    }
  };
  const over = Promise.all(Array.from({ length: options.parallel }, worker)).then(() => undefined);
  return { payments, counts, over };
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly isReplay: boolean;
  readonly retryAfterMs: number;
  readonly sentAtMs: number;
}

async function payHonestly(options: StormOptions, counts: StormCounts, payment: Payment): Promise<void> {
  const reply = await untilFinal(options, counts, payment.key, payment.amount);
  if (reply === null) return;
  if (reply.status !== 201) counts.surprises.push(`an honest request was answered ${reply.status}`);
  payment.answers.add(`${reply.status} ${reply.text}`);
  if (reply.isReplay) counts.replays++;
  if (reply.isReplay && (payment.answeredAtMs === null || reply.sentAtMs < payment.answeredAtMs)) counts.waits++;
  if (payment.answeredAtMs !== null) return;
  payment.answeredAtMs = performance.now();
  counts.answered++;
}

/** The same key with another amount, once the key is certainly taken: must be refused, whatever the payment's state. */
async function payDishonestly(options: StormOptions, counts: StormCounts, payment: Payment): Promise<void> {
  const deadline = performance.now() + GIVE_UP_MS;
  while (payment.answeredAtMs === null && performance.now() < deadline) await sleep(20);
  const reply = await untilFinal(options, counts, payment.key, payment.amount + 1);
  if (reply?.status === 422) counts.mismatches++;
  else if (reply !== null) counts.surprises.push(`a changed payload was answered ${reply.status}`);
}

/** Retries with the same key until there is a final answer. */
async function untilFinal(options: StormOptions, counts: StormCounts, key: string, amount: number) {
  const deadline = performance.now() + GIVE_UP_MS;
  for (let tried = 0; performance.now() < deadline; tried++) {
    const isDown = options.api() === "";
    const reply = isDown ? null : await pay(options, counts, key, amount);
    const isFinal = reply !== null && reply.status !== 409 && reply.status < 500;
    if (isFinal) return reply;
    if (reply !== null) counts.comeBacks++;
    else if (!isDown) counts.broken++;
    const pauseMs = Math.min(reply?.retryAfterMs ?? 50 * 2 ** tried, 1_000);
    await sleep(pauseMs / 2 + (pauseMs / 2) * Math.random());
  }
  counts.surprises.push("a request never got a final answer");
  return null;
}

async function pay(
  { api, token }: StormOptions,
  counts: StormCounts,
  key: string,
  amount: number,
): Promise<Reply | null> {
  const sentAtMs = performance.now();
  counts.requests++;
  try {
    const response = await fetch(`${api()}/v1/charges`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "idempotency-key": key, "content-type": "application/json" },
      body: JSON.stringify({ amount_minor: amount, currency: "EUR", source: "tok_visa" }),
    });
    const text = await response.text();
    const isReplay = response.headers.get("idempotent-replayed") === "true";
    const retryAfterMs = Number(response.headers.get("retry-after") ?? "1") * 1_000;
    return { status: response.status, text, isReplay, retryAfterMs, sentAtMs };
  } catch {
    return null;
  }
}
