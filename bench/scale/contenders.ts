import { randomInt, randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import { INPUT, invoiceHandler } from "../invoice.ts";
import type { Contender } from "../measure.ts";
import { type BenchOncekey, instance, scope, transactionOf } from "../variants/oncekey.ts";
import { addExpired, fill, keyOf, type Owner } from "./fill.ts";

/** A database with so many entries, and what is measured on it. */
export interface Scaled {
  readonly entries: number;
  /** Bytes of the table and its indexes for one entry. */
  bytesPerEntry(): Promise<number>;
  readonly contenders: Readonly<Record<Work, Contender>>;
  close(): Promise<void>;
}

/** What is measured: one name, one curve. */
export const WORKS = ["claim", "replay", "replay-any", "sweep", "purge"] as const;

/** One of {@link WORKS}. */
export type Work = (typeof WORKS)[number];

/** The last so many entries are the recent ones: whoever retries does so soon. */
const RECENT = 10_000;
const BATCH = 500;
/** Entries that one slice purges. */
const PURGED = 5_000;
const LAPSED = 100;
const ANSWER_BYTES = 200;
const OPERATION = "invoices.create";

const OWNER: Owner = { ...scope(), operation: OPERATION };

/** What a database is made with. */
export interface ScaleOptions {
  readonly entries: number;
  readonly callers: number;
  /** How often each contender will work: the purge needs entries for all of them. */
  readonly slices: number;
  readonly say: (line: string) => void;
}

/** Fills a database with Oncekey's schema, and opens what is measured on it. */
export async function openScaled(url: string, options: ScaleOptions): Promise<Scaled> {
  const { entries, callers, say } = options;
  const pool = new pg.Pool({ connectionString: url, max: callers, idleTimeoutMillis: 0 });
  const handler = invoiceHandler(ANSWER_BYTES);
  const once = instance({ url, pool, handler, redisPort: null, load: createRequire(import.meta.url) });
  const operation = transactionOf(once, handler);
  await once.start();
  const run = async (key: string, expected: "completed" | "replayed"): Promise<void> => {
    const { kind } = await once.run(operation, { scope: scope(), key, input: { body: INPUT } });
    if (kind !== expected) throw new Error(`A run ended as ${kind}.`);
  };
  await run(keyOf(1), "completed");
  await fill(pool, OWNER, entries, (there) => say(`${entries} entries: ${there} are there`));
  const expired = (options.slices + 1) * PURGED;
  await addExpired(pool, OWNER, entries, expired);
  const replay = (from: number) => run(keyOf(randomInt(from, entries + 1)), "replayed");
  const name = String(entries);
  return {
    entries,
    bytesPerEntry: () => bytesPerEntry(pool, entries + expired),
    contenders: {
      claim: requests(name, callers, () => run(randomUUID(), "completed")),
      replay: requests(name, callers, () => replay(Math.max(1, entries - RECENT))),
      "replay-any": requests(name, callers, () => replay(1)),
      sweep: sweeping(name, pool),
      purge: purging(name, pool),
    },
    close: () => closed(once, pool),
  };
}

async function closed(once: BenchOncekey, pool: pg.Pool): Promise<void> {
  await once.close({ graceMs: 5_000 });
  await pool.end();
}

async function bytesPerEntry(pool: pg.Pool, entries: number): Promise<number> {
  const { rows } = await pool.query("SELECT pg_total_relation_size('oncekey.entry')::float8 AS bytes");
  return rows[0].bytes / entries;
}

/** So many callers that ask again as soon as they have an answer. */
function requests(name: string, callers: number, ask: () => Promise<unknown>): Contender {
  return {
    name,
    async slice(forMs) {
      const beganAt = performance.now();
      let done = 0;
      const caller = async () => {
        while (performance.now() - beganAt < forMs) {
          await ask();
          done++;
        }
      };
      await Promise.all(Array.from({ length: callers }, caller));
      return { requests: done, tookMs: performance.now() - beganAt, cpuMs: null };
    },
  };
}

/** Takes up lapsed entries among all the finished ones, which are made before it is timed. A request is a lapsed entry. */
function sweeping(name: string, pool: pg.Pool): Contender {
  const store = postgresStore(fromPg(pool));
  const target = { operation: OPERATION, runKind: "phases" as const, operationVersion: 1 };
  return {
    name,
    async slice() {
      await addLapsed(pool);
      const beganAt = performance.now();
      const taken = await store.takeDue(target, LAPSED, 3_600_000);
      const tookMs = performance.now() - beganAt;
      if (taken.length !== LAPSED) throw new Error(`${taken.length} of ${LAPSED} lapsed entries were taken.`);
      return { requests: LAPSED, tookMs, cpuMs: null };
    },
  };
}

async function addLapsed(pool: pg.Pool): Promise<void> {
  await pool.query(
    `INSERT INTO oncekey.entry
      (id, fence, seed, fingerprint, run_kind, tenant, operation, key, operation_version, created_at, state, lease_until, input)
    SELECT sha256(uuid_send(gen_random_uuid())), uuid_send(gen_random_uuid()), uuid_send(gen_random_uuid()), '\\x01',
      'phases', 'acme', $1, 'lapsed-' || n, 1, now(), 'in_progress', now() - interval '1 second', '\\x01'
    FROM generate_series(1, $2::int) AS n`,
    [OPERATION, LAPSED],
  );
}

/** Deletes a number of expired entries batch by batch, as the worker does. A request is an entry. */
function purging(name: string, pool: pg.Pool): Contender {
  const store = postgresStore(fromPg(pool));
  return {
    name,
    async slice() {
      const beganAt = performance.now();
      let requests = 0;
      while (requests < PURGED) {
        const count = await store.purge(BATCH);
        if (count === 0) throw new Error("No expired entries are left.");
        requests += count;
      }
      return { requests, tookMs: performance.now() - beganAt, cpuMs: null };
    },
  };
}
