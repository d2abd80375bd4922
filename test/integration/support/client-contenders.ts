import { type ChildProcess, fork } from "node:child_process";
import { bundledWorker } from "./bundled-worker.ts";
import type { FromContender } from "./client-contender.ts";

/** A process that takes a lock. */
export interface Contender {
  readonly child: ChildProcess;
  /** Resolves with what it tells next, `null` when it ends before. */
  next(): Promise<FromContender | null>;
  /** Answers what it asked. */
  go(): void;
}

/** Which lock, and how often. */
export interface ContenderSettings {
  readonly directory: string;
  readonly name: string;
  readonly rounds: number;
}

/** The environment of a contender. */
export function contenderEnv(settings: ContenderSettings): NodeJS.ProcessEnv {
  return { ...process.env, NODE_NO_WARNINGS: "1", CONTENDER_SETTINGS: JSON.stringify(settings) };
}

/** Starts one. */
export async function startContender(settings: ContenderSettings): Promise<Contender> {
  const child = fork(await bundledWorker("client-contender"), { execArgv: [], env: contenderEnv(settings) });
  const told: (FromContender | null)[] = [];
  const asked: ((message: FromContender | null) => void)[] = [];
  const tell = (message: FromContender | null) => {
    const waiting = asked.shift();
    if (waiting === undefined) told.push(message);
    else waiting(message);
  };
  child.on("message", (message: FromContender) => tell(message));
  child.on("exit", () => tell(null));
  return {
    child,
    next: () => new Promise((resolve) => (told.length > 0 ? resolve(told.shift() ?? null) : asked.push(resolve))),
    go: () => void child.send("go"),
  };
}
