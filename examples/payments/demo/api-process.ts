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
  const script = fileURLToPath(new URL("../start.ts", import.meta.url));
  let child: ChildProcess | undefined;
  let output = "";
  let crash: (error: Error) => void = () => undefined;
  const crashed = new Promise<never>((_resolve, reject) => {
    crash = reject;
  });
  // Whoever does not wait for it is told by what happens next.
  crashed.catch(() => undefined);
  const end = async (signal: NodeJS.Signals) => {
    const running = child;
    child = undefined;
    urls.api = "";
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const ended = new Promise((resolve) => running.once("exit", resolve));
    running.kill(signal);
    await ended;
  };
  const api: ApiProcess = {
    urls,
    crashed,
    output: () => output,
    async start() {
      const started = spawn(process.execPath, [...process.execArgv, script], {
        env: { ...process.env, ...env },
        stdio: ["ignore", "pipe", "pipe"],
      });
      child = started;
      let latest = "";
      for (const stream of [started.stdout, started.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          output += text;
          latest += text;
        });
      }
      const ready = await until(START_LIMIT_MS, () => {
        if (started.exitCode !== null) throw new Error(`The example did not start:\n${latest}`);
        return /^oncekey payments ready (\{.*\})$/m.exec(latest)?.[1] ?? null;
      });
      if (ready === null) throw new Error(`The example did not become ready:\n${latest}`);
      started.once("exit", (code, signal) => {
        if (child === started) crash(new Error(`The API ended by itself (${code ?? signal}):\n${latest}`));
      });
      Object.assign(urls, JSON.parse(ready));
    },
    kill: () => end("SIGKILL"),
    async stop() {
      // Only an API that adopts them can stop the database and the provider of one that is gone.
      if (child === undefined || child.exitCode !== null) await api.start();
      await end("SIGTERM");
    },
  };
  return api;
}
