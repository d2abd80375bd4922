import { createOncekey, type Outcome } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { runCaptured } from "../support/captured.ts";

const answer = (status: number): Outcome => ({ status, headers: [], body: new Uint8Array() });

async function world() {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const once = createOncekey({ store, clock: time.clock, leaseMs: 1_000, onError: () => {} });
  const operation = once.capture({ name: "mails.send", version: 1, maxDurationMs: 4_000, afterCrash: "runAgain" });
  await once.start();
  const run = (handler: () => Promise<Outcome>) => time.advanceUntil(runCaptured(operation, { handler }));
  return { time, run };
}

describe('a captured operation with afterCrash "runAgain"', () => {
  const ends: Record<string, () => Promise<Outcome>> = {
    "a throw": () => Promise.reject(new Error("boom")),
    "a 5xx": async () => answer(500),
    "a lost lease": () => new Promise(() => {}),
  };
  for (const [how, end] of Object.entries(ends)) {
    it(`runs again after ${how}`, async () => {
      const { time, run } = await world();
      await run(end).catch(() => {});
      await time.advance(600_000);
      expect((await run(async () => answer(201))).kind).toBe("completed");
    });
  }
});
