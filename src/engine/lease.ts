import type { Clock } from "../core/clock.ts";
import type { Store } from "../core/store.ts";

/** Raised inside an attempt that no longer owns its entry, or ran out of time. The engine turns it into a result. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";

  constructor(why: string) {
    super(`The operation lost its lease (${why}). What was committed before is kept; retry with the same key.`);
  }
}

/** Ownership of one entry by one attempt. */
export interface Lease {
  readonly id: Uint8Array;
  readonly fence: Uint8Array;
  /** Aborts when the lease is lost; the reason is a `LeaseLost`. */
  readonly signal: AbortSignal;
  /** How long the attempt may take in all, in milliseconds. */
  readonly maxDurationMs: number;
  /** Tested directly before every phase, call and answer: raises `LeaseLost` once the local deadline has passed. */
  check(): void;
  /** Gives the lease up for this attempt, for good. */
  lose(why: string): void;
  /** Ends renewal; the attempt is over. */
  stop(): void;
}

/** What keeping a lease takes. */
export interface LeaseTerms {
  readonly store: Store<unknown>;
  readonly clock: Clock;
  readonly id: Uint8Array;
  readonly fence: Uint8Array;
  readonly leaseMs: number;
  readonly maxDurationMs: number;
  /** Monotonic time directly before the claim was sent: the database began to count no earlier. */
  readonly claimSentAtMs: number;
}

/**
 * How long a lease is: the set length where it can be renewed, the whole duration where it cannot (one connection only).
 */
export function leaseLength(store: Store<unknown>, leaseMs: number, maxDurationMs: number): number {
  return store.traits.renews === false ? Math.max(leaseMs, maxDurationMs) : leaseMs;
}

const marginOf = (lengthMs: number): number => Math.min(lengthMs / 10, 2_000);

/**
 * The lease of an attempt whose host ends it after `maxDurationMs`: so much longer that the local deadline is that end, and
 * no more, because the next attempt has to wait for it.
 */
export function leaseFor(maxDurationMs: number): number {
  return Math.ceil(Math.min(maxDurationMs / 0.9, maxDurationMs + 2_000));
}

/**
 * Keeps a lease: renews it every third of its length until `maxDurationMs`, never past that. A renewal that matches no row loses it at
 * once; an error does not, but the local deadline (counted from *before* the last successful renewal was sent, less a
 * margin) does. That way one second without a database kills nothing, and a paused process never believes too long.
 */
export function keepLease(terms: LeaseTerms): Lease {
  const { clock, store } = terms;
  const length = leaseLength(store, terms.leaseMs, terms.maxDurationMs);
  const margin = marginOf(length);
  const endAtMs = terms.claimSentAtMs + terms.maxDurationMs;
  const controller = new AbortController();
  let deadlineAtMs = Math.min(terms.claimSentAtMs + length - margin, endAtMs);
  let timers: (() => void)[] = [];
  const stop = () => {
    for (const cancel of timers) cancel();
    timers = [];
  };
  const lose = (why: string) => {
    stop();
    if (!controller.signal.aborted) controller.abort(new LeaseLost(why));
  };
  const check = () => {
    if (!controller.signal.aborted && clock.monotonicMs() >= deadlineAtMs) lose("its time ran out");
    controller.signal.throwIfAborted();
  };
  const renew = async () => {
    const sentAtMs = clock.monotonicMs();
    if (sentAtMs >= deadlineAtMs) return lose("its time ran out");
    // Its host may end the process then, and an owner that is gone must not keep others waiting.
    const renewedMs = Math.min(length, Math.ceil(endAtMs - sentAtMs + margin));
    const kept = await store.renew(terms.id, terms.fence, renewedMs).catch(() => undefined);
    if (controller.signal.aborted || timers.length === 0) return;
    if (kept === false) return lose("another attempt took over");
    if (kept) deadlineAtMs = Math.min(sentAtMs + renewedMs - margin, endAtMs);
    // A renewal that failed is tried again soon: there is only one deadline.
    schedule(kept ? length / 3 : length / 10);
  };
  const schedule = (renewInMs: number) => {
    stop();
    const now = clock.monotonicMs();
    timers.push(clock.after(Math.max(0, deadlineAtMs - now), () => lose("its time ran out")));
    if (store.traits.renews !== false) timers.push(clock.after(renewInMs, () => void renew()));
  };
  schedule(length / 3);
  const { id, fence, maxDurationMs } = terms;
  return { id, fence, signal: controller.signal, maxDurationMs, check, lose, stop };
}
