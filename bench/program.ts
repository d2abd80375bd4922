import { type ChildProcess, fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../test/support/bundle.ts";

/** A running process of the bench: it answers one question at a time. */
export interface Program<Ask> {
  /** Asks, and gives the answer. Raises what the process raised, or that it ended. */
  ask<Answer>(question: Ask): Promise<Answer>;
  /** Lets it end in order, so that it leaves its processor profile; resolves when it is gone. */
  end(): Promise<void>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

type Reply = { readonly answer: unknown } | { readonly error: string };

/** Makes this process one that answers: the other end of {@link Program}. It ends with its parent. */
export function answering<Ask>(answer: (question: Ask) => Promise<unknown>): void {
  process.once("disconnect", () => process.exit(0));
  process.on("message", (question: Ask) => {
    const reply = (message: Reply) => void process.send?.(message);
    answer(question).then(
      (value) => reply({ answer: value }),
      (error: unknown) => reply({ error: error instanceof Error ? String(error.stack) : String(error) }),
    );
  });
}

/** Starts the bench's programs. */
export interface Programs {
  start<Ask>(name: "api" | "clients"): Program<Ask>;
  /** Kills all that were started and removes the programs. */
  close(): Promise<void>;
}

const SOURCES = { api: "./programs/api.ts", clients: "./programs/clients.ts" };

/** Bundles the programs as plain JavaScript: what is measured is not a loader's work. `flags` are Node's own. */
export async function programs(flags: readonly string[] = []): Promise<Programs> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-bench-"));
  const paths = Object.entries(SOURCES).map(([name, path]) => [name, fileURLToPath(new URL(path, import.meta.url))]);
  await bundle({ programs: Object.fromEntries(paths), outDir });
  const started = new Set<Program<never>>();
  return {
    start(name) {
      const program = programOf(fork(join(outDir, `${name}.mjs`), { execArgv: name === "api" ? [...flags] : [] }));
      started.add(program as Program<never>);
      return program as Program<never>;
    },
    async close() {
      await Promise.all([...started].map((program) => program.kill()));
      await rm(outDir, { recursive: true, force: true });
    },
  };
}

function programOf(child: ChildProcess): Program<object> {
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return {
    ask(question) {
      return new Promise((resolve, reject) => {
        const onExit = (code: number | null) => reject(new Error(`A program of the bench ended (${code}).`));
        child.once("exit", onExit);
        child.once("message", (reply: Reply) => {
          child.removeListener("exit", onExit);
          if ("error" in reply) reject(new Error(reply.error));
          else resolve(reply.answer as never);
        });
        child.send(question);
      });
    },
    async end() {
      child.disconnect();
      await gone;
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await gone;
    },
  };
}
