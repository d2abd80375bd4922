import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { whenGone } from "../../test/support/when-gone.ts";
import { processes, signal, textOf } from "./processes.ts";

/** A folder that the servers' account owns, and the programs that run in it. */
export interface Host {
  readonly root: string;
  /** Makes a folder of that account's own. */
  folder(name: string): string;
  write(name: string, text: string): string;
  /** Starts a program as that account; what it prints goes to `<name>.log`. */
  start(name: string, command: string, args: readonly string[]): Started;
  /** Kills what still runs, and removes the folder. */
  close(): Promise<void>;
}

/** A program that was started. */
export interface Started {
  readonly pid: number;
  readonly ended: Promise<void>;
}

interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

/** PostgreSQL refuses to run as root; Debian's packages bring an account for it. */
function serverAccount(): Account {
  if (process.getuid?.() !== 0) return {};
  const known = readFileSync("/etc/passwd", "utf8").match(/^postgres:[^:]*:(\d+):(\d+):/m);
  if (known === null) throw new Error("Running as root needs the user postgres (Debian: postgresql-15).");
  return { uid: Number(known[1]), gid: Number(known[2]) };
}

/** Opens a folder below the temporary one. Everything in it ends with this process, however that ends. */
export function openHost(): Host {
  const account = serverAccount();
  const own = (path: string) => {
    if (account.uid !== undefined && account.gid !== undefined) chownSync(path, account.uid, account.gid);
    return path;
  };
  const root = own(mkdtempSync(join(tmpdir(), "oncekey-failover-")));
  chmodSync(root, 0o755);
  const running = new Set<ChildProcess>();
  const unwatch = whenGone(`${KILL_BELOW}; sleep 1; rm -rf "$1"`, root);
  return {
    root,
    folder(name) {
      mkdirSync(join(root, name), { mode: 0o700, recursive: true });
      return own(join(root, name));
    },
    write(name, text) {
      writeFileSync(join(root, name), text);
      return own(join(root, name));
    },
    start: (name, command, args) => startProgram({ root, account, running }, name, command, args),
    async close() {
      unwatch();
      killBelow(root);
      await Promise.all([...running].map(exitOf));
      rmSync(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

function startProgram(
  { root, account, running }: { root: string; account: Account; running: Set<ChildProcess> },
  name: string,
  command: string,
  args: readonly string[],
): Started {
  // A file, not a pipe: a server that outlives us must not block on a pipe that nobody reads.
  const log = openSync(join(root, `${name}.log`), "a");
  const child = spawn(command, [...args], {
    ...account,
    cwd: root,
    detached: true,
    // The last one: without it etcd 3.4 refuses to run on arm64.
    env: { PATH: process.env.PATH, HOME: root, LC_ALL: "C.UTF-8", ETCD_UNSUPPORTED_ARCH: process.arch },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  if (child.pid === undefined) throw new Error(`${command} could not be started.`);
  running.add(child);
  const ended = exitOf(child).then(() => void running.delete(child));
  return { pid: child.pid, ended };
}

function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => void child.once("exit", () => resolve()).once("error", () => resolve()));
}

/** Whose command line names our own folder: etcd, Patroni and the postmaster. Its children end with it. */
const KILL_BELOW = `for p in /proc/[0-9]*; do
  if tr '\\0' ' ' < "$p/cmdline" 2>/dev/null | grep -qF -- "$1/"; then
    [ "\${p#/proc/}" = "$$" ] || { kill -CONT "\${p#/proc/}"; kill -KILL "\${p#/proc/}"; } 2>/dev/null
  fi
done`;

function killBelow(root: string): void {
  for (const pid of processes()) {
    if (pid !== process.pid && textOf(`/proc/${pid}/cmdline`).includes(`${root}/`)) signal(pid, "SIGKILL");
  }
}
