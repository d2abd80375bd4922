import { fromPg } from "oncekey/drivers/pg";
import { migrate } from "oncekey/postgres";
import pg from "pg";
import { startTestServer, type TestServer } from "../test/support/postgres-server.ts";
import { INVOICE_TABLE } from "./invoice.ts";
import { type Programs, programs } from "./program.ts";

/** Everything that the bench starts, on the loopback. */
export interface World {
  readonly server: TestServer;
  readonly programs: Programs;
  /** A new database with Oncekey's schema and the business table; gives its address. */
  database(): Promise<string>;
  close(): Promise<void>;
}

const TEMPLATE = "bench_template";

/**
 * The disk counts: a commit is durable, as in production. Autovacuum is off and checkpoints are far apart, so that neither
 * falls into one contender's slice and not into another's.
 */
const SETTINGS = {
  shared_preload_libraries: "pg_stat_statements",
  "pg_stat_statements.track_utility": "on",
  autovacuum: "off",
  shared_buffers: "512MB",
  max_wal_size: "8GB",
  checkpoint_timeout: "1h",
  max_connections: "400",
  track_wal_io_timing: "off",
};

/** Starts PostgreSQL and bundles the programs. `flags`: Node's, of the measured processes. */
export async function startWorld(flags: readonly string[] = []): Promise<World> {
  const [bundled, server] = await Promise.all([programs(flags), startTestServer({ fsync: true, settings: SETTINGS })]);
  await makeTemplate(server);
  let made = 0;
  return {
    server,
    programs: bundled,
    async database() {
      const name = `bench_${made++}`;
      await query(server.url, `CREATE DATABASE ${name} TEMPLATE ${TEMPLATE}`);
      return server.urlOf(name);
    },
    async close() {
      await bundled.close();
      await server.close();
    },
  };
}

async function makeTemplate(server: TestServer): Promise<void> {
  await query(server.url, `CREATE DATABASE ${TEMPLATE}`);
  const pool = new pg.Pool({ connectionString: server.urlOf(TEMPLATE), max: 1 });
  await migrate(fromPg(pool));
  await pool.query(INVOICE_TABLE);
  await pool.end();
  for (const name of ["pg_stat_statements", "pg_walinspect"]) await query(server.url, `CREATE EXTENSION ${name}`);
}

/** Runs one statement on a connection of its own. */
export async function query(url: string, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}
