import assert from "node:assert/strict";
import type { SubmissionStorage } from "../client/index.ts";
import { byHand, hold, STRANGE_NAMES, type SubmissionStorageCase } from "./submission-storage-harness.ts";

/** Waits that end in an abort, and a run that must never be begun. */
async function waitInVain(storage: SubmissionStorage, name: string, abort: AbortController): Promise<unknown> {
  let begun = false;
  const waiting = storage.exclusively(
    name,
    async () => {
      begun = true;
    },
    abort.signal,
  );
  const ended = await waiting.then(
    () => "it got its turn",
    (error: unknown) => error,
  );
  assert.equal(begun, false, "It must not run.");
  return ended;
}

/** One at a time under a name. */
export const holdingCases: readonly SubmissionStorageCase[] = [
  {
    name: "runs one at a time under a name, over all handles, and all of them",
    timeoutMs: 60_000,
    async run(harness) {
      const handles = [await harness.open(), await harness.open()];
      let [inside, most, runs] = [0, 0, 0];
      const run = async () => {
        inside += 1;
        most = Math.max(most, inside);
        await new Promise((resolve) => setTimeout(resolve, 1));
        inside -= 1;
        runs += 1;
        return runs;
      };
      const all = Array.from({ length: 12 }, (_, index) => handles[index % 2]?.exclusively("one", run));
      const answers = await Promise.all(all);
      assert.deepEqual([most, runs], [1, 12]);
      assert.equal(new Set(answers).size, 12, "Each gets what its own run gave.");
    },
  },
  {
    name: "lets a waiter run only after the holder ended",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const order: string[] = [];
      const release = await hold(one, "n");
      const waiter = other.exclusively("n", async () => void order.push("waiter"));
      await new Promise((resolve) => setTimeout(resolve, 20));
      order.push("holder ends");
      await release();
      await waiter;
      assert.deepEqual(order, ["holder ends", "waiter"]);
    },
  },
  {
    name: "frees the lock when the run fails, and raises what it raised",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const failure = new Error("the run failed");
      const failing = one.exclusively("n", () => Promise.reject(failure));
      assert.equal(await failing.catch((error: unknown) => error), failure);
      assert.equal(await other.exclusively("n", async () => "free"), "free");
    },
  },
  {
    name: "never lets one name wait for another",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const releases: (() => Promise<void>)[] = [];
      for (const [index, name] of STRANGE_NAMES.entries())
        releases.push(await hold(index % 2 === 0 ? one : other, name));
      for (const release of releases) await release();
    },
  },
  {
    name: "lets the medium be read and written by everybody while a lock is held",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const release = await hold(one, "n");
      await other.remove("n");
      assert.deepEqual([await other.get("n"), await other.list()], [null, []]);
      await release();
    },
  },
];

/** How a wait ends that nobody wants any more. */
export const abortingCases: readonly SubmissionStorageCase[] = [
  {
    name: "ends a wait with the signal's reason, and the next in line gets its turn",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const release = await hold(one, "n");
      const [abort, reason] = [new AbortController(), new Error("enough")];
      const given = waitInVain(other, "n", abort);
      const next = other.exclusively("n", async () => "next");
      await new Promise((resolve) => setTimeout(resolve, 20));
      abort.abort(reason);
      assert.equal(await given, reason);
      await release();
      assert.equal(await next, "next");
    },
  },
  {
    name: "does not begin where the signal was aborted before, though the lock is free",
    async run(harness) {
      const storage = await harness.open();
      const [abort, reason] = [new AbortController(), new Error("too late")];
      abort.abort(reason);
      assert.equal(await waitInVain(storage, "n", abort), reason);
      assert.equal(await storage.exclusively("n", async () => "free"), "free");
    },
  },
  {
    name: "leaves a run alone that has begun when the signal aborts, and keeps its lock",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const [abort, inside, end] = [new AbortController(), byHand(), byHand()];
      const order: string[] = [];
      const run = async () => {
        inside.open();
        await end.promise;
        order.push("first");
        return "done";
      };
      const running = one.exclusively("n", run, abort.signal);
      await Promise.race([inside.promise, running]);
      abort.abort(new Error("for waits only"));
      const second = other.exclusively("n", async () => void order.push("second"));
      end.open();
      assert.equal(await running, "done");
      await second;
      assert.deepEqual(order, ["first", "second"]);
    },
  },
];
