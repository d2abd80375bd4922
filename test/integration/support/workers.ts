import { type ChildProcess, fork } from "node:child_process";
import type { RunKind } from "oncekey";
import { gate } from "../../support/gate.ts";
import { bundledWorker } from "./bundled-worker.ts";

/** What every process of a fleet is told at its start. */
export interface WorkerSettings {
  readonly url: string;
  readonly poolSize?: number;
  readonly leaseMs?: number;
  readonly maxDurationMs?: number;
  /** Default: the store's. */
  readonly groups?: boolean;
}

/** One run; `holdAt`: block at that place or engine point until told to go. */
export interface WorkerRun {
  readonly kind: RunKind;
  readonly key: string;
  readonly amount?: number;
  readonly waitMs?: number;
  readonly holdAt?: string;
}

export type ToWorker = (WorkerRun & { readonly id: number }) | { readonly go: true };

/** A result, as it travels between processes. */
export interface WorkerAnswer {
  /** The result's kind, or `threw`. */
  readonly kind: string;
  readonly answer: string;
}

export type FromWorker =
  | (WorkerAnswer & { readonly id: number })
  | { readonly held: string }
  | { readonly ready: true };

/** A process of the fleet. */
export interface Worker {
  readonly pid: number;
  run(run: WorkerRun): Promise<WorkerAnswer>;
  /** Resolves when the process blocks at the place that its run was told to hold at. */
  held(): Promise<void>;
  go(): void;
  /** SIGSTOP: the process sleeps, its connections stay open. */
  freeze(): void;
  /** SIGCONT. */
  thaw(): void;
  kill(): Promise<void>;
}

/** Starts `count` processes; they are ready when this resolves. */
export async function startWorkers(count: number, settings: WorkerSettings): Promise<Worker[]> {
  return Promise.all(Array.from({ length: count }, () => startWorker(settings)));
}

async function startWorker(settings: WorkerSettings): Promise<Worker> {
  const child = fork(await bundledWorker(), {
    execArgv: [],
    env: { ...process.env, NODE_NO_WARNINGS: "1", WORKER_SETTINGS: JSON.stringify(settings) },
  });
  const answers = new Map<number, (answer: WorkerAnswer) => void>();
  const ready = gate();
  let held = gate();
  child.on("message", (message: FromWorker) => {
    if ("ready" in message) return ready.open();
    if ("held" in message) return held.open();
    answers.get(message.id)?.(message);
    answers.delete(message.id);
  });
  const died = new Promise<never>((_, reject) =>
    child.once("exit", (code, signal) => reject(new Error(`A worker ended: ${code ?? signal}`))),
  );
  died.catch(() => {});
  await Promise.race([ready.promise, died]);
  let runs = 0;
  const tell = (message: ToWorker) => child.send(message);
  return {
    pid: child.pid ?? 0,
    run(run) {
      const id = runs++;
      const answered = new Promise<WorkerAnswer>((resolve) => answers.set(id, resolve));
      tell({ ...run, id });
      return Promise.race([answered, died]);
    },
    async held() {
      await Promise.race([held.promise, died]);
      held = gate();
    },
    go: () => void tell({ go: true }),
    freeze: () => void child.kill("SIGSTOP"),
    thaw: () => void child.kill("SIGCONT"),
    kill: () => ended(child),
  };
}

/** Kills a child process, unless it has ended, and waits for its end. */
export function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGKILL");
  return exited;
}
