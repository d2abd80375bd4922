import { WireReader } from "./kafka-wire.ts";

/** A record of a batch. */
export interface KafkaRecord {
  readonly key: string | null;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A record batch (magic 2), https://kafka.apache.org/documentation/#recordbatch. */
export interface RecordBatch {
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly records: readonly KafkaRecord[];
}

/** Reads a batch as a producer sends it: base offset 0, no compression. Raises where it is malformed. */
export function readBatch(bytes: Buffer): RecordBatch {
  const reader = new WireReader(bytes);
  reader.int64(); // base offset: the broker's to give
  const length = reader.int32();
  if (length !== reader.left) throw new Error(`A batch of ${reader.left} bytes says that it has ${length}.`);
  reader.int32(); // partition leader epoch
  const magic = reader.int8();
  if (magic !== 2) throw new Error(`Only record batches of magic 2 carry headers and sequences, not ${magic}.`);
  const checksum = reader.uint32();
  const checked = bytes.subarray(bytes.length - reader.left);
  if (crc32c(checked) !== checksum) throw new Error("The batch's checksum is wrong.");
  const attributes = reader.int16();
  if (attributes !== 0) throw new Error("Neither compressed nor transactional batches are understood here.");
  reader.int32(); // last offset delta
  reader.int64(); // first timestamp
  reader.int64(); // largest timestamp
  const producerId = reader.int64();
  const producerEpoch = reader.int16();
  const baseSequence = reader.int32();
  return { producerId, producerEpoch, baseSequence, records: reader.array(() => readRecord(reader)) };
}

function readRecord(batch: WireReader): KafkaRecord {
  const reader = new WireReader(batch.take(batch.varint()));
  reader.int8(); // attributes: unused
  reader.varint(); // timestamp delta
  reader.varint(); // offset delta
  const key = reader.varBytes()?.toString() ?? null;
  const value = reader.varBytes()?.toString() ?? "";
  const headers = Array.from({ length: reader.varint() }, () => {
    const name = String(reader.varBytes());
    return [name, String(reader.varBytes())] as const;
  });
  return { key, value, headers: Object.fromEntries(headers) };
}

const TABLE = Array.from({ length: 256 }, (_, index) => {
  let crc = index;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc >>> 0;
});

/** CRC-32C (Castagnoli). */
function crc32c(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}
