import type { Recover } from "oncekey";
import { describe, expect, it } from "vitest";
import { type ChargesOptions, chargesWorld, kill, LEASE_MS, sweepFor, type Worker } from "../support/charges.ts";
import { type Provider, provider } from "../support/provider.ts";

type Form = (psp: Provider) => Recover<{ amount: number }, { id: string }>;

const dedupes: Form = () => ({ dedupes: { forMs: 24 * 3_600_000 } });
const cancels: Form = (psp) => ({ find: ({ key }) => psp.find(key), cancel: ({ key }) => psp.cancel(key) });
const settles: Form = (psp) => ({ find: ({ key }) => psp.find(key), settlesWithinMs: 5_000 });
const FORMS: [string, Form][] = [
  ["dedupes", dedupes],
  ["cancel", cancels],
  ["settles", settles],
];

const MINUTE = 60_000;
const never = () => new Promise<void>(() => {});

/** A charge whose provider was down from the start, given up by the sweeper; its client asked once. */
async function givenUp(recover: Form, options: ChargesOptions = {}) {
  const world = chargesWorld({ recover, psp: provider({ dedupes: recover === dedupes }), ...options });
  world.psp.down = true;
  const worker = await world.worker();
  expect((await world.time.advanceUntil(worker.run("k"))).kind).toBe("unknown");
  await sweepFor(world, worker, MINUTE);
  return { world, worker };
}

describe("a charge whose provider is down all the time", () => {
  it.each(FORMS)("is given up to needs_recovery, with what operators need (%s)", async (form, recover) => {
    const { world } = await givenUp(recover);
    const entry = await world.entry();
    expect(entry).toMatchObject({ state: "needs_recovery", reason: "gave_up: call_unknown: authorize" });
    expect(entry?.clock.sweepInMs).not.toBeNull();
    // All that may have been sent has its intent, so these alone say when nothing can land any more.
    expect(entry?.clock.settlesInMs).not.toBeNull();
    const { intents } = await world.store.journal(world.id());
    expect(intents).toMatchObject([{ call: "authorize", state: "open", form }]);
    expect(intents[0]?.settlesInMs === null).toBe(form !== "settles");
  });

  it.each(FORMS)("is settled after it is back, by the sweeper alone (%s)", async (_, recover) => {
    const { world, worker } = await givenUp(recover);
    world.psp.down = false;
    await sweepFor(world, worker, 2 * MINUTE);
    expect(await world.entry()).toMatchObject({ state: "succeeded" });
    expect(world.psp.landed).toHaveLength(1);
    expect((await worker.run("k")).kind).toBe("replayed");
  });

  it.each(FORMS)("is settled after it is back, by a retry alone (%s)", async (_, recover) => {
    const { world, worker } = await givenUp(recover);
    world.psp.down = false;
    await world.time.advance(LEASE_MS + 6_000);
    expect((await world.time.advanceUntil(worker.run("k"))).kind).toBe("completed");
    expect(world.psp.landed).toHaveLength(1);
  });

  it("is found, not repeated, where it had landed before the provider went down", async () => {
    const world = chargesWorld({ recover: settles });
    world.psp.script.push("lost");
    const { find } = world.psp;
    let down = true;
    world.psp.find = (key) => (down ? Promise.reject(new Error("down")) : find(key));
    const worker = await world.worker();
    await world.time.advanceUntil(worker.run("k"));
    await sweepFor(world, worker, 2 * MINUTE);
    expect(await world.entry()).toMatchObject({ state: "needs_recovery" });
    down = false;
    await sweepFor(world, worker, 3 * MINUTE);
    expect(await world.entry()).toMatchObject({ state: "succeeded" });
    expect(world.psp.sent).toHaveLength(1);
  });

  it("is asked about with pauses that grow to five minutes, and no further", async () => {
    const { world, worker } = await givenUp(settles);
    await sweepFor(world, worker, 30 * MINUTE, 5_000);
    const before = (await world.entry())?.attempt ?? 0;
    await sweepFor(world, worker, 60 * MINUTE, 5_000);
    const asked = ((await world.entry())?.attempt ?? 0) - before;
    expect(asked).toBeGreaterThanOrEqual(11);
    expect(asked).toBeLessThanOrEqual(13);
  });

  it("takes the operation's own number of attempts", async () => {
    const world = chargesWorld({ recover: settles, maxAttempts: 1 });
    world.psp.down = true;
    const worker = await world.worker();
    expect(await world.time.advanceUntil(worker.run("k"))).toMatchObject({ kind: "unknown", state: "needs_recovery" });
    await expect(chargesWorld({ maxAttempts: 0 }).worker()).rejects.toThrow(
      /maxAttempts must be a whole number from 1/,
    );
  });
});

describe("a retry of a given-up entry", () => {
  it("does nothing while the last owner's lease runs", async () => {
    const world = chargesWorld({ recover: settles, maxAttempts: 1 });
    world.psp.down = true;
    const worker = await world.worker();
    await world.time.advanceUntil(worker.run("k"));
    world.psp.down = false;
    expect(await worker.run("k")).toMatchObject({ kind: "unknown", state: "needs_recovery" });
    expect((await world.entry())?.attempt).toBe(1);
  });

  it("goes on with an entry whose input is not stored, which no sweeper can", async () => {
    const world = chargesWorld({ recover: settles, maxAttempts: 1, storeInput: false });
    world.psp.down = true;
    const worker = await world.worker();
    await world.time.advanceUntil(worker.run("k"));
    world.psp.down = false;
    await sweepFor(world, worker, 10 * MINUTE, MINUTE);
    expect(await world.entry()).toMatchObject({ state: "needs_recovery", attempt: 1 });
    expect((await world.time.advanceUntil(worker.run("k"))).kind).toBe("completed");
  });
});

describe("an operation that throws at every attempt", () => {
  it("is given up, without a word of its error's message", async () => {
    const world = chargesWorld({
      at: (place) => {
        if (place === "before_call") throw new TypeError("sk_live_secret");
      },
    });
    const worker = await world.worker();
    await expect(world.time.advanceUntil(worker.run("k"))).rejects.toThrow();
    await sweepFor(world, worker, MINUTE);
    expect(await world.entry()).toMatchObject({
      state: "needs_recovery",
      reason: "gave_up: the operation threw (TypeError)",
    });
  });

  it("leaves open when it settles where an earlier attempt may have sent a deduped call without a word", async () => {
    const world = chargesWorld({ maxAttempts: 2 });
    const dying = await world.worker({ at: (place) => (place === "sending" ? kill(dying) : undefined) });
    void dying.run("k");
    await world.time.advance(LEASE_MS + 10);
    const throwing = await world.worker({
      at: (place) => {
        if (place === "start") throw new Error("broken deploy");
      },
    });
    await expect(world.time.advanceUntil(throwing.run("k"))).rejects.toThrow();
    const entry = await world.entry();
    expect(entry).toMatchObject({ state: "needs_recovery" });
    expect(entry?.clock.settlesInMs).toBeNull();
  });
});

describe("a run that kills its process", () => {
  /** A process that dies in the middle of the operation, and another that is started in its place. */
  async function deadly() {
    let runs = 0;
    const world = chargesWorld();
    const start = async (): Promise<Worker> => {
      const worker: Worker = await world.worker({
        at: (place) => {
          if (place !== "before_call") return undefined;
          runs++;
          kill(worker);
          return never();
        },
      });
      return worker;
    };
    void (await start()).run("k");
    await world.time.advance(LEASE_MS + 10);
    return { world, start, runs: () => runs };
  }

  it("is marked before it is run once more than its attempts, and then rests between runs", async () => {
    const { world, start, runs } = await deadly();
    for (let seconds = 0; seconds < 30; seconds++) {
      void (await start()).sweeper.runOnce();
      await world.time.advance(LEASE_MS);
    }
    expect(runs()).toBe(6);
    expect(await world.entry()).toMatchObject({
      state: "needs_recovery",
      reason: "gave_up: left in progress by 6 attempts",
    });
    // An hour of restarts: at most one run in five minutes, once the pauses have grown.
    for (let seconds = 0; seconds < 3_600; seconds += 30) {
      void (await start()).sweeper.runOnce();
      await world.time.advance(30_000);
    }
    expect(runs() - 6).toBeGreaterThanOrEqual(5);
    expect(runs() - 6).toBeLessThanOrEqual(14);
  });

  it("does not run sooner for a client that keeps retrying", async () => {
    const { world, start, runs } = await deadly();
    for (let seconds = 0; seconds < 30; seconds++) {
      void (await start()).run("k");
      await world.time.advance(LEASE_MS);
    }
    expect(runs()).toBe(6);
    await world.time.advance(MINUTE);
    void (await start()).run("k");
    await world.time.advance(LEASE_MS);
    expect(runs()).toBe(7);
  });
});

describe("what nobody can settle by asking again", () => {
  const window: Form = () => ({ dedupes: { forMs: 2_600 } });
  const once: Form = () => ({ atMostOnce: true });
  const reasons: [string, Form, ("lost" | "late")[], ("twice" | "none")[]][] = [
    ["call_unknown", once, ["lost"], []],
    ["call_found_twice", settles, ["lost"], ["twice"]],
    ["dedupe_window_over", window, ["late", "late", "late"], []],
  ];
  it.each(reasons)("is left to a person: %s", async (reason, recover, script, answers) => {
    const world = chargesWorld({ recover });
    world.psp.script.push(...script);
    world.psp.answers.push(...answers);
    const worker = await world.worker();
    await world.time.advanceUntil(worker.run("k"));
    await sweepFor(world, worker, MINUTE);
    const entry = await world.entry();
    expect(entry).toMatchObject({ state: "needs_recovery", reason: expect.stringContaining(reason) });
    expect(entry?.clock.sweepInMs).toBeNull();
    const sends = world.psp.sent.length;
    await sweepFor(world, worker, 10 * MINUTE, MINUTE);
    expect((await world.time.advanceUntil(worker.run("k"))).kind).toBe("unknown");
    expect((await world.entry())?.attempt).toBe(entry?.attempt);
    expect(world.psp.sent).toHaveLength(sends);
    // Whatever was sent is written down, deduped or not.
    expect((await world.store.journal(world.id())).intents).toMatchObject([{ call: "authorize", state: "open" }]);
  });

  it("asks on after the dedupe window where there is a look-up, and takes what it finds", async () => {
    const asked: Form = (psp) => ({ dedupes: { forMs: 2_600 }, find: ({ key }) => psp.find(key) });
    const world = chargesWorld({ recover: asked });
    world.psp.script.push("late", "late", "late");
    const worker = await world.worker();
    await world.time.advanceUntil(worker.run("k"));
    await sweepFor(world, worker, 20_000);
    expect((await world.entry())?.reason).toMatch(/^dedupe_window_over: authorize, and it is not found/);
    world.psp.land();
    await sweepFor(world, worker, 2 * MINUTE);
    expect(await world.entry()).toMatchObject({ state: "succeeded" });
    expect(world.psp.sent).toHaveLength(3);
  });
});
