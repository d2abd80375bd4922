import { fork } from "node:child_process";
import { gate } from "../../support/gate.ts";
import { atEnd } from "../../support/postgres.ts";
import { bundledWorker } from "./bundled-worker.ts";
import { ended } from "./workers.ts";

/** The engine's point at which the process kills itself. */
export type ToKafkaWorker = { readonly dieAt: string };

export type FromKafkaWorker = { readonly ready: number } | { readonly armed: true };

/** An endpoint's process. */
export interface KafkaWorker {
  readonly port: number;
  /** The next batch that gets there kills the process. */
  dieAt(point: string): Promise<void>;
  /** Resolves with the signal that ended it. */
  readonly died: Promise<NodeJS.Signals | null>;
}

/** Starts one, on that port or on any free one; killed at the end of the test file. */
export async function startKafkaWorker(url: string, port = 0): Promise<KafkaWorker> {
  const child = fork(await bundledWorker("kafka-append-worker"), {
    execArgv: [],
    env: { ...process.env, NODE_NO_WARNINGS: "1", WORKER_URL: url, WORKER_PORT: String(port) },
  });
  atEnd(() => ended(child));
  const armed = gate();
  const died = new Promise<NodeJS.Signals | null>((resolve) => child.once("exit", (_, signal) => resolve(signal)));
  const ready = new Promise<number>((resolve) =>
    child.on("message", (message: FromKafkaWorker) => {
      if ("ready" in message) resolve(message.ready);
      else armed.open();
    }),
  );
  const early = died.then((signal) => Promise.reject(new Error(`The endpoint ended: ${signal}`)));
  early.catch(() => {});
  return {
    port: await Promise.race([ready, early]),
    died,
    async dieAt(point) {
      child.send({ dieAt: point } satisfies ToKafkaWorker);
      await Promise.race([armed.promise, early]);
    },
  };
}
