import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { bundle } from "../../support/bundle.ts";
import { atEnd } from "../../support/postgres.ts";

const EXAMPLES = resolve(import.meta.dirname, "..", "..", "..", "examples", "consumers");

/** One of the loops of examples/consumers. */
export type ConsumerName = "rabbitmq" | "nats" | "redis" | "sqs" | "kafka";

const NAMES: readonly ConsumerName[] = ["rabbitmq", "nats", "redis", "sqs", "kafka"];

/** A line that a consumer printed: it is ready, or what became of one delivery. */
export interface ConsumerLine {
  readonly ready?: string;
  readonly delivery?: string;
  readonly result?: string;
}

/** A running consumer: a process of its own. */
export interface ConsumerProcess {
  /** Everything it said so far. */
  readonly lines: readonly ConsumerLine[];
  /** Resolves when what it said fulfils this; rejects when it ends before. */
  said(fulfils: (lines: readonly ConsumerLine[]) => boolean): Promise<void>;
  /** How it ended: the signal's name, or its exit code. */
  readonly ended: Promise<NodeJS.Signals | number>;
  /** Asks it to stop. */
  stop(): Promise<NodeJS.Signals | number>;
}

let bundled: Promise<string> | undefined;

/** Makes the programs: to be called by `beforeAll`, so that it is nobody's test. */
export async function makePrograms(): Promise<void> {
  bundled ??= bundlePrograms();
  await bundled;
}

async function bundlePrograms(): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-consumers-"));
  atEnd(() => rm(outDir, { recursive: true, force: true }));
  const programs = Object.fromEntries(NAMES.map((name) => [name, join(EXAMPLES, `${name}.ts`)]));
  await bundle({ programs, outDir });
  return outDir;
}

/** Starts one of the loops. */
export async function startConsumer(
  name: ConsumerName,
  settings: Readonly<Record<string, string>>,
): Promise<ConsumerProcess> {
  await makePrograms();
  const program = join((await bundled) ?? "", `${name}.mjs`);
  const env = { ...process.env, NODE_NO_WARNINGS: "1", KAFKAJS_NO_PARTITIONER_WARNING: "1", ...settings };
  return watch(spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] }));
}

function watch(child: ChildProcess): ConsumerProcess {
  const lines: ConsumerLine[] = [];
  const waiting = new Set<() => void>();
  let errors = "";
  child.stderr?.on("data", (chunk) => {
    errors += String(chunk);
  });
  const ended = new Promise<NodeJS.Signals | number>((resolve) =>
    child.once("close", (code, signal) => resolve(signal ?? code ?? -1)),
  );
  atEnd(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on("line", (line) => {
      lines.push(JSON.parse(line) as ConsumerLine);
      for (const look of waiting) look();
    });
  }
  return {
    lines,
    ended,
    async said(fulfils) {
      const heard = new Promise<"heard">((resolve) => {
        const look = () => {
          if (fulfils(lines)) resolve("heard");
        };
        waiting.add(look);
        look();
      });
      const first = await Promise.race([heard, ended]);
      if (first !== "heard" && !fulfils(lines))
        throw new Error(`The consumer ended (${first}) before that:\n${errors}`);
    },
    stop() {
      child.kill("SIGTERM");
      return ended;
    },
  };
}
