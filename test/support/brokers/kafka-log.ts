import { type KafkaRecord, type RecordBatch, readBatch } from "./kafka-batch.ts";
import { int64 } from "./kafka-wire.ts";

/** A batch in a partition. */
export interface StoredBatch extends RecordBatch {
  readonly topic: string;
  readonly partition: number;
  readonly baseOffset: number;
  readonly bytes: Buffer;
}

/** A record with its place. */
export interface StoredRecord extends KafkaRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** Error codes, https://kafka.apache.org/protocol.html#protocol_error_codes. */
const ERRORS = { none: 0, messageTooLarge: 10, outOfOrderSequence: 45 };

/** Topics and their partitions, in memory; every topic exists. */
export class KafkaLog {
  readonly partitions: number;
  readonly #maxBytes: number;
  readonly #batches: StoredBatch[] = [];

  constructor(partitions: number, maxBytes: number) {
    this.partitions = partitions;
    this.#maxBytes = maxBytes;
  }

  get batches(): readonly StoredBatch[] {
    return this.#batches;
  }

  records(): StoredRecord[] {
    return this.#batches.flatMap(({ topic, partition, baseOffset, records }) =>
      records.map((record, index) => ({ ...record, topic, partition, offset: baseOffset + index })),
    );
  }

  /** Offset that the next record gets. */
  end(topic: string, partition: number): number {
    const last = this.#of(topic, partition).at(-1);
    return last === undefined ? 0 : last.baseOffset + last.records.length;
  }

  /**
   * Appends as a broker does for an idempotent producer: the next sequence is accepted, one that it has is answered with
   * the offset it got, anything else is out of order.
   */
  append(topic: string, partition: number, bytes: Buffer): { readonly error: number; readonly baseOffset: number } {
    if (bytes.length > this.#maxBytes) return { error: ERRORS.messageTooLarge, baseOffset: -1 };
    const batch = readBatch(bytes);
    const earlier = this.#of(topic, partition).filter(({ producerId }) => producerId === batch.producerId);
    const known = earlier.find(({ baseSequence }) => baseSequence === batch.baseSequence);
    if (known !== undefined) return { error: ERRORS.none, baseOffset: known.baseOffset };
    const last = earlier.at(-1);
    const next = last === undefined ? 0 : last.baseSequence + last.records.length;
    if (batch.baseSequence !== next) return { error: ERRORS.outOfOrderSequence, baseOffset: -1 };
    const baseOffset = this.end(topic, partition);
    this.#batches.push({ ...batch, topic, partition, baseOffset, bytes });
    return { error: ERRORS.none, baseOffset };
  }

  /** Batches from the one that holds `offset` on, as they travel. */
  fetch(topic: string, partition: number, offset: number): Buffer {
    const wanted = this.#of(topic, partition).filter(({ baseOffset, records }) => baseOffset + records.length > offset);
    // The base offset is not under the checksum.
    return Buffer.concat(wanted.flatMap(({ baseOffset, bytes }) => [int64(baseOffset), bytes.subarray(8)]));
  }

  #of(topic: string, partition: number): StoredBatch[] {
    return this.#batches.filter((batch) => batch.topic === topic && batch.partition === partition);
  }
}
