import { setTimeout as pause } from "node:timers/promises";
import {
  type Batch,
  type EachBatchPayload,
  type Consumer as Group,
  type IHeaders,
  Kafka,
  type KafkaMessage,
  logLevel,
} from "kafkajs";
import type { PoolClient } from "pg";
import { type Arrival, book, type Consumer, crashHere, deliveryOf, main, setting, tell } from "./consumer.ts";

// Kafka: a batch in one transaction, and in the same transaction the offset at which the partition goes on. At its start
// the consumer seeks to that offset, so that what is committed in the database is not handled again. The inbox is
// needed beside it: a producer that sent a message again gave it another offset.
//
// A record that always fails ends the process, and stops its partition: Kafka has no dead letters, so whether it may be
// skipped is a decision of yours.
//
// Offsets are committed to Kafka afterwards, for its lag monitors. What counts is the database's.

/** Records in one transaction: each takes a lock in the database, and `consumeBatch` takes no more than a thousand. */
const MOST_RECORDS = 500;

type Place = Pick<Batch, "topic" | "partition">;

/** A record and its message. */
interface Taken extends Arrival {
  readonly offset: bigint;
}

async function loop(consumer: Consumer): Promise<void> {
  const topic = setting("CONSUMER_QUEUE");
  const brokers = setting("KAFKA_BROKERS").split(",");
  const kafka = new Kafka({ clientId: "bookings", brokers, logLevel: logLevel.ERROR });
  const group = kafka.consumer({ groupId: `bookings.${topic}`, maxWaitTimeInMs: 200 });
  const crashed = new Promise<never>((_, reject) => {
    group.on(group.events.CRASH, ({ payload }) => reject(payload.error));
    group.on(group.events.GROUP_JOIN, ({ payload }) => {
      const assigned = payload.memberAssignment[topic] ?? [];
      seekToStored(consumer, group, topic, assigned).then(() => tell({ ready: topic }), reject);
    });
  });
  await group.connect();
  await group.subscribe({ topic, fromBeginning: true });
  await group.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, ...given }) => {
      const next = await takeBatch(consumer, batch, given);
      if (next === null) return;
      await group.commitOffsets([{ topic, partition: batch.partition, offset: String(next) }]);
    },
  });
  await Promise.race([new Promise((resolve) => consumer.stopping.addEventListener("abort", resolve)), crashed]);
  await group.disconnect();
}

/** Nothing is fetched before it is known from where. */
async function seekToStored(consumer: Consumer, group: Group, topic: string, partitions: number[]): Promise<void> {
  group.pause([{ topic }]);
  for (const partition of partitions) {
    const offset = await position(consumer, { topic, partition });
    if (offset !== null) group.seek({ topic, partition, offset: String(offset) });
  }
  group.resume([{ topic }]);
}

/** Takes a batch in. Where the partition goes on, or `null`: nothing of it is settled. */
async function takeBatch(
  consumer: Consumer,
  batch: Batch,
  { resolveOffset, heartbeat }: Pick<EachBatchPayload, "resolveOffset" | "heartbeat">,
): Promise<bigint | null> {
  // A fetch that was under way before the seek brings what is behind us already.
  const from = (await position(consumer, batch)) ?? 0n;
  const records = batch.messages
    .filter(({ offset }) => BigInt(offset) >= from)
    // The rest is fetched again.
    .slice(0, MOST_RECORDS)
    .map((one) => recordOf(batch.topic, one));
  const results = await consumer.once.consumeBatch(
    records.map(({ delivery }, index) => ({ ...delivery, index })),
    async ({ tx, fresh }) => {
      const isFresh = new Set(fresh.map(({ index }) => index));
      for (const index of isFresh) await book(tx, records[index] as Taken);
      // Only as far as all of it is in this transaction: one that somebody else is at may still fail there.
      await moveTo(
        tx,
        batch,
        endOf(records, (index) => isFresh.has(index)),
      );
    },
  );
  for (const [index, { delivery }] of records.entries()) tell({ delivery: delivery.id, result: results[index]?.kind });
  const next = endOf(records, (index) => results[index]?.kind !== "unsettled");
  if (next === null && records.length > 0) {
    // Kafka hands the same records out again at once, so the pause is here.
    await pause(1_000);
    return null;
  }
  crashHere();
  const reached = next ?? from;
  // What was settled before counts, too: duplicates alone run no handler.
  await moveTo(consumer.pool, batch, reached);
  resolveOffset(String(reached - 1n));
  await heartbeat();
  return reached;
}

function recordOf(topic: string, { offset, headers = {}, value }: KafkaMessage): Taken {
  const delivery = deliveryOf(topic, (name) => headerOf(headers, name));
  return { offset: BigInt(offset), delivery, payload: value?.toString() ?? "" };
}

function headerOf(headers: IHeaders, name: string): string | undefined {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value)?.toString();
}

/** The offset behind the first records that are all settled. */
function endOf(records: readonly Taken[], isSettled: (index: number) => boolean): bigint | null {
  const open = records.findIndex((_, index) => !isSettled(index));
  const last = records[(open === -1 ? records.length : open) - 1];
  return last === undefined ? null : last.offset + 1n;
}

async function position({ pool }: Consumer, { topic, partition }: Place): Promise<bigint | null> {
  const found = await pool.query("SELECT next_offset FROM kafka_position WHERE topic = $1 AND partition = $2", [
    topic,
    partition,
  ]);
  return found.rows[0] === undefined ? null : BigInt(found.rows[0].next_offset);
}

/** Forwards only: a consumer that lost the partition without knowing it must not turn it back. */
async function moveTo(db: Pick<PoolClient, "query">, { topic, partition }: Place, next: bigint | null): Promise<void> {
  if (next === null) return;
  await db.query(
    `INSERT INTO kafka_position AS known (topic, partition, next_offset) VALUES ($1, $2, $3)
     ON CONFLICT (topic, partition) DO UPDATE SET next_offset = GREATEST(known.next_offset, excluded.next_offset)`,
    [topic, partition, String(next)],
  );
}

main(loop);
