import { spawn } from "node:child_process";
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { whenGone } from "../when-gone.ts";

/** A running server of the tests' own, on the loopback. */
export interface BrokerServer {
  readonly port: number;
  /** Ends it, by its pid, and removes its data. */
  close(): Promise<void>;
}

/** A server program to start. */
export interface Program {
  readonly command: string;
  readonly flags: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it answers. Asked until it does. */
  readonly answers: () => Promise<boolean>;
}

/** A folder that the servers' user owns, with what is written into it. */
export interface Home {
  readonly path: string;
  write(name: string, text: string): string;
}

interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

const DEADLINE_MS = 110_000;

/** Whom to run a server as that refuses root; `nobody` exists everywhere. */
export function serverOwner(): Owner {
  if (process.getuid?.() !== 0) return {};
  const nobody = readFileSync("/etc/passwd", "utf8").match(/^nobody:[^:]*:(\d+):(\d+):/m);
  if (nobody === null) throw new Error("Running as root needs a user named nobody to run servers as.");
  return { uid: Number(nobody[1]), gid: Number(nobody[2]) };
}

/** Debian installs servers where ordinary users' PATH does not lead. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

export function makeHome(name: string): Home {
  const { uid, gid } = serverOwner();
  const own = (path: string) => {
    if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
    return path;
  };
  const path = own(mkdtempSync(join(tmpdir(), `oncekey-${name}-`)));
  return {
    path,
    write(file, text) {
      const written = join(path, file);
      writeFileSync(written, text);
      return own(written);
    },
  };
}

/**
 * Starts a server in a process group of its own and waits until it answers. The group ends with this process, however
 * that went: the shell reads from a pipe that only our end can close.
 */
export async function startProgram(
  home: Home,
  { command, flags, env, answers }: Program,
): Promise<() => Promise<void>> {
  const logFile = join(home.path, "server.log");
  const log = openSync(logFile, "a");
  const child = spawn(command, [...flags], {
    ...serverOwner(),
    cwd: home.path,
    detached: true,
    env: { ...process.env, HOME: home.path, LC_ALL: "C.UTF-8", ...env },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()).once("error", () => resolve()));
  const group = child.pid;
  if (group === undefined) throw new Error(`${command} could not be started.`);
  const unwatch = watchOver(group, home.path);
  const stop = async () => {
    unwatch();
    if (child.exitCode === null && child.signalCode === null) process.kill(-group, "SIGKILL");
    await exited;
    rmSync(home.path, { recursive: true, force: true, maxRetries: 5 });
  };
  const deadline = Date.now() + DEADLINE_MS;
  while (!(await answers())) {
    if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
      const said = readFileSync(logFile, "utf8").slice(-2_000);
      await stop();
      throw new Error(`${command} did not start:\n${said}`);
    }
    await sleep(50);
  }
  return stop;
}

function watchOver(group: number, path: string): () => void {
  return whenGone('kill -KILL -- "-$1" 2>/dev/null; rm -rf "$2"', String(group), path);
}
