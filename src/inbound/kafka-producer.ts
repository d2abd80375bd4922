import type { DeliveryStep, NumberedBatchOptions, NumberedBatchResult } from "../engine/arrival.ts";
import type { Oncekey } from "../engine/oncekey.ts";

/** A partition of a topic: producers are numbered within it. */
export interface KafkaPartition {
  readonly tenant: string;
  readonly topic: string;
  readonly partition: number;
}

/** What the head of a record batch (magic 2) says of its producer; `records`: how many the batch has. */
export interface KafkaBatchHead {
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly records: number;
}

/** What a produce request is answered for one partition. */
export interface KafkaAppended {
  /** Of the protocol's table: 0, or why nothing was appended. */
  readonly errorCode: number;
  /** Of the batch's first record, also where it was appended earlier; -1 where nothing was appended. */
  readonly baseOffset: bigint;
  /** What it came to in the words of the inbox; `null`: the batch names no producer. */
  readonly result: NumberedBatchResult<bigint> | null;
}

/**
 * Error codes of the protocol (https://kafka.apache.org/protocol.html#protocol_error_codes). Clients try again after
 * `timedOut` alone, with the same numbers. A producer that is unknown gets `outOfOrder`, as from today's brokers:
 * `UNKNOWN_PRODUCER_ID` (59) makes some clients start anew, and send what may have been done.
 */
const ERRORS = { none: 0, timedOut: 7, outOfOrder: 45, fenced: 47, invalidRecord: 87 } as const;

/**
 * Appends a batch of an idempotent Kafka producer once: `append` writes it in the transaction that remembers its number,
 * and gives the offset of its first record. The answer is what the producer's client understands: a repetition gets the
 * first one's offset, a gap and what is too old to tell 45, an older epoch 47, and 7 while nothing is known to be done. A
 * batch without a producer cannot be told from its repetition and gets 87. Raises what `append` threw, rolled back.
 */
export async function appendKafkaBatch<Tx>(
  once: Pick<Oncekey<Tx>, "consumeNumberedBatch">,
  { tenant, topic, partition }: KafkaPartition,
  { producerId, producerEpoch, baseSequence, records }: KafkaBatchHead,
  append: (step: DeliveryStep<Tx>) => Promise<bigint>,
  options: NumberedBatchOptions = {},
): Promise<KafkaAppended> {
  // -1 stands for none in all three.
  if (producerId < 0n || producerEpoch < 0 || baseSequence < 0 || records < 1) {
    return { errorCode: ERRORS.invalidRecord, baseOffset: -1n, result: null };
  }
  const numbers = { epoch: BigInt(producerEpoch), first: BigInt(baseSequence), count: BigInt(records) };
  const producer = { tenant, source: `${topic}-${partition}`, producer: String(producerId) };
  return answerOf(await once.consumeNumberedBatch({ ...producer, ...numbers }, append, options));
}

function answerOf(result: NumberedBatchResult<bigint>): KafkaAppended {
  switch (result.kind) {
    case "done":
    case "duplicate":
      return { errorCode: ERRORS.none, baseOffset: result.value, result };
    case "fenced":
      return { errorCode: ERRORS.fenced, baseOffset: -1n, result };
    case "out_of_order":
    case "unknown_producer":
      return { errorCode: ERRORS.outOfOrder, baseOffset: -1n, result };
    case "unsettled":
      return { errorCode: ERRORS.timedOut, baseOffset: -1n, result };
  }
}
