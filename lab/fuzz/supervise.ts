import { fork } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Assignment, Result } from "./runner.ts";

/** How a target's process ended. */
export type Supervised =
  | { readonly kind: "result"; readonly result: Result }
  /** It stood still, or died; the input that it was at. */
  | { readonly kind: "hung" | "died"; readonly input: Uint8Array };

/** A runner that says nothing for so long stands still; a batch takes a fraction of a second. */
const SILENCE_MS = 60_000;

/**
 * Times tell of the code only where the collector stays out of them: in a heap of the usual size a large input's values are
 * moved out of the nursery and a small one's never are, and collecting threads spin on the same clock; linear work then took
 * 41 times as long for eight times the input. Emptying the heap before each timing is no way: it takes counts of blocks along.
 */
const HEAP = ["--single-threaded-gc", "--max-semi-space-size=128"];

/** Runs a target in a process of its own. Ends it where it says nothing for `silenceMs`. */
export async function supervise(
  assignment: Omit<Assignment, "scratch">,
  { silenceMs = SILENCE_MS, onProgress = (_inputs: number) => {} } = {},
): Promise<Supervised> {
  const folder = await mkdtemp(join(tmpdir(), "oncekey-fuzz-"));
  const scratch = join(folder, "input");
  try {
    const end = await runToEnd({ ...assignment, scratch }, silenceMs, onProgress);
    if (typeof end !== "string") return { kind: "result", result: end };
    return { kind: end, input: await readFile(scratch).catch(() => Buffer.alloc(0)) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type Said = { readonly kind: "alive"; readonly inputs: number } | { readonly kind: "result"; readonly result: Result };

function runToEnd(
  assignment: Assignment,
  silenceMs: number,
  onProgress: (inputs: number) => void,
): Promise<Result | "hung" | "died"> {
  const child = fork(fileURLToPath(new URL("./runner.ts", import.meta.url)), {
    execArgv: [...process.execArgv, ...HEAP],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    let outcome: Result | "hung" | "died" = "died";
    const silence = setTimeout(() => {
      outcome = "hung";
      child.kill("SIGKILL");
    }, silenceMs);
    child.on("message", (said: Said) => {
      silence.refresh();
      if (said.kind === "result") outcome = said.result;
      else onProgress(said.inputs);
    });
    child.once("error", reject);
    child.once("exit", () => {
      clearTimeout(silence);
      resolve(outcome);
    });
    child.send(assignment);
  });
}
