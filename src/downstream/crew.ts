import type { ClaimedMessage, MessageClaim } from "../core/outbox.ts";
import type { Lifecycle } from "../engine/lifecycle.ts";
import { type Desk, deliver, giveBack, type Settled } from "./deliver.ts";
import { tellSettled } from "./observed-message.ts";

/** A fixed number of places, each of which delivers one message at a time, and what follows it in its order. */
export interface Crew {
  free(): number;
  /** Takes a place for a message. */
  start(message: ClaimedMessage, claimSentAtMs: number): void;
  /** Resolves when the next place is done, at once where none is at work. */
  oneDone(): Promise<void>;
  /** Resolves when no place is at work. */
  allDone(): Promise<void>;
}

/** How a crew works. */
export interface CrewTerms {
  readonly desk: Desk;
  readonly parallel: number;
  readonly lifecycle: Lifecycle;
  /** Nothing more may be begun. */
  readonly stopped: () => boolean;
  readonly settled: (as: Settled) => void;
  readonly failed: (error: unknown) => void;
  /** A long order was left after its share, with more of it to deliver. */
  readonly cutShort: () => void;
}

/** Messages of one order that a place delivers in a row: one endless order must not keep a place for itself. */
const LONGEST_CHAIN = 50;
const STOPPED = "the relay was stopped";

/** Makes an idle crew. */
export function crewOf(terms: CrewTerms): Crew {
  const working = new Set<Promise<void>>();
  return {
    free: () => terms.parallel - working.size,
    start(message, claimSentAtMs) {
      const work: Promise<void> = workOn(terms, message, claimSentAtMs)
        .catch(terms.failed)
        .finally(() => working.delete(work));
      working.add(work);
    },
    oneDone: async () => void (await Promise.race(working.size === 0 ? [null] : working)),
    allDone: async () => void (await Promise.all(working)),
  };
}

async function workOn(terms: CrewTerms, message: ClaimedMessage, claimSentAtMs: number): Promise<void> {
  const { desk, lifecycle, stopped, settled } = terms;
  // close() refuses tracked work, but the message is in our hands already and others wait for it.
  if (stopped() || lifecycle.phase !== "started") settled(await giveBack(desk, message, STOPPED));
  else await lifecycle.tracked(() => deliverChain(terms, message, claimSentAtMs));
}

/** Delivers a message, then the one behind it in its order, so that a long order needs no round for each. */
async function deliverChain(terms: CrewTerms, first: ClaimedMessage, claimSentAtMs: number): Promise<void> {
  const { desk, stopped, settled } = terms;
  const claim: MessageClaim = { topics: desk.routes.topics, limit: 1, leaseMs: desk.leaseMs };
  let message = first;
  let sentAtMs = claimSentAtMs;
  for (let length = 1; ; length++) {
    const startedAtMs = desk.clock.monotonicMs();
    const as = await deliver(desk, message, sentAtMs);
    tellSettled(desk, message, as, startedAtMs);
    settled(as);
    if (as !== "delivered" || message.orderBy === null || stopped()) return;
    if (length === LONGEST_CHAIN) return terms.cutShort();
    sentAtMs = desk.clock.monotonicMs();
    const next = await desk.outbox.claimNext(message, claim);
    if (next === null) return;
    if (stopped()) return settled(await giveBack(desk, next, STOPPED));
    message = next;
  }
}
