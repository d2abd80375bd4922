import { fork } from "node:child_process";
import { onTestFinished } from "vitest";
import { bundledWorker } from "./bundled-worker.ts";
import type { FromSender, SenderSettings, SenderStep, ToldResult } from "./client-sender.ts";
import { ended } from "./workers.ts";

/** A process that submits. */
export interface Sender {
  readonly pid: number;
  /** Resolves when it has told of that event. */
  told(event: string): Promise<void>;
  /** Resolves when it has come to the step that it was told to stop at. */
  stopped(): Promise<SenderStep>;
  /** What it learned in the end. */
  result(): Promise<{ resumed: Readonly<Record<string, ToldResult>>; submitted: ToldResult }>;
  kill(): Promise<void>;
}

/** Starts one; it is killed when the test ends at the latest. */
export async function startSender(settings: SenderSettings): Promise<Sender> {
  const child = fork(await bundledWorker("client-sender"), {
    execArgv: [],
    env: { ...process.env, NODE_NO_WARNINGS: "1", SENDER_SETTINGS: JSON.stringify(settings) },
  });
  onTestFinished(() => ended(child));
  const heard: FromSender[] = [];
  const looking = new Set<() => void>();
  const look = () => {
    for (const one of looking) one();
  };
  child.on("message", (message: FromSender) => {
    heard.push(message);
    look();
  });
  child.on("exit", look);
  const find = <T>(pick: (message: FromSender) => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const one = () => {
        const found = heard.map(pick).find((value) => value !== undefined);
        const over = child.exitCode ?? child.signalCode;
        if (found !== undefined) resolve(found);
        else if (over !== null) reject(new Error(`The sender ended (${over}); it told ${JSON.stringify(heard)}.`));
        else return;
        looking.delete(one);
      };
      looking.add(one);
      one();
    });
  return {
    pid: child.pid ?? 0,
    told: (event) =>
      find((message) => ("event" in message && message.event === event ? true : undefined)).then(() => {}),
    stopped: () => find((message) => ("stoppedAt" in message ? message.stoppedAt : undefined)),
    result: () => find((message) => ("submitted" in message ? message : undefined)),
    kill: () => ended(child),
  };
}
