import type { Clock } from "../core/clock.ts";
import type { HeldMessage, OutboxStore } from "../core/outbox.ts";

/** Why a delivery was cut off: it took too long, or another relay may have the message by now. */
export type CutReason = "time_out" | "lease_lost";

/** The reason of a publisher's aborted signal. Whether the message arrived is not known. */
export class DeliveryCut extends Error {
  override readonly name = "DeliveryCut";
  readonly why: CutReason;

  constructor(why: CutReason) {
    super(
      why === "time_out"
        ? "The delivery took too long; the message is delivered again."
        : "The relay lost its lease of the message; another one delivers it.",
    );
    this.why = why;
  }
}

/** A message in a relay's hands while its publisher works. */
export interface Hold {
  /** Aborts with a {@link DeliveryCut}. */
  readonly signal: AbortSignal;
  /** Ends renewal; the delivery is over. */
  stop(): void;
}

/** What holding a message takes. Durations in milliseconds. */
export interface HoldTerms {
  readonly outbox: Pick<OutboxStore, "renew">;
  readonly clock: Clock;
  readonly held: HeldMessage;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  /** Monotonic time directly before the claim was sent: the database began to count no earlier. */
  readonly claimSentAtMs: number;
}

/**
 * Renews the lease every third of its length until the time-out. A renewal that matches no row cuts the delivery at once;
 * one that fails is tried again until the local deadline, counted from before the last good one was sent: one second
 * without a database must not cut what runs well.
 */
export function holdMessage(terms: HoldTerms): Hold {
  const { outbox, clock, held, leaseMs } = terms;
  const controller = new AbortController();
  const endAtMs = clock.monotonicMs() + terms.timeoutMs;
  let deadlineAtMs = terms.claimSentAtMs + leaseMs;
  let timers: (() => void)[] = [];
  let over = false;
  const stop = () => {
    over = true;
    for (const cancel of timers) cancel();
    timers = [];
  };
  const cut = (why: CutReason) => {
    stop();
    controller.abort(new DeliveryCut(why));
  };
  const renew = async () => {
    const sentAtMs = clock.monotonicMs();
    const kept = await outbox.renew(held, leaseMs).catch(() => undefined);
    if (over) return;
    if (kept === false) return cut("lease_lost");
    if (kept) deadlineAtMs = sentAtMs + leaseMs;
    schedule(kept ? leaseMs / 3 : leaseMs / 10);
  };
  const schedule = (renewInMs: number) => {
    for (const cancel of timers) cancel();
    const now = clock.monotonicMs();
    timers = [
      clock.after(endAtMs - now, () => cut("time_out")),
      clock.after(deadlineAtMs - now, () => cut("lease_lost")),
      clock.after(renewInMs, () => void renew()),
    ];
  };
  schedule(leaseMs / 3);
  return { signal: controller.signal, stop };
}
