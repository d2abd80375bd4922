import { fork } from "node:child_process";
import type { IncomingDelivery } from "oncekey";
import { gate } from "../../support/gate.ts";
import { atEnd } from "../../support/postgres.ts";
import { bundledWorker } from "./bundled-worker.ts";
import { ended } from "./workers.ts";

export type ToInboxWorker = {
  readonly id: number;
  readonly delivery: IncomingDelivery;
  /** The engine's point at which the process stops for good. */
  readonly holdAt?: string;
};

export type FromInboxWorker =
  | { readonly ready: true }
  | { readonly held: string }
  | { readonly id: number; readonly kind: string };

/** A consumer process. */
export interface InboxWorker {
  readonly pid: number;
  /** The kind of the result. */
  consume(delivery: IncomingDelivery): Promise<string>;
  /** Begins to take the delivery in, and resolves when the process has stopped at that point. */
  consumeUntil(delivery: IncomingDelivery, point: string): Promise<void>;
  kill(): Promise<void>;
}

/** Starts a consumer process; killed at the end of the test file. */
export async function startInboxWorker(url: string): Promise<InboxWorker> {
  const child = fork(await bundledWorker("inbox-worker"), {
    execArgv: [],
    env: { ...process.env, NODE_NO_WARNINGS: "1", WORKER_URL: url },
  });
  const answers = new Map<number, (kind: string) => void>();
  const ready = gate();
  const held = gate();
  child.on("message", (message: FromInboxWorker) => {
    if ("ready" in message) return ready.open();
    if ("held" in message) return held.open();
    answers.get(message.id)?.(message.kind);
  });
  const died = new Promise<never>((_, reject) =>
    child.once("exit", (code, signal) => reject(new Error(`A consumer ended: ${code ?? signal}`))),
  );
  died.catch(() => {});
  atEnd(() => ended(child));
  await Promise.race([ready.promise, died]);
  let asked = 0;
  const tell = (message: ToInboxWorker) => child.send(message);
  return {
    pid: child.pid ?? 0,
    consume(delivery) {
      const id = asked++;
      const answered = new Promise<string>((resolve) => answers.set(id, resolve));
      tell({ id, delivery });
      return Promise.race([answered, died]);
    },
    async consumeUntil(delivery, holdAt) {
      tell({ id: asked++, delivery, holdAt });
      await Promise.race([held.promise, died]);
    },
    kill: () => ended(child),
  };
}
