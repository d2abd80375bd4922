import { setTimeout as sleep } from "node:timers/promises";
import type { SequenceResult } from "oncekey";
import type { UsageEvent } from "./meter.ts";

/** Brings an event to the meter, over a network that loses answers and sends twice. */
export type Deliver = (event: UsageEvent) => Promise<SequenceResult<void>>;

/** What a producer saw. */
export interface ProducerCounts {
  accepted: number;
  duplicates: number;
  retried: number;
}

const PAUSE_MS = 2;

/** Counts and sends, in one epoch of its life. */
export interface Producer {
  /** Counts one use and sends it until the meter has it. `fenced`: a newer instance has taken over, this one must stop. */
  count(quantity: bigint): Promise<"recorded" | "fenced">;
  readonly counts: ProducerCounts;
}

/** Who counts what. */
export type ProducerIdentity = Pick<UsageEvent, "tenant" | "producer" | "epoch" | "meter">;

/**
 * A producer keeps each event until the meter has it, and sends it again, unchanged, after every answer that does not say
 * so: that is all it takes, because a second arrival counts nothing.
 */
export function createProducer(identity: ProducerIdentity, deliver: Deliver): Producer {
  const counts: ProducerCounts = { accepted: 0, duplicates: 0, retried: 0 };
  let next = 0n;
  return {
    counts,
    async count(quantity) {
      // The ledger would refuse it, and this producer send it for ever.
      if (quantity === 0n) throw new RangeError("Nothing was used: there is no event to count.");
      const event: UsageEvent = { ...identity, sequence: next++, quantity, occurredAt: new Date() };
      for (;;) {
        const result = await deliver(event).catch(() => null);
        if (result?.kind === "done") counts.accepted++;
        if (result?.kind === "duplicate") counts.duplicates++;
        if (result?.kind === "done" || result?.kind === "duplicate") return "recorded";
        if (result?.kind === "fenced") return "fenced";
        // A gap, a meter that is away, an answer that was lost: all say "once more", and none that it is not recorded.
        counts.retried++;
        await sleep(PAUSE_MS);
      }
    },
  };
}
