import type { SequenceNumber } from "./sequence.ts";

/** The numbers of a batch as they travel: from 0 to {@link HIGHEST_SEQUENCE}, where the last may be below the first. */
export interface SequenceSpan {
  readonly first: bigint;
  readonly last: bigint;
}

/** A batch as its producer numbered it: the number of its first message, and how many there are. */
export interface NumberedSpan {
  readonly epoch: bigint;
  readonly first: bigint;
  readonly count: bigint;
}

/** What a producer's batch means. */
export type BatchDecision =
  /** The next one. `to`: the number that the producer then has come to, counted on where those on the wire begin anew. */
  | { readonly kind: "accept"; readonly span: SequenceSpan; readonly to: SequenceNumber }
  /** The very batch at that place among the remembered ones. */
  | { readonly kind: "duplicate"; readonly place: number }
  /** Nothing is known of the producer, and this is not its first batch. */
  | { readonly kind: "unknown_producer" }
  /** A gap, an overlap, or a repetition of what is no longer remembered: which of them, nobody can tell. */
  | { readonly kind: "out_of_order"; readonly expected: bigint }
  /** A newer instance of the producer has taken over. */
  | { readonly kind: "fenced"; readonly epoch: bigint };

/** After it a producer's numbers begin at 0 again: they are 32-bit integers with a sign. */
export const HIGHEST_SEQUENCE = 2n ** 31n - 1n;

/** How many batches of a producer can be told from their repetitions: as many as its clients have under way at most. */
export const REMEMBERED_BATCHES = 5;

const LAP = HIGHEST_SEQUENCE + 1n;

/**
 * The rules of Kafka's idempotent producers (`ProducerAppendInfo` and `ProducerStateEntry` of its broker), by the last
 * number that a producer came to (`null`: none yet) and the batches of that epoch that are remembered. They differ in one
 * place: a producer of which nothing is known begins at 0, where brokers without transactions take any number.
 */
export function decideBatch(
  last: SequenceNumber | null,
  remembered: readonly SequenceSpan[],
  batch: NumberedSpan,
): BatchDecision {
  if (last !== null && batch.epoch < last.epoch) return { kind: "fenced", epoch: last.epoch };
  const isNewEpoch = last === null || batch.epoch > last.epoch;
  const span = spanOf(batch);
  const place = isNewEpoch ? -1 : remembered.findIndex((known) => isSame(known, span));
  if (place >= 0) return { kind: "duplicate", place };
  const reached = isNewEpoch ? -1n : last.sequence;
  const expected = (reached + 1n) % LAP;
  if (span.first === expected) {
    return { kind: "accept", span, to: { epoch: batch.epoch, sequence: reached + batch.count } };
  }
  return last === null ? { kind: "unknown_producer" } : { kind: "out_of_order", expected };
}

function spanOf({ first, count }: NumberedSpan): SequenceSpan {
  return { first, last: (first + count - 1n) % LAP };
}

function isSame(a: SequenceSpan, b: SequenceSpan): boolean {
  return a.first === b.first && a.last === b.last;
}
