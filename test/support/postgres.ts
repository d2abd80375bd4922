import { createHash, randomBytes } from "node:crypto";
import { fromPg } from "oncekey/drivers/pg";
import { migrate, printMigrations } from "oncekey/postgres";
import pg from "pg";
import { afterAll } from "vitest";
import { startTestServer, type TestServer } from "./postgres-server.ts";

export { startTestServer, type TestServer } from "./postgres-server.ts";

/** A fresh database on the shared server. */
export interface TestDatabase {
  readonly url: string;
  /** Removes it; connections that are still open are cut. Also done at the end of the test file. */
  drop(): Promise<void>;
}

export interface TestDatabaseOptions {
  /** The database's default isolation level. */
  readonly isolation?: "read committed" | "repeatable read" | "serializable";
  /** `false`: an empty database, without Oncekey's schema. */
  readonly migrated?: boolean;
  /** A server of the test's own; default: the shared one. */
  readonly server?: Pick<TestServer, "url" | "urlOf">;
}

/** By what it is made of: a tree whose migrations are broken on purpose may use the server of one that is whole. */
const TEMPLATE = `oncekey_template_${createHash("sha256").update(printMigrations()).digest("hex").slice(0, 16)}`;
let own: Promise<TestServer> | undefined;
const cleanups: (() => Promise<void>)[] = [];

afterAll(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await own?.then((server) => server.close());
});

/** The server of this run (see postgres-global.ts), or one of this test file's own. */
export async function sharedServer(): Promise<Pick<TestServer, "url" | "urlOf" | "port">> {
  const port = process.env.ONCEKEY_TEST_POSTGRES;
  if (port === undefined) {
    own ??= startTestServer();
    return own;
  }
  const urlOf = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`;
  return { url: urlOf("postgres"), urlOf, port: Number(port) };
}

/** Runs statements on one connection that is closed afterwards. */
export async function query(url: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) rows = (await client.query(statement)).rows;
    return rows;
  } finally {
    await client.end();
  }
}

/** A migrated (or empty) database of its own. */
export async function createDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const server = options.server ?? (await sharedServer());
  const name = `t_${randomBytes(8).toString("hex")}`;
  const migrated = options.migrated ?? true;
  if (migrated) await ensureTemplate(server);
  await query(server.url, `CREATE DATABASE ${name} TEMPLATE ${migrated ? TEMPLATE : "template0"}`);
  if (options.isolation !== undefined) {
    await query(server.url, `ALTER DATABASE ${name} SET default_transaction_isolation = '${options.isolation}'`);
  }
  const drop = () => query(server.url, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).then(() => {});
  if (options.server === undefined) cleanups.push(drop);
  return { url: server.urlOf(name), drop };
}

/** Runs after the tests of this file, before the databases are dropped: close pools here. */
export function atEnd(cleanup: () => Promise<void>): void {
  cleanups.push(cleanup);
}

/** A pool that is closed at the end of the test file. */
export function testPool(url: string, config: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 10, ...config });
  pool.on("error", () => {});
  atEnd(() => pool.end());
  return pool;
}

/** Every instant that Oncekey stores, by table. */
const INSTANTS = {
  entry: [
    ...["created_at", "lease_until", "not_before", "completed_at", "expires_at", "tombstone_until"],
    ...["sweep_at", "settles_at"],
  ],
  outcome: ["created_at", "not_before", "completed_at", "expires_at"],
  intent: ["started_at", "settles_at"],
  outbox: ["created_at", "available_at", "delivered_at"],
  inbox: ["received_at", "expires_at"],
  producer: ["moved_at"],
  subject: ["moved_at"],
  sweep_target: ["seen_at"],
  resolution: ["resolved_at"],
  audit: ["acted_at"],
  body: ["check_at"],
};

/** What {@link passTime} runs, as one statement. */
export function passTimeSql(ms: number, schema = "oncekey"): string {
  const back = (column: string) => `${column} = ${column} - ${ms} * interval '1 millisecond'`;
  const updates = Object.entries(INSTANTS).map(
    ([table, columns]) => `${table} AS (UPDATE ${schema}.${table} SET ${columns.map(back).join(", ")})`,
  );
  return `WITH ${updates.join(", ")} SELECT`;
}

/**
 * Makes the database believe that `ms` have passed: every instant that Oncekey stored moves into the past. For leases,
 * retention, the age of intents and what waits to be delivered, without waiting.
 */
export async function passTime(url: string, ms: number, schema = "oncekey"): Promise<void> {
  await query(url, passTimeSql(ms, schema));
}

/** One migrated template for all test files: whoever comes first makes it, the others wait for it. */
async function ensureTemplate(server: Pick<TestServer, "url" | "urlOf">): Promise<void> {
  const client = new pg.Client({ connectionString: server.url });
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query("SELECT pg_advisory_lock(7162534)");
    const made = await client.query("SELECT 1 FROM pg_database WHERE datname = $1 AND datistemplate", [TEMPLATE]);
    if (made.rowCount === 0) await makeTemplate(client, server.urlOf(TEMPLATE));
  } finally {
    await client.end();
  }
}

async function makeTemplate(client: pg.Client, url: string): Promise<void> {
  await client.query(`DROP DATABASE IF EXISTS ${TEMPLATE} WITH (FORCE)`);
  await client.query(`CREATE DATABASE ${TEMPLATE} TEMPLATE template0`);
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  await migrate(fromPg(pool));
  await pool.end();
  // The mark of a complete template; it also refuses accidental connections, which would block CREATE DATABASE.
  await client.query(`ALTER DATABASE ${TEMPLATE} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false`);
}
