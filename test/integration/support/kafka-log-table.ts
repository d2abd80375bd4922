import type { Oncekey } from "oncekey";
import { appendKafkaBatch, type KafkaAppended, type KafkaBatchHead } from "oncekey/inbox";
import type pg from "pg";
import { readBatch } from "../../support/brokers/kafka-batch.ts";
import type { AppendBatch } from "../../support/brokers/kafka-endpoint.ts";

/** A partition's end, and its batches: a log on PostgreSQL that nothing but Oncekey keeps from holding a batch twice. */
export const LOG_TABLES = `
  CREATE TABLE log_end (topic text, partition int, next bigint NOT NULL, PRIMARY KEY (topic, partition));
  CREATE TABLE log_batch (topic text, partition int, base bigint, records int NOT NULL, bytes bytea NOT NULL);
  CREATE SEQUENCE producer_id;`;

/** What two processes of one endpoint share. */
export type LogOnce = Pick<Oncekey<pg.PoolClient>, "consumeNumberedBatch">;

/** Appends a batch of a partition to the tables, once. */
export function appendToTable(
  once: LogOnce,
  place: { readonly topic: string; readonly partition: number },
  head: KafkaBatchHead,
  bytes: Uint8Array = new Uint8Array(),
): Promise<KafkaAppended> {
  const { topic, partition } = place;
  return appendKafkaBatch(once, { tenant: "acme", ...place }, head, async ({ tx }) => {
    const { rows } = await tx.query(
      `INSERT INTO log_end AS known (topic, partition, next) VALUES ($1, $2, $3)
       ON CONFLICT (topic, partition) DO UPDATE SET next = known.next + excluded.next RETURNING next - $3::int AS base`,
      [topic, partition, head.records],
    );
    const base = BigInt(rows[0].base);
    const row = [topic, partition, String(base), head.records, bytes];
    await tx.query("INSERT INTO log_batch (topic, partition, base, records, bytes) VALUES ($1, $2, $3, $4, $5)", row);
    return base;
  });
}

/** For an endpoint: batches as they came over the wire. */
export function tableAppend(once: LogOnce): AppendBatch {
  return async (topic, partition, bytes) => {
    const { records, ...head } = readBatch(bytes);
    const batch = { ...head, records: records.length };
    const { errorCode, baseOffset } = await appendToTable(once, { topic, partition }, batch, bytes);
    return { error: errorCode, baseOffset };
  };
}

/** For an endpoint: ids of producers that no restart gives out again. */
export async function newProducerId(pool: pg.Pool): Promise<bigint> {
  const { rows } = await pool.query("SELECT nextval('producer_id') AS id");
  return BigInt(rows[0].id);
}
