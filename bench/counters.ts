import { type Field, startApi } from "./contenders.ts";
import type { KeyChoice } from "./programs/clients.ts";
import { query } from "./world.ts";

/** What the server counted, each a request. No clock is in it: the same figures on every machine. */
export interface Counters {
  /** Each is a round trip: `pg` sends one at a time. BEGIN and COMMIT count. */
  readonly statements: number;
  /** Bytes of WAL, without the page images that the first change after a checkpoint adds. */
  readonly walBytes: number;
  readonly walRecords: number;
  /** How often the WAL was flushed to the disk, with one client: nobody shares a flush. */
  readonly fsyncs: number;
  /** Row versions that were left for VACUUM, in all tables. */
  readonly deadTuples: number;
}

/** What is counted. */
export interface CountedWork {
  readonly name: string;
  readonly variant: string;
  readonly keys: KeyChoice;
}

/** What is counted in every run. */
export const COUNTED: readonly CountedWork[] = [
  { name: "plain", variant: "plain", keys: "fresh" },
  { name: "handwritten", variant: "handwritten", keys: "fresh" },
  { name: "transaction", variant: "transaction", keys: "fresh" },
  { name: "phases", variant: "phases", keys: "fresh" },
  { name: "capture", variant: "capture", keys: "fresh" },
  { name: "replay", variant: "transaction", keys: "replays" },
  { name: "read", variant: "read", keys: "none" },
];

/** Requests in front of those that are counted: they open connections and make plans. */
const WARM_UP = 20;

/** Sends requests one after the other to a variant on a database of its own, and reads the server's counters. */
export async function count(field: Field, work: CountedWork, requests: number): Promise<Counters> {
  const { api, port, url } = await startApi(field, work.variant, 200);
  const load = (count: number) => field.clients.ask({ port, clients: 1, keys: work.keys, requests: count });
  const server = serverCounters(field.world.server.url, url);
  // What is known to replays is made here.
  await load(0);
  const before = await server.settled();
  await load(WARM_UP);
  const from = await server.reset();
  await load(requests);
  const counted = await server.counted(from);
  const after = await server.settled();
  await api.ask({ kind: "close" });
  await api.end();
  const all = requests + WARM_UP;
  return {
    statements: counted.statements / requests,
    walBytes: counted.bytes / requests,
    walRecords: counted.records / requests,
    fsyncs: (after.fsyncs - before.fsyncs) / all,
    deadTuples: (after.deadTuples - before.deadTuples) / all,
  };
}

const DATABASE = "(SELECT oid FROM pg_database WHERE datname = $1)";
const RESET = `SELECT pg_stat_statements_reset(0, ${DATABASE}), pg_current_wal_insert_lsn()::text AS lsn`;
const STATEMENTS = `
  SELECT coalesce(sum(calls), 0)::float8 AS statements, pg_current_wal_insert_lsn()::text AS upto
  FROM pg_stat_statements WHERE dbid = ${DATABASE}`;
const WRITTEN = `
  SELECT ($2::pg_lsn - $1::pg_lsn)::float8 - sum(fpi_size)::float8 AS bytes, sum(count)::float8 AS records
  FROM pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true)`;
const FSYNCS = "SELECT sum(fsyncs)::float8 AS fsyncs FROM pg_stat_io WHERE object = 'wal'";
const DEAD = "SELECT coalesce(sum(n_dead_tup), 0)::float8 AS dead FROM pg_stat_user_tables";
const END_CONNECTIONS = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE datname = $1";

/** Asks from another database, so that the questions are not counted. */
function serverCounters(asker: string, url: string) {
  const database = new URL(url).pathname.slice(1);
  const ask = async (text: string, values: unknown[] = []) => (await query(asker, text, values))[0] ?? {};
  return {
    /** Counts from now on; gives the place in the WAL. */
    reset: async () => String((await ask(RESET, [database])).lsn),
    async counted(from: string): Promise<Record<"statements" | "bytes" | "records", number>> {
      const { statements, upto } = await ask(STATEMENTS, [database]);
      // Of nothing there are no statistics, but an error.
      const { bytes, records } = upto === from ? { bytes: 0, records: 0 } : await ask(WRITTEN, [from, upto]);
      return { statements: Number(statements), bytes: Number(bytes), records: Number(records) };
    },
    /** A connection hands in these two when it ends, at the latest. The pool opens another one. */
    async settled(): Promise<Record<"fsyncs" | "deadTuples", number>> {
      await ask(END_CONNECTIONS, [database]);
      const { fsyncs } = await ask(FSYNCS);
      return { fsyncs: Number(fsyncs), deadTuples: Number((await query(url, DEAD))[0]?.dead) };
    },
  };
}
