import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { atEnd } from "../../support/postgres.ts";
import { cliProgram } from "./cli.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** A worker that runs. */
export interface WorkerProcess {
  stdout(): string;
  stderr(): string;
  /** Resolves with the exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  signal(name: NodeJS.Signals): void;
  /** Waits until the output matches. Raises where the process ends before, or after 20 seconds. */
  until(stream: "stdout" | "stderr", pattern: RegExp): Promise<void>;
}

/** `oncekey worker` over this repository's sources, so that the module can import the package by its public names. */
export function workerFromSources(module: string, url: string, ...more: readonly string[]): WorkerProcess {
  const main = join(root, "src/cli/main.ts");
  const args = ["--conditions=oncekey-source", "--import", "tsx", main, "worker", module, ...more];
  return watched(spawn(process.execPath, args, { cwd: root, env: { ...cleanEnvironment(), DATABASE_URL: url } }));
}

/** `oncekey worker` as it is installed, with a module of that text. */
export async function workerOf(text: string, ending = "mjs", ...more: readonly string[]): Promise<WorkerProcess> {
  const dir = await mkdtemp(join(tmpdir(), "oncekey-worker-"));
  atEnd(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, `worker.${ending}`), text);
  const args = [await cliProgram(), "worker", `./worker.${ending}`, ...more];
  return watched(spawn(process.execPath, args, { cwd: dir, env: cleanEnvironment() }));
}

/** Any command as it is installed, for as long as it runs. */
export async function runningCli(args: readonly string[], url: string): Promise<WorkerProcess> {
  const env = { ...cleanEnvironment(), DATABASE_URL: url };
  return watched(spawn(process.execPath, [await cliProgram(), ...args], { env }));
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:PG|DATABASE_URL|NODE_)/.test(name)));
}

const LIMIT_MS = 20_000;

function watched(child: ChildProcess): WorkerProcess {
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  let over = false;
  const ended = new Promise<number | string>((done) => {
    child.once("close", (code, signal) => {
      over = true;
      done(code ?? signal ?? "");
    });
  });
  atEnd(async () => {
    if (!over) child.kill("SIGKILL");
    await ended;
  });
  return {
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    ended,
    signal: (name) => void child.kill(name),
    async until(stream, pattern) {
      for (const deadline = Date.now() + LIMIT_MS; !pattern.test(output[stream]); await sleep(20)) {
        if (over || Date.now() > deadline) throw new Error(`No ${pattern}:\n${output.stdout}\n${output.stderr}`);
      }
    },
  };
}
