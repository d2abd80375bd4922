import { fork } from "node:child_process";
import { mkdtemp, readdir, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileStorage } from "oncekey/client/file";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { freshSubmission } from "../support/fresh-submission.ts";
import { bundledWorker } from "./support/bundled-worker.ts";
import { ended } from "./support/workers.ts";

const MOST_ROUNDS = 100;
const DEATHS_IN_THE_MIDDLE = 8;

const fresh = freshSubmission("order 42");

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "oncekey-crash-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Lets a process write on from there, and kills it when the next write has begun. Gives the last number that it told. */
async function writeAndKill(attempts: number, puts: number): Promise<number> {
  const child = fork(await bundledWorker("client-writer"), {
    execArgv: [],
    env: { ...process.env, WRITER_SETTINGS: JSON.stringify({ directory, submission: { ...fresh, attempts } }) },
  });
  let told = attempts;
  const enough = new Promise<void>((resolve) => {
    child.on("message", (number: number) => {
      told = number;
      if (number >= attempts + puts) resolve();
    });
  });
  await enough;
  await vi.waitFor(async () => expect(await parts()).not.toEqual([]), { timeout: 10_000, interval: 1 });
  await ended(child);
  return told;
}

const parts = async () => (await readdir(directory)).filter((name) => name.endsWith(".part"));

describe("a file storage whose process is killed while it writes", () => {
  it("holds what was last told to be kept, or what was being written then, and always whole", async () => {
    let attempts = 0;
    let died = 0;
    for (let round = 0; died < DEATHS_IN_THE_MIDDLE && round < MOST_ROUNDS; round++) {
      const told = await writeAndKill(attempts, 1 + (round % 3));
      const storage = fileStorage(directory);
      const found = await storage.get(fresh.name);
      expect(found?.attempts).toBeGreaterThanOrEqual(told);
      expect(found?.attempts).toBeLessThanOrEqual(told + 2);
      expect(found?.request.bodyBase64?.length).toBe(4 * (500_000 + ((found?.attempts ?? 0) % 7) * 1_000));
      expect((await storage.list()).map((one) => one.attempts)).toEqual([found?.attempts]);
      attempts = found?.attempts ?? 0;
      const left = await parts();
      // What the one before left is gone.
      expect(left.length).toBeLessThanOrEqual(1);
      died += left.length;
      for (const name of left) await utimes(join(directory, name), 1, 1);
    }
    expect(died).toBe(DEATHS_IN_THE_MIDDLE);
  });
});
