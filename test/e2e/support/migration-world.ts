import type { ChildProcess } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { bundle } from "../../support/bundle.ts";
import { atEnd, createDatabase, query } from "../../support/postgres.ts";
import { killProgram, type Program, startProgram } from "../../support/program.ts";

const example = (file: string) => fileURLToPath(new URL(`../../../examples/migrating/${file}`, import.meta.url));

/** An answer as a client reads it. */
export interface Said {
  readonly status: number;
  readonly text: string;
  readonly type: string | null;
  readonly replayed: boolean;
}

/** A process of one of the two services, under a name that its connections bear as well. */
export interface Service {
  readonly name: string;
  /** One attempt. Raises where the connection breaks. */
  ask(key: string, body: unknown): Promise<Said>;
  /** Attempts until the answer is final: not 409, not 5xx, not a broken connection. */
  insist(key: string, body: unknown): Promise<Said>;
  kill(): Promise<void>;
  /** Ends it as a deployment does. */
  stop(): Promise<void>;
  /** Starts it anew where it is not running, with other settings where some are given. */
  start(env?: Readonly<Record<string, string>>): Promise<void>;
}

/** The database under both services. */
export interface MigrationWorld {
  readonly url: string;
  service(kind: "old" | "new", name: string, env?: Readonly<Record<string, string>>): Promise<Service>;
  /** Keeps every payment from going on until it is released; claims are made all the same. */
  holdWork(): Promise<{ release(): Promise<void> }>;
  /** Resolves when so many connections of the service wait for a lock. */
  waiting(name: string, count?: number): Promise<void>;
  /** Resolves when the service, which was killed, has no connection left. */
  gone(name: string): Promise<void>;
  /** Makes every lock of the old table look older than a minute. */
  locksGrowOld(): Promise<void>;
  /** Ids of the payments that were made for that reference. */
  paid(reference: string): Promise<string[]>;
  balance(): Promise<number>;
}

/** What the account holds at first. */
export const MONEY = 1_000_000;
const PATIENCE_MS = 110_000;

/** The services' tables without Oncekey's: what a team has before it migrates. */
export async function migrationWorld(): Promise<MigrationWorld> {
  const { url } = await createDatabase({ migrated: false });
  const schema = await readFile(example("schema.sql"), "utf8");
  await query(url, schema, `INSERT INTO accounts VALUES ('acme', ${MONEY})`);
  // Whoever takes an old lock over deadlocks with its owner, should that wake up: one of the two is told, soon.
  await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET deadlock_timeout = '100ms'`);
  const programs = await bundledPrograms();
  const until = async (sql: string) => {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      if ((await query(url, sql))[0]?.yes === true) return;
      if (performance.now() > deadline) throw new Error(`Never came true: ${sql}`);
      await sleep(20);
    }
  };
  const connections = (name: string) => `SELECT count(*) FROM pg_stat_activity WHERE application_name = '${name}'`;
  return {
    url,
    service: (kind, name, env) =>
      startService(join(programs, `${kind}.mjs`), { DATABASE_URL: url, PGAPPNAME: name, ...env }),
    holdWork: () => holdWork(url),
    waiting: (name, count = 1) =>
      until(`SELECT (${connections(name)} AND wait_event_type = 'Lock') >= ${count} AS yes`),
    gone: (name) => until(`SELECT (${connections(name)}) = 0 AS yes`),
    locksGrowOld: async () => {
      await query(url, "UPDATE idempotency_keys SET locked_at = locked_at - interval '1 hour' WHERE status IS NULL");
    },
    paid: async (reference) =>
      (await query(url, `SELECT id FROM payments WHERE reference = '${reference}'`)).map(({ id }) => String(id)),
    balance: async () => Number((await query(url, "SELECT balance_minor FROM accounts"))[0]?.balance_minor),
  };
}

async function bundledPrograms(): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-migrating-"));
  atEnd(() => rm(outDir, { recursive: true, force: true }));
  await bundle({ programs: { old: example("old.ts"), new: example("new.ts") }, outDir });
  return outDir;
}

async function holdWork(url: string): Promise<{ release(): Promise<void> }> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  await client.query("BEGIN");
  await client.query("SELECT FROM accounts FOR UPDATE");
  let released: Promise<void> | undefined;
  const release = () => {
    released ??= client.end();
    return released;
  };
  // A test that fails while it holds must not hold the others.
  atEnd(release);
  return { release };
}

async function startService(file: string, given: Readonly<Record<string, string>>): Promise<Service> {
  let env = given;
  let child: ChildProcess | undefined;
  let program: Program | undefined;
  const kill = async () => {
    if (child !== undefined) await killProgram(child);
    program = undefined;
  };
  atEnd(kill);
  const ask = (key: string, body: unknown) => {
    if (program === undefined) return Promise.reject(new Error(`${env.PGAPPNAME} is not running`));
    return post(`${program.url}/payments`, key, body);
  };
  const service: Service = {
    name: given.PGAPPNAME ?? "",
    ask,
    insist: (key, body) => insist(() => ask(key, body)),
    kill,
    async stop() {
      program?.signal("SIGTERM");
      const how = await program?.ended;
      program = undefined;
      if (how !== "0") throw new Error(`${service.name} ended with ${how}`);
    },
    async start(more = {}) {
      if (program !== undefined) return;
      env = { ...env, ...more };
      program = await startProgram({ file, env, cwd: tmpdir() }, (started) => {
        child = started;
      });
    },
  };
  await service.start();
  return service;
}

/** `body`: a text is sent as it stands. */
async function post(url: string, key: string, body: unknown): Promise<Said> {
  const headers = { authorization: "Bearer acme", "content-type": "application/json", "idempotency-key": key };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const answer = await fetch(url, { method: "POST", headers, body: text });
  const replayed = answer.headers.get("idempotent-replayed") === "true";
  return { status: answer.status, text: await answer.text(), type: answer.headers.get("content-type"), replayed };
}

async function insist(attempt: () => Promise<Said>): Promise<Said> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const said = await attempt().catch(String);
    if (typeof said !== "string" && said.status !== 409 && said.status < 500) return said;
    if (performance.now() > deadline) throw new Error(`No final answer: ${JSON.stringify(said)}`);
    await sleep(50);
  }
}
