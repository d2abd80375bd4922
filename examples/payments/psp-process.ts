import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readJson } from "./ownership.ts";
import { endProcess, isAlive, type ProcessMark, until } from "./processes.ts";

/** The running provider. */
export interface PspProcess {
  readonly url: string;
  stop(): Promise<void>;
}

interface Running extends ProcessMark {
  readonly url: string;
}

const START_LIMIT_MS = 20_000;
const LOOK_EVERY_MS = 500;

/**
 * The provider of this data directory: adopted where one still runs (it is a process group of its own and outlives an
 * API that was killed), else started on `port`. While this process lives, a provider that dies is started again at the
 * same address. Only the owner of the directory may call this.
 */
export async function startPsp(dir: string, port: number): Promise<PspProcess> {
  let running = await runningPsp(dir, port);
  const { url } = running;
  const stopping = new AbortController();
  const { signal } = stopping;
  const watch = (async () => {
    while (!signal.aborted) {
      // Woken by the stop: its timer does not keep the process alive, and nobody else may be left who does.
      await sleep(LOOK_EVERY_MS, undefined, { ref: false, signal }).catch(() => undefined);
      if (signal.aborted || isAlive(running)) continue;
      console.error(`The provider ended; starting it again at ${url}.`);
      running = await runningPsp(dir, Number(new URL(url).port)).catch((error) => {
        console.error(error instanceof Error ? error.message : error);
        return running;
      });
    }
  })();
  return {
    url,
    async stop() {
      stopping.abort();
      await Promise.race([watch, sleep(START_LIMIT_MS, undefined, { ref: false })]);
      await endProcess(running, 5_000);
    },
  };
}

async function runningPsp(dir: string, port: number): Promise<Running> {
  const recorded = () => {
    const known = readJson<Running>(join(dir, "process.json"));
    return known !== null && isAlive(known) ? known : null;
  };
  const known = recorded();
  if (known !== null) return known;
  const log = join(dir, "psp.log");
  const hasEnded = spawnPsp(dir, port, log);
  // It may end because a predecessor that was just starting holds the ledger: that one then appears in the record.
  const started = await until(START_LIMIT_MS, async () => {
    const found = recorded();
    if (found !== null || !hasEnded()) return found;
    await sleep(1_000);
    return recorded() ?? "ended";
  });
  if (started === null || started === "ended") {
    throw new Error(
      `The provider did not start on port ${port}; the reason is in ${log}. Set PSP_PORT to a free port, or to 0.`,
    );
  }
  return started;
}

function spawnPsp(dir: string, port: number, log: string): () => boolean {
  mkdirSync(dir, { recursive: true });
  const output = openSync(log, "a", 0o600);
  // Beside this file, in its own form: source or bundle.
  const program = new URL(`./psp${extname(import.meta.url)}`, import.meta.url);
  const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(program)], {
    detached: true,
    stdio: ["ignore", output, output],
    env: { ...process.env, PSP_PORT: String(port), PSP_DATA_DIR: dir },
  });
  closeSync(output);
  child.unref();
  let ended = false;
  child.once("exit", () => {
    ended = true;
  });
  child.once("error", () => {
    ended = true;
  });
  return () => ended;
}
