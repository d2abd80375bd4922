import { setTimeout as pause } from "node:timers/promises";
import { createOncekey, type IncomingDelivery, type Oncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { migrate, postgresStore } from "oncekey/postgres";
import pg, { type PoolClient } from "pg";

// What the five loops share: the database, the effect of a message, and what becomes of it afterwards. A message's effect
// here is one row of `booking`, which nothing but Oncekey keeps from being written twice.

/** What a loop works with. */
export interface Consumer {
  readonly once: Oncekey<PoolClient>;
  readonly pool: pg.Pool;
  /** Aborts when this process is asked to stop. */
  readonly stopping: AbortSignal;
}

/** A message of any broker: which one it is, and its payload. */
export interface Arrival {
  readonly delivery: IncomingDelivery;
  readonly payload: string;
}

/** `acknowledge`, or leave it to redelivery: this process is to stop. */
export type Verdict = "acknowledge" | "leave";

const TABLES = `
  CREATE TABLE IF NOT EXISTS booking (tenant text NOT NULL, delivery text NOT NULL, payload text NOT NULL);
  CREATE TABLE IF NOT EXISTS kafka_position (
    topic text, partition integer, next_offset bigint NOT NULL, PRIMARY KEY (topic, partition)
  );`;

/** Opens the database, runs the loop until this process is asked to stop, and closes everything. */
export async function runConsumer(loop: (consumer: Consumer) => Promise<void>): Promise<void> {
  const stopping = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stopping.abort());
  const pool = new pg.Pool({ connectionString: setting("DATABASE_URL") });
  pool.on("error", (error) => console.error(`The database cut a connection: ${error.message}`));
  const driver = fromPg(pool);
  const once = createOncekey({ store: postgresStore(driver) });
  try {
    await migrate(driver);
    await createTables(pool);
    await once.start();
    await loop({ once, pool, stopping: stopping.signal });
  } finally {
    await once.close();
    await pool.end();
  }
}

/** Several consumers may start at once, and `IF NOT EXISTS` alone is no protection then. */
async function createTables(pool: pg.Pool): Promise<void> {
  await pool.query(`BEGIN; SELECT pg_advisory_xact_lock(7162535); ${TABLES} COMMIT;`);
}

/** A setting from the environment. */
export function setting(name: string, otherwise?: string): string {
  const value = process.env[name] ?? otherwise;
  if (value === undefined) throw new Error(`Set ${name}. Nothing was started.`);
  return value;
}

/** The delivery that a publisher of Oncekey described in the message's headers. Raises where it did not. */
export function deliveryOf(source: string, header: (name: string) => string | null | undefined): IncomingDelivery {
  const id = header("oncekey-id");
  const tenant = header("oncekey-tenant");
  if (!id || !tenant) throw new Error("A message without oncekey-id and oncekey-tenant is not one of ours.");
  const correlation = header("traceparent") ?? header("x-request-id") ?? null;
  return { source, id, tenant: decodeURIComponent(tenant), correlation };
}

/** The effect, in the transaction that remembers the delivery. */
export async function book(tx: PoolClient, { delivery, payload }: Arrival): Promise<void> {
  const row = [delivery.tenant, delivery.id, payload];
  await tx.query("INSERT INTO booking (tenant, delivery, payload) VALUES ($1, $2, $3)", row);
}

/**
 * Takes one message in, and says what the loop does with it. While nothing can be said of it, as the database is away, it
 * is kept and tried again: brokers count what is given back as a failure, and an outage of seconds would make dead letters
 * of good messages. Raises what the effect raised, and that it took too long: nothing is booked then.
 */
export async function takeIn({ once, stopping }: Consumer, arrival: Arrival): Promise<Verdict> {
  for (;;) {
    const result = await once.consume(arrival.delivery, ({ tx }) => book(tx, arrival));
    tell({ delivery: arrival.delivery.id, result: result.kind });
    if (result.kind !== "unsettled") break;
    if (result.why === "time_out") throw new Error("Its effect took too long, and was rolled back.");
    if (stopping.aborted) return "leave";
    await pause(result.retryAfterMs, undefined, { signal: stopping }).catch(() => {});
  }
  crashHere();
  return "acknowledge";
}

/** The place that these examples are about: the effect is committed and the broker does not know it yet. */
export function crashHere(): void {
  if (process.env.CONSUMER_LAB === "crash") process.kill(process.pid, "SIGKILL");
}

/** One line on stdout for whoever watches. */
export function tell(event: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

/** What went wrong with one message: it is left to redelivery, and to the broker's limit of it. */
export function report(error: unknown): void {
  console.error(`A message was not taken in: ${error instanceof Error ? error.message : String(error)}`);
}

/** Runs a program's loop. */
export function main(loop: (consumer: Consumer) => Promise<void>): void {
  runConsumer(loop).then(
    () => process.exit(0),
    (error: unknown) => {
      console.error(error instanceof Error ? error.message : String(error));
      process.exit(1);
    },
  );
}
