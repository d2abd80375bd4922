import { created, createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import { until } from "../support/until.ts";
import type { Cluster } from "./cluster.ts";
import type { Node } from "./node.ts";

/** What a commit does: it was answered, or it waits for a standby that does not confirm. */
export type Commit = "answered" | "waits";

/** A commit on a node, under a `synchronous_commit` of its session's own. */
export interface Probe {
  readonly commit: Commit;
  /** Cancels it as an operator would; whether its client is told that it was carried out. */
  cancel(): Promise<boolean>;
  /** Resolves once it has ended by itself. */
  close(): Promise<void>;
}

const LIMIT_MS = 20_000;
let probes = 0;

/** Commits an operation of Oncekey, past the router, and sees whether it is answered. */
export async function probeOperation(cluster: Cluster, node: Node, database: string, level: string): Promise<Probe> {
  const { pool, name } = poolOf(node, database, level);
  const once = createOncekey({ store: postgresStore(fromPg(pool)), onError: () => {} });
  const probe = once.transaction({
    name: "lab.probe",
    version: 1,
    input: {},
    run: async () => created("/probes/1", {}),
  });
  await once.start();
  const commit = once.run(probe, { scope: { tenant: "lab", client: null }, key: name, input: {} });
  return watch(cluster, { node, pool, name, commit: commit.then(({ kind }) => kind === "completed") });
}

/** The same with a bare statement, for comparison. It writes WAL: a transaction that writes none waits for nobody. */
export function probeStatement(cluster: Cluster, node: Node, database: string, level: string): Promise<Probe> {
  const { pool, name } = poolOf(node, database, level);
  const commit = pool.query("SELECT pg_logical_emit_message(true, 'lab', 'probe')").then(() => true);
  return watch(cluster, { node, pool, name, commit });
}

function poolOf(node: Node, database: string, level: string): { pool: pg.Pool; name: string } {
  const name = `probe_${++probes}_${level}`;
  const pool = new pg.Pool({
    host: "127.0.0.1",
    user: "postgres",
    port: node.port,
    database,
    application_name: name,
    options: `-c synchronous_commit=${level}`,
    max: 2,
  });
  pool.on("error", () => {});
  pool.on("connect", (client) => void client.on("error", () => {}));
  return { pool, name };
}

interface Watched {
  readonly node: Node;
  readonly pool: pg.Pool;
  readonly name: string;
  /** Whether it was carried out; rejected where it failed. */
  readonly commit: Promise<boolean>;
}

/** Nothing is told by time: either the answer is there, or the server says that it waits for a standby. */
async function watch(cluster: Cluster, { node, pool, name, commit }: Watched): Promise<Probe> {
  let answer: Commit | Error | null = null;
  const ended = commit.then(
    (isDone) => {
      answer = isDone ? "answered" : new Error(`The probe ${name} was not carried out.`);
    },
    (error: Error) => {
      answer = error;
    },
  );
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE application_name = '${name}' AND wait_event = 'SyncRep'`;
  const found = await until(`the probe ${name} to be answered or to wait`, LIMIT_MS, async () => {
    return answer ?? ((await cluster.ask(node, waiting)).length > 0 ? "waits" : null);
  });
  if (found instanceof Error) throw found;
  return {
    commit: found,
    async cancel() {
      const backend = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '${name}'`;
      await cluster.ask(node, backend);
      return commit.catch(() => false);
    },
    async close() {
      await ended;
      await pool.end();
    },
  };
}
