import { randomBytes } from "node:crypto";
import { chownSync, closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type DataHome, runProgram, serverDirectory } from "./embedded-home.ts";
import { publishJson, readJson } from "./ownership.ts";
import { isAlive, markOf, until } from "./processes.ts";

/** A running embedded server. */
export interface EmbeddedDatabase {
  /** Connection string of the example's database, password included. */
  readonly url: string;
  /** Ends the server within 30 seconds: first by a clean shutdown, then without ceremony (it recovers at the next start). */
  stop(): void;
}

const START_LIMIT_MS = 60_000;
const DATABASE = "payments";
// "terse": the detail of a refused row is the row, and rows hold what customers sent. It has no place in a log.
const SERVER_OPTIONS =
  "-c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=200 -c log_error_verbosity=terse";

/**
 * The embedded server of this data directory: adopted where one still runs (an API that was killed leaves it behind),
 * else started, which also recovers what a killed server left. Only the owner of the directory may call this.
 */
export async function startEmbedded(home: DataHome): Promise<EmbeddedDatabase> {
  const cluster = join(home.dir, "postgres");
  const password = passwordOf(home);
  if (!existsSync(cluster)) createCluster(home, cluster, password);
  const url = (await adopt(home, cluster, password)) ?? (await start(home, cluster, password));
  return { url, stop: () => stopServer(home, cluster) };
}

/** Kept in a file of its own (mode 0600): the server listens on loopback, where every local user could knock. */
function passwordOf(home: DataHome): string {
  const path = join(home.dir, "database-password.json");
  const known = readJson<string>(path);
  if (known !== null) return known;
  const fresh = randomBytes(18).toString("base64url");
  publishJson(path, fresh);
  return fresh;
}

/** Made beside its final place and renamed, so that a kill halfway leaves nothing that looks like a cluster. */
function createCluster(home: DataHome, cluster: string, password: string): void {
  const draft = `${cluster}.new`;
  const passwordFile = `${cluster}.password`;
  rmSync(draft, { recursive: true, force: true });
  rmSync(passwordFile, { force: true });
  serverDirectory(home, draft);
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (home.account !== null) chownSync(passwordFile, home.account.uid, home.account.gid);
  const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  const access = ["--username=postgres", "--auth=scram-sha-256", `--pwfile=${passwordFile}`];
  runProgram(home, "initdb", [`--pgdata=${draft}`, ...access, ...locale], START_LIMIT_MS);
  rmSync(passwordFile);
  renameSync(draft, cluster);
}

async function adopt(home: DataHome, cluster: string, password: string): Promise<string | null> {
  const pid = readPostmaster(cluster)?.pid;
  const mark = pid === undefined ? null : markOf(pid);
  if (mark === null) return null;
  // The pid may by now belong to somebody else; only a server that answers with our password is ours.
  const seen = await until(30_000, async () => {
    if (!isAlive(mark)) return { url: null };
    const port = readPostmaster(cluster)?.port;
    const url = port === undefined ? null : await readyUrl(port, password);
    return url === null ? null : { url };
  });
  if (seen === null) stopServer(home, cluster);
  return seen?.url ?? null;
}

const START_TRIES = 10;
const START_PAUSE_MS = 500;

async function start(home: DataHome, cluster: string, password: string): Promise<string> {
  const log = join(home.dir, "postgres.log");
  closeSync(openSync(log, "a", 0o600));
  if (home.account !== null) chownSync(log, home.account.uid, home.account.gid);
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const options = `-p ${port} ${SERVER_OPTIONS}`;
    try {
      runProgram(home, "pg_ctl", ["-D", cluster, "-l", log, "-o", options, "-w", "-s", "start"], START_LIMIT_MS);
    } catch (cause) {
      // Somebody else may have taken the port since it was free; and the children of a server that was killed hold its
      // shared memory until they notice.
      if (attempt < START_TRIES) {
        await sleep(START_PAUSE_MS);
        continue;
      }
      throw new Error(`The embedded database did not start; its log is ${log}. The data is untouched.`, { cause });
    }
    const url = await until(START_LIMIT_MS, () => readyUrl(port, password));
    if (url === null) throw new Error(`The embedded database does not answer on port ${port}; its log is ${log}.`);
    return url;
  }
}

function stopServer(home: DataHome, cluster: string): void {
  if (!isRunning(home, cluster)) return;
  for (const mode of ["fast", "immediate"]) {
    try {
      runProgram(home, "pg_ctl", ["-D", cluster, "-m", mode, "-w", "-s", "-t", "12", "stop"], 15_000);
      return;
    } catch (error) {
      if (!isRunning(home, cluster)) return;
      if (mode === "immediate") throw error;
    }
  }
}

function isRunning(home: DataHome, cluster: string): boolean {
  try {
    runProgram(home, "pg_ctl", ["-D", cluster, "-s", "status"], 10_000);
    return true;
  } catch {
    return false;
  }
}

/** Lines 1 and 4 of postmaster.pid. */
function readPostmaster(cluster: string): { pid: number; port: number } | null {
  try {
    const lines = readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n");
    const [pid, port] = [Number(lines[0]), Number(lines[3])];
    return pid > 0 && port > 0 ? { pid, port } : null;
  } catch {
    return null;
  }
}

/** The database's connection string once the server takes connections; the database is made where it is missing. */
async function readyUrl(port: number, password: string): Promise<string | null> {
  const urlOf = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  const client = new pg.Client({ connectionString: urlOf("postgres"), connectionTimeoutMillis: 5_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const { rowCount } = await client.query("select from pg_database where datname = $1", [DATABASE]);
    if (rowCount === 0) await client.query(`create database ${DATABASE}`);
    return urlOf(DATABASE);
  } catch {
    return null;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => probe.once("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
