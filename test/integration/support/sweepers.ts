import { fork } from "node:child_process";
import { once as next } from "node:events";
import { bundledWorker } from "./bundled-worker.ts";

/** A process that sweeps. */
export interface SweeperProcess {
  /** Stops it, and gives what it met. */
  stop(): Promise<readonly string[]>;
}

/** Starts one; it sweeps when this resolves. */
export async function startSweeper(url: string): Promise<SweeperProcess> {
  const child = fork(await bundledWorker("sweeper"), {
    execArgv: [],
    env: { ...process.env, NODE_NO_WARNINGS: "1", SWEEPER_URL: url },
  });
  const ended = next(child, "exit").then(([code, signal]) => {
    throw new Error(`A sweeper ended: ${code ?? signal}`);
  });
  ended.catch(() => {});
  await Promise.race([next(child, "message"), ended]);
  return {
    async stop() {
      const answered = next(child, "message");
      child.send("stop");
      const [{ failures }] = await Promise.race([answered, ended]);
      await ended.catch(() => {});
      return failures;
    },
  };
}
