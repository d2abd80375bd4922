import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { until } from "../processes.ts";

/** The example's API as a child process that can be killed and started again. */
export interface ApiProcess {
  /** Where it answers; changes with each start, empty while it is down. */
  readonly urls: { api: string; psp: string; database: string };
  /** Rejects when it ends without being asked to. Never resolves. */
  readonly crashed: Promise<never>;
  /** All that it has printed so far, over all of its lives. */
  output(): string;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Ends it, the database and the provider; also what an API that ended by itself left behind. */
  stop(): Promise<void>;
}

const START_LIMIT_MS = 60_000;

/** An API that is not running yet. */
export function apiProcess(env: Readonly<Record<string, string>>): ApiProcess {
  const urls = { api: "", psp: "", database: "" };
  const [crashed, crash] = rejectable();
  let output = "";
  let child: ChildProcess | undefined;
  let stopped: Promise<void> | undefined;

  const start = async () => {
    let latest = "";
    const started = spawnApi(env, (text) => {
      output += text;
      latest += text;
    });
    child = started;
    const ready = await readyLine(started, () => latest);
    started.once("exit", (code, signal) => {
      if (child === started) crash(new Error(`The API ended by itself (${code ?? signal}):\n${latest}`));
    });
    Object.assign(urls, JSON.parse(ready));
  };
  const end = async (signal: NodeJS.Signals) => {
    const running = child;
    child = undefined;
    urls.api = "";
    if (running === undefined || hasEnded(running)) return;
    const ended = new Promise((resolve) => running.once("exit", resolve));
    running.kill(signal);
    await ended;
  };
  const stopAll = async () => {
    // Only an API that adopts them can stop the database and the provider of one that is gone.
    if (child === undefined || hasEnded(child)) await start();
    await end("SIGTERM");
  };
  const stop = () => {
    stopped ??= stopAll();
    return stopped;
  };
  return { urls, crashed, output: () => output, start, kill: () => end("SIGKILL"), stop };
}

function spawnApi(env: Readonly<Record<string, string>>, print: (text: string) => void): ChildProcess {
  const script = fileURLToPath(new URL("../start.ts", import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, script], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", print);
  return child;
}

async function readyLine(child: ChildProcess, printed: () => string): Promise<string> {
  const ready = await until(START_LIMIT_MS, () => {
    if (hasEnded(child)) throw new Error(`The example did not start:\n${printed()}`);
    return /^oncekey payments ready (\{.*\})$/m.exec(printed())?.[1] ?? null;
  });
  if (ready === null) throw new Error(`The example did not become ready:\n${printed()}`);
  return ready;
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/** A promise that only ever rejects, and what rejects it. Nobody has to wait for it. */
function rejectable(): [promise: Promise<never>, reject: (error: Error) => void] {
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<never>((_resolve, rejectPromise) => {
    reject = rejectPromise;
  });
  promise.catch(() => undefined);
  return [promise, reject];
}
