import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bundledExample } from "./bundled-example.ts";

/** What the ready line of an example process says, and how to end it. */
export interface Example {
  readonly api: string;
  readonly psp: string;
  readonly database: string;
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  /** SIGTERM; resolves with the exit code. Raises when it takes longer than 30 seconds. */
  stop(): Promise<number | null>;
  /** SIGKILL of the API process alone; resolves when it is gone. */
  kill(): Promise<void>;
  /** Resolves when the process has ended, however. */
  readonly ended: Promise<number | null>;
}

/** How an example process is started. */
export interface ExampleOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Another account to run it under (root only). */
  readonly account?: { readonly uid: number; readonly gid: number };
  /** Which of the bundled programs. Default `start`. */
  readonly script?: "start" | "psp" | "worker";
  /** Started instead of node with the script. */
  readonly command?: readonly [string, ...string[]];
}

const CHECKOUT = resolve(import.meta.dirname, "..", "..", "..");
const START_LIMIT_MS = 60_000;
const ENDED = "ended";

/** A directory for one example's data, reachable for the database's account. */
export function makeDataDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "oncekey-e2e-"));
  chmodSync(dir, 0o755);
  return dir;
}

/** Removes a data directory, after everything in it has been stopped. */
export function removeDataDir(dir: string): void {
  rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

/** Spawns an example process without waiting until it is ready. */
export async function spawnExample({ env = {}, account, script = "start", command }: ExampleOptions) {
  // Bundled: each process that translates the sources for itself costs more than two seconds of a core.
  const [program, ...args] = command ?? [process.execPath, join(await bundledExample(), `${script}.mjs`)];
  const child = spawn(program, args, {
    cwd: CHECKOUT,
    env: { ...cleanEnvironment(), PORT: "0", PSP_PORT: "0", ONCEKEY_LAB: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...account,
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  // `exit`, not `close`: a process that outlives the example on purpose may still hold its standard error.
  const ended = new Promise<number | null>((done) => child.once("exit", (code) => done(code)));
  return { child, output, ended };
}

/** Starts an example process and waits for its ready line. Raises with its standard error where it ends before. */
export async function startExample(options: ExampleOptions): Promise<Example> {
  const { child, output, ended } = await spawnExample(options);
  const ready = await Promise.race([readyLine(output), ended.then(() => ENDED), sleep(START_LIMIT_MS, null)]);
  if (ready === null || ready === ENDED) {
    child.kill("SIGKILL");
    throw new Error(`The example did not become ready:\n${output.stderr}`);
  }
  const parsed = JSON.parse(ready) as Pick<Example, "api" | "psp" | "database" | "pid">;
  return {
    ...parsed,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    ended,
    stop: () => stop(child, ended),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function stop(child: ChildProcess, ended: Promise<number | null>): Promise<number | null> {
  child.kill("SIGTERM");
  const code = await Promise.race([ended, sleep(30_000, "late" as const)]);
  if (code === "late") throw new Error("The example did not stop within 30 seconds.");
  return code;
}

async function readyLine(output: { readonly stdout: string }): Promise<string> {
  for (;;) {
    const line = /^oncekey payments (?:worker )?ready (\{.*\})$/m.exec(output.stdout)?.[1];
    if (line !== undefined) return line;
    await sleep(20);
  }
}

/** The environment without what would change the example. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const ours = /^(ONCEKEY_|PSP_|DATABASE_URL$|PORT$|VITEST|NODE_OPTIONS$|NODE_ENV$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}

/** Whether a process runs: neither gone nor a zombie that nobody has waited for yet. */
export function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/stat`;
  if (!existsSync("/proc/self/stat")) return signalled(pid);
  try {
    const stat = readFileSync(path, "utf8");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

function signalled(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Waits until the condition holds. Raises with `what` after `limitMs`. */
export async function eventually(what: string, limitMs: number, condition: () => boolean | Promise<boolean>) {
  const deadline = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await sleep(50);
  }
}
