import { pause, systemClock } from "../core/clock.ts";
import type { Command } from "./command.ts";
import { secretsOf } from "./database-url.ts";
import { failureOf, isPassing, ModuleFailure } from "./failure.ts";
import { givenDuration } from "./given.ts";
import { stopRequest, untilAborted } from "./stopping.ts";
import { type Loop, loadWorker, type MakeWorker, type WorkerParts } from "./worker-module.ts";

const DEFAULT_GRACE_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;

/** `oncekey worker <module>`: sweeper and relay of the user's own instance, until a signal ends them. */
export const workerCommand: Command = {
  summary: "run the sweeper and the relay of your service",
  about: `Loads a module of yours (a file, or an installed package) and calls its function "worker", which returns
{ once, sweeper?, relay?, close? }: the instance and what createSweeper and createRelay gave. Runs them until SIGTERM or
SIGINT, lets running work finish, calls close and ends with 0. Any number of workers may run beside each other. Where
database or broker cannot be reached at the start it says so and goes on trying; a schema that is missing or does not
fit ends it at once. Standard output gets one line, when it is ready.`,
  operands: ["module"],
  options: {
    grace: { value: "DURATION", meaning: "how long running work may take to finish; default: 10s" },
    json: { meaning: "errors as JSON; the line is JSON behind its first words in any case" },
    help: { meaning: "print this help" },
  },
  examples: ["oncekey worker ./worker.js", "oncekey worker ./dist/worker.js --grace 30s"],
  ends: true,
  async run(line) {
    const graceMs = givenDuration(line, "grace") ?? DEFAULT_GRACE_MS;
    const stopping = stopRequest();
    const make = await loadWorker(line.operands[0] ?? "");
    const parts = await startedParts(make, stopping.signal);
    if (parts !== null) await runParts(parts, stopping, graceMs);
    return { exitCode: 0, data: { stopped: true }, text: "" };
  },
};

const tell = (line: string) => void process.stderr.write(`oncekey: ${line}\n`);

/** The parts, started; `null` where the stop came first. Raises what trying again will not cure. */
async function startedParts(make: MakeWorker, signal: AbortSignal): Promise<WorkerParts | null> {
  const parts = await persistently(make, signal, "What the module connects to cannot be reached.");
  if (parts === null) return null;
  try {
    const started = await persistently(() => start(parts), signal, "The database cannot be reached.");
    if (started !== null) return parts;
  } catch (error) {
    await closeParts(parts);
    throw error;
  }
  await closeParts(parts);
  return null;
}

async function start({ once }: WorkerParts): Promise<true> {
  if (once.internals?.lifecycle?.phase !== "started") await once.start();
  return true;
}

/** Tries until it works, with growing pauses, as long as only a peer is away; `null` where the stop came first. */
async function persistently<T>(work: () => Promise<T>, signal: AbortSignal, what: string): Promise<T | null> {
  const stopped = untilAborted(signal).then(() => null);
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await Promise.race([work(), stopped]);
    } catch (error) {
      if (!isPassing(error)) throw fromModule(error);
      tell(`${what} Nothing was started; trying again in ${pauseMs / 1_000} s.`);
      await pause(systemClock, pauseMs, signal);
    }
  }
  return null;
}

/** An error that says for itself what it is stays; another one is told as the module's. */
function fromModule(error: unknown): unknown {
  const { code } = failureOf(error, []);
  return code !== null || error instanceof ModuleFailure ? error : new ModuleFailure("The module failed", error);
}

async function runParts(parts: WorkerParts, stopping: AbortController, graceMs: number): Promise<void> {
  const { sweeper, relay, once } = parts;
  const loops = [sweeper, relay].filter((loop) => loop !== undefined);
  const running = Promise.all(loops.map((loop) => runLoop(loop, stopping)));
  running.catch(() => {});
  const ready = { sweeper: sweeper !== undefined, relay: relay !== undefined, pid: process.pid };
  process.stdout.write(`oncekey worker ready ${JSON.stringify(ready)}\n`);
  try {
    await untilAborted(stopping.signal);
    // Not awaited one after the other: an instance that is closing is what tells a long resume to end.
    const drained = Promise.all([once.close({ graceMs }), running]).then(([closed]) => closed.drained);
    drained.catch(() => {});
    const inTime = await Promise.race([drained, pause(systemClock, graceMs).then(() => false)]);
    if (!inTime) tell("Some work did not finish in time. Its leases lapse, then another worker takes it up.");
  } finally {
    await closeParts(parts);
  }
}

/** A loop that ends before it was asked to ends the worker: whoever watches the process must see it. */
async function runLoop(loop: Loop, stopping: AbortController): Promise<void> {
  try {
    await loop.run(stopping.signal);
    if (!stopping.signal.aborted) throw new ModuleFailure("The instance was closed while the worker ran");
  } finally {
    stopping.abort();
  }
}

const CLOSE_LIMIT_MS = 5_000;

/** Never rejects, and does not wait for ever: the process ends next. */
async function closeParts({ close }: WorkerParts): Promise<void> {
  const closing = (async () => close?.())().catch((error: unknown) => {
    const { message } = failureOf(
      new ModuleFailure('The "close" of the module failed', error),
      secretsOf([], process.env),
    );
    tell(message);
  });
  await Promise.race([closing, pause(systemClock, CLOSE_LIMIT_MS)]);
}
