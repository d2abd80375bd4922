import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { findProgram, serverOwner } from "../../support/brokers/program.ts";
import { freePort } from "../../support/free-port.ts";

/** A PgBouncer of the test's own, in front of one server. */
export interface PgBouncer {
  urlOf(database: string): string;
  close(): Promise<void>;
}

/** The command that starts it, or `null` where it is not installed. */
export function pgbouncerBinary(): string | null {
  return findProgram("pgbouncer");
}

const DEADLINE_MS = 20_000;

/** For how long a client has a server connection to itself. */
export type PoolMode = "session" | "transaction" | "statement";

/** Starts one on a free port. Few server connections: clients really share them, statement by statement. */
export async function startPgBouncer(
  binary: string,
  serverPort: number,
  mode: PoolMode = "transaction",
): Promise<PgBouncer> {
  const owner = serverOwner();
  const directory = mkdtempSync(join(tmpdir(), "oncekey-pgbouncer-"));
  const port = await freePort();
  const file = join(directory, "pgbouncer.ini");
  writeFileSync(file, configuration({ port, serverPort, directory, mode }));
  if (owner.uid !== undefined && owner.gid !== undefined) {
    for (const path of [directory, file]) chownSync(path, owner.uid, owner.gid);
  }
  const child = spawn(binary, ["-q", file], { ...owner, cwd: "/", stdio: "ignore" });
  const urlOf = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`;
  await ready(child, urlOf("postgres"), join(directory, "pgbouncer.log"));
  return {
    urlOf,
    async close() {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      if (child.kill("SIGKILL")) await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

interface Configuration {
  readonly port: number;
  readonly serverPort: number;
  readonly directory: string;
  readonly mode: PoolMode;
}

function configuration({ port, serverPort, directory, mode }: Configuration): string {
  return `[databases]
* = host=127.0.0.1 port=${serverPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 12
max_client_conn = 500
logfile = ${join(directory, "pgbouncer.log")}
`;
}

async function ready(child: ChildProcess, url: string, log: string): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS;
  while (!(await answers(url))) {
    if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
      throw new Error(`PgBouncer did not start:\n${readFileSync(log, "utf8").slice(-2_000)}`);
    }
    await sleep(20);
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("SELECT 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
