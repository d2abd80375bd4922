import { type Recover, StoreFailure } from "oncekey";
import { describe, expect, it } from "vitest";
import { type ChargesOptions, chargesWorld, LEASE_MS } from "../support/charges.ts";
import { gate } from "../support/gate.ts";
import { type Provider, provider } from "../support/provider.ts";

type Form = (psp: Provider) => Recover<{ amount: number }, { id: string }>;

const DAY = 24 * 3_600_000;
const dedupes: Form = () => ({ dedupes: { forMs: DAY } });
const cancels: Form = (psp) => ({ find: ({ key }) => psp.find(key), cancel: ({ key }) => psp.cancel(key) });
const settles: Form = (psp) => ({ find: ({ key }) => psp.find(key), settlesWithinMs: 20_000 });
/** For calls that hang for a minute. */
const settlesLate: Form = (psp) => ({ find: ({ key }) => psp.find(key), settlesWithinMs: 90_000 });
const atMostOnce: Form = () => ({ atMostOnce: true });
const never = () => new Promise<void>(() => {});

/** A worker that dies at a place of the first attempt: it never renews and never goes on. */
async function crashedAt(place: string, options: ChargesOptions, prepare?: (psp: Provider) => void) {
  const world = chargesWorld(options);
  prepare?.(world.psp);
  const dying = await world.worker({ ...options, at: (here) => (here === place ? never() : undefined) });
  dying.once.internals.context.store.renew = async () => {
    throw new Error("dead");
  };
  void dying.run("k").catch(() => {});
  await world.time.advance(LEASE_MS + 10);
  return world;
}

describe("an outside call whose answer is missing", () => {
  it("is repeated under the same key where the other side dedupes", async () => {
    const world = chargesWorld({ recover: dedupes, psp: provider({ dedupes: true }) });
    world.psp.script.push("lost", "fail");
    const a = await world.worker();
    expect((await world.time.advanceUntil(a.run("k"))).kind).toBe("completed");
    expect(world.psp.landed).toHaveLength(1);
    expect(new Set(world.psp.sent).size).toBe(1);
  });

  it("is not repeated once the dedupe window may be over, flight time included (V4)", async () => {
    const short: Form = () => ({ dedupes: { forMs: 30_000 } });
    const world = await crashedAt("before_complete", { recover: short, psp: provider({ dedupes: false }) });
    const lost = await crashedAt("sending", { recover: short });
    await lost.time.advance(30_000 - LEASE_MS - 1_000);
    const late = await lost.worker();
    expect(await lost.time.advanceUntil(late.run("k"))).toMatchObject({
      kind: "unknown",
      reason: expect.stringContaining("dedupe_window_over"),
    });
    expect(lost.psp.sent).toHaveLength(0);
    expect(world.psp.landed).toHaveLength(1);
  });

  it("is asked about after the window where a look-up is given", async () => {
    const asked: Form = (psp) => ({ dedupes: { forMs: 30_000 }, find: ({ key }) => psp.find(key) });
    const world = chargesWorld({ recover: asked, psp: provider({ dedupes: true }) });
    const dying = await world.worker({ at: (p) => (p === "before_complete" ? never() : undefined) });
    const { store } = dying.once.internals.context;
    store.renew = async () => Promise.reject(new Error("dead"));
    store.recordCall = () => new Promise(() => {});
    void dying.run("k").catch(() => {});
    await world.time.advance(60_000);
    const b = await world.worker();
    expect((await world.time.advanceUntil(b.run("k"))).kind).toBe("completed");
    expect(world.psp.landed).toHaveLength(1);
  });

  it("keeps the key busy after a time-out, until what was sent has settled (V1)", async () => {
    const world = chargesWorld({ recover: settles });
    world.psp.script.push("late");
    const a = await world.worker();
    expect((await world.time.advanceUntil(a.run("k"))).kind).toBe("unknown");
    const b = await world.worker();
    expect((await b.run("k")).kind).toBe("busy");
    world.psp.land();
    await world.time.advance(21_000);
    expect((await world.time.advanceUntil(b.run("k"))).kind).toBe("completed");
    expect(world.psp.landed).toHaveLength(1);
  });

  it("does not believe `none` before the settle time, also after a crash (V2, V5)", async () => {
    const world = chargesWorld({ recover: settles });
    world.psp.script.push("late");
    const a = await world.worker();
    a.once.internals.context.store.suspend = () => Promise.reject(new StoreFailure("unavailable", "crashed"));
    expect((await world.time.advanceUntil(a.run("k"))).kind).toBe("store_unavailable");
    await world.time.advance(LEASE_MS);
    const b = await world.worker();
    // Landed, but the look-up's index does not show it yet.
    world.psp.land();
    world.psp.answers.push("none");
    expect(await world.time.advanceUntil(b.run("k"))).toMatchObject({ kind: "unknown" });
    expect(world.psp.answers).toHaveLength(0);
    expect(world.psp.sent).toHaveLength(1);
    await world.time.advance(21_000);
    expect((await world.time.advanceUntil(b.run("k"))).kind).toBe("completed");
    expect(world.psp.landed).toHaveLength(1);
  });

  it("is sent again after `none` at the settle time, once", async () => {
    const world = chargesWorld({ recover: settles });
    world.psp.script.push("fail");
    const a = await world.worker();
    expect((await world.time.advanceUntil(a.run("k"))).kind).toBe("unknown");
    await world.time.advance(21_000);
    expect((await world.time.advanceUntil(a.run("k"))).kind).toBe("completed");
    expect(world.psp.landed).toHaveLength(1);
  });

  it("is not sent by a worker whose deadline passed while it was paused before the send (V3)", async () => {
    const resume = gate();
    const world = chargesWorld({ recover: settles });
    const paused = await world.worker();
    const { store } = paused.once.internals.context;
    const openIntent = store.openIntent.bind(store);
    store.renew = () => Promise.reject(new Error("paused"));
    store.openIntent = async (...args) => {
      const intent = await openIntent(...args);
      await resume.promise;
      return intent;
    };
    const zombie = paused.run("k");
    await world.time.advance(LEASE_MS + 25_000);
    const b = await world.worker();
    expect((await world.time.advanceUntil(b.run("k"))).kind).toBe("completed");
    resume.open();
    expect((await world.time.advanceUntil(zombie)).kind).toBe("lease_lost");
    expect(world.psp.sent).toHaveLength(1);
  });

  it("is made impossible by cancelling its key, then sent under the next generation's", async () => {
    const world = chargesWorld({ recover: cancels });
    world.psp.script.push("late");
    const a = await world.worker();
    expect((await world.time.advanceUntil(a.run("k"))).kind).toBe("completed");
    world.psp.land();
    expect(world.psp.landed).toHaveLength(1);
    expect(new Set(world.psp.sent).size).toBe(2);
  });

  it("is found, not repeated, where it landed before its key could be cancelled", async () => {
    const world = chargesWorld({ recover: cancels });
    world.psp.script.push("lost");
    const a = await world.worker();
    expect((await world.time.advanceUntil(a.run("k"))).kind).toBe("completed");
    expect(world.psp.sent).toHaveLength(1);
    expect(world.psp.landed).toHaveLength(1);
  });

  it("goes to needs_recovery where it may never be repeated", async () => {
    const world = chargesWorld({ recover: atMostOnce });
    world.psp.script.push("lost");
    const a = await world.worker();
    expect(await world.time.advanceUntil(a.run("k"))).toMatchObject({
      kind: "unknown",
      reason: expect.stringContaining("call_unknown"),
    });
    await world.time.advance(DAY);
    expect((await world.time.advanceUntil(a.run("k"))).kind).toBe("unknown");
    expect(world.psp.sent).toHaveLength(1);
  });

  it("commits its intent before it is sent (V6, V7)", async () => {
    for (const recover of [cancels, settlesLate, atMostOnce]) {
      const world = await crashedAt("sending", { recover, timeoutMs: 60_000 });
      const journal = await world.store.journal(world.id());
      expect(journal.intents).toMatchObject([{ call: "authorize", generation: 1, state: "open" }]);
    }
  });

  it("is an alarm where it is found twice", async () => {
    const world = await crashedAt("sending", { recover: settlesLate, timeoutMs: 60_000 });
    world.psp.answers.push("twice");
    const b = await world.worker();
    expect(await world.time.advanceUntil(b.run("k"))).toMatchObject({
      kind: "unknown",
      reason: expect.stringContaining("call_found_twice"),
    });
  });

  it("stays unknown while the look-up throws, hangs, or cannot say", async () => {
    for (const answer of ["throw", "hang", "unknown"] as const) {
      const world = await crashedAt("sending", { recover: cancels, timeoutMs: 60_000 });
      world.psp.answers.push(answer);
      const b = await world.worker();
      expect((await world.time.advanceUntil(b.run("k"))).kind).toBe("unknown");
      expect(world.psp.sent).toHaveLength(0);
      await world.time.advance(600_000);
      expect((await world.time.advanceUntil(b.run("k"))).kind).toBe("completed");
      expect(world.psp.landed).toHaveLength(1);
    }
  });

  it("is caught by its digest when its arguments change between attempts", async () => {
    const world = await crashedAt("sending", { recover: cancels, timeoutMs: 60_000 });
    const b = await world.worker();
    const definition = b.charges.definition as unknown as { run(op: unknown): Promise<unknown> };
    const original = definition.run.bind(definition);
    definition.run = (op) => {
      const { call } = op as { call(name: string, options: object): Promise<unknown> };
      return original({
        ...(op as object),
        call: (name: string, options: object) => call(name, { ...options, request: { amount: 999 } }),
      });
    };
    expect(await world.time.advanceUntil(b.run("k"))).toMatchObject({
      kind: "unknown",
      reason: expect.stringContaining("call_changed"),
    });
    expect(world.psp.sent).toHaveLength(0);
  });

  it("carries another key after a purge, so that another payload never fetches the old effect", async () => {
    const world = chargesWorld({ once: { retentionMs: 10_000, clientRetryWindowMs: 5_000 } });
    const a = await world.worker();
    await a.run("k", 5);
    await world.time.advance(20_000);
    expect((await world.time.advanceUntil(a.run("k", 6))).kind).toBe("completed");
    expect(new Set(world.psp.sent).size).toBe(2);
  });

  it("stops the operation even where its code swallows the error", async () => {
    const world = chargesWorld({ recover: atMostOnce });
    world.psp.script.push("lost");
    const a = await world.worker();
    const definition = a.charges.definition as unknown as { run(op: unknown): Promise<unknown> };
    const original = definition.run.bind(definition);
    definition.run = (op) => {
      const { call } = op as { call(name: string, options: object): Promise<unknown> };
      const swallowing = (name: string, options: object) => call(name, options).catch(() => ({ id: "made up" }));
      return original({ ...(op as object), call: swallowing });
    };
    expect((await world.time.advanceUntil(a.run("k"))).kind).toBe("unknown");
    expect(world.store.rows("settled")).toHaveLength(0);
  });

  it("needs a way to be settled, and a time-out", async () => {
    for (const options of [{ recover: {} }, { recover: { atMostOnce: true }, timeoutMs: 0 }, { recover: undefined }]) {
      const world = chargesWorld();
      const a = await world.worker();
      const definition = a.charges.definition as unknown as { run(op: unknown): Promise<unknown> };
      const original = definition.run.bind(definition);
      definition.run = (op) => {
        const { call } = op as { call(name: string, given: object): Promise<unknown> };
        return original({
          ...(op as object),
          call: (name: string, given: object) => call(name, { ...given, ...options }),
        });
      };
      await expect(world.time.advanceUntil(a.run("k"))).rejects.toMatchObject({ code: "oncekey_recover_missing" });
      expect(world.psp.sent).toHaveLength(0);
    }
  });
});
