import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Instance } from "../index.ts";
import { UsageError } from "./command-line.ts";
import { ModuleFailure } from "./failure.ts";

/** Rounds until the signal aborts: what `createSweeper` and `createRelay` give. */
export interface Loop {
  run(signal: AbortSignal): Promise<void>;
}

/** The part of an instance that a worker starts and drains. */
export interface StartableInstance extends Instance {
  start(): Promise<void>;
  close(options?: { readonly graceMs?: number }): Promise<{ readonly drained: boolean }>;
}

/** What the function `worker` of a module gives. */
export interface WorkerParts {
  /** Started by the command, unless it is started already. */
  readonly once: StartableInstance;
  readonly sweeper?: Loop;
  readonly relay?: Loop;
  /** Lets go of what the module opened: pools, connections of brokers. */
  close?(): unknown;
}

/** Makes the parts anew: called again where what it connects to could not be reached. */
export type MakeWorker = () => Promise<WorkerParts>;

/** Loads the module and finds its function. Raises {@link UsageError}, {@link ModuleFailure}. */
export async function loadWorker(given: string): Promise<MakeWorker> {
  const exported = await imported(locate(given));
  const make = exported.worker ?? exported.default;
  if (typeof make !== "function") {
    throw new ModuleFailure('The module exports no function "worker" (nor a default one)');
  }
  return async () => checkedParts(await make());
}

/** A file, seen from the working directory, or else a package that is installed there. */
function locate(given: string): string {
  if (given.startsWith("file:")) return given;
  const file = resolve(given);
  if (existsSync(file)) return pathToFileURL(file).href;
  if (/^[./]/.test(given)) throw new UsageError("There is no file of that name to load as the worker's module.");
  try {
    return pathToFileURL(createRequire(join(process.cwd(), "package.json")).resolve(given)).href;
  } catch (error) {
    // "Not exported" also says so of a package that has only an "import" condition, which this look-up does not see.
    if ((error as NodeJS.ErrnoException).code === "ERR_PACKAGE_PATH_NOT_EXPORTED") {
      throw new UsageError("The package does not export that name. Name the file instead, below node_modules.");
    }
    throw new UsageError("Neither a file nor an installed package has the name of the worker's module.");
  }
}

async function imported(url: string): Promise<Record<string, unknown>> {
  try {
    return await import(url);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_UNKNOWN_FILE_EXTENSION") {
      throw new ModuleFailure(
        "This Node.js cannot load a file with that ending. For TypeScript use Node.js 22.18 or later, or set NODE_OPTIONS=--import=tsx",
      );
    }
    throw new ModuleFailure("The module could not be loaded", error);
  }
}

function checkedParts(parts: unknown): WorkerParts {
  const { once, sweeper, relay, close } = (parts ?? {}) as Partial<Record<keyof WorkerParts, unknown>>;
  const hasRun = (loop: unknown) => typeof (loop as Partial<Loop> | null)?.run === "function";
  if (typeof (once as Partial<StartableInstance> | null)?.start !== "function") {
    throw new ModuleFailure('The function "worker" did not return { once, … } with the instance of createOncekey');
  }
  if (![sweeper, relay].every((loop) => loop === undefined || hasRun(loop)) || (!hasRun(sweeper) && !hasRun(relay))) {
    throw new ModuleFailure('The function "worker" returned neither a sweeper nor a relay that can run');
  }
  if (close !== undefined && typeof close !== "function") {
    throw new ModuleFailure('The "close" that the function "worker" returned is no function');
  }
  return parts as WorkerParts;
}
