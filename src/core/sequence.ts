/** The number a producer gave its message. Kafka's idempotent producer has the same three parts. */
export interface SequenceNumber {
  /** Raised whenever a new instance of the producer takes over; lower ones are fenced out. From 0. */
  readonly epoch: bigint;
  /** 0, 1, 2 …: without gaps within an epoch. */
  readonly sequence: bigint;
}

/** What a message with that number means. */
export type SequenceDecision =
  | { readonly kind: "accept" }
  /** Seen before: acknowledge, do nothing. */
  | { readonly kind: "duplicate" }
  /** A gap: an earlier one has not arrived. */
  | { readonly kind: "out_of_order"; readonly expected: bigint }
  /** A newer instance of the producer has taken over. */
  | { readonly kind: "fenced"; readonly epoch: bigint };

/**
 * The one rule of numbered messages, by the last accepted number of the producer (`null`: none yet). A new epoch begins
 * at 0, as the very first one does, so that a message lost between two instances is a gap and not silence.
 */
export function decideSequence(last: SequenceNumber | null, { epoch, sequence }: SequenceNumber): SequenceDecision {
  if (last !== null && epoch < last.epoch) return { kind: "fenced", epoch: last.epoch };
  const expected = last === null || epoch > last.epoch ? 0n : last.sequence + 1n;
  if (sequence === expected) return { kind: "accept" };
  return sequence < expected ? { kind: "duplicate" } : { kind: "out_of_order", expected };
}
