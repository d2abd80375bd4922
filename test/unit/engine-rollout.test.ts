import { created, createOncekey, type OncekeyOptions, type TransactionDefinition } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { gate } from "../support/gate.ts";

const scope = { tenant: "acme", client: null };

type Definition = Partial<TransactionDefinition<MemoryTransaction, Record<never, never>>>;

/** One release of a service over a shared store. */
async function release(
  store: MemoryStore,
  definition: Definition = {},
  options: Partial<OncekeyOptions<MemoryTransaction>> = {},
) {
  const once = createOncekey({ store, waitMs: 0, ...options });
  let runs = 0;
  const operation = once.transaction({
    name: "orders.create",
    version: 1,
    run: async () => {
      runs++;
      return created("/orders/1", { run: runs });
    },
    ...definition,
  });
  await once.start();
  const run = (key: string, body: unknown = { a: 1 }) => once.run(operation, { scope, key, input: { body } });
  return { run, runs: () => runs };
}

describe("a deploy between a request and its retry", () => {
  it("replays across a raised version and a tightened schema", async () => {
    const store = memoryStore();
    const before = await release(store);
    await before.run("k", { a: 1 });
    const after = await release(store, {
      version: 2,
      input: { body: z.looseObject({ a: z.number().max(5) }) },
    } as Definition);
    expect((await after.run("k", { a: 1 })).kind).toBe("replayed");
  });

  it("finds keys under a former name", async () => {
    const store = memoryStore();
    const before = await release(store);
    await before.run("k");
    const renamed = await release(store, { name: "orders.place", aliases: ["orders.create"] });
    expect((await renamed.run("k")).kind).toBe("replayed");
    expect(renamed.runs()).toBe(0);
  });

  it("compares under the secret an entry was made with, and answers 503's kind for one it does not know", async () => {
    const store = memoryStore();
    const first = { id: 1, secret: "one" };
    const second = { id: 2, secret: "two" };
    const old = await release(store, {}, { fingerprintSecrets: [first] });
    await old.run("k");
    const rotated = await release(store, {}, { fingerprintSecrets: [second, first] });
    expect((await rotated.run("k")).kind).toBe("replayed");
    expect((await rotated.run("k", { a: 2 })).kind).toBe("mismatch");
    await rotated.run("k2");
    expect((await old.run("k2")).kind).toBe("version_unknown");
  });

  it("never lets two instances of a rotation refuse each other's duplicates", async () => {
    const store = memoryStore();
    const [first, second] = [
      { id: 1, secret: "one" },
      { id: 2, secret: "two" },
    ];
    const entered = gate();
    const finish = gate();
    const run = async () => {
      entered.open();
      await finish.promise;
      return created("/orders/1", {});
    };
    const understands = await release(store, { run }, { fingerprintSecrets: [first, second] });
    const writes = await release(store, {}, { fingerprintSecrets: [second, first] });
    const running = understands.run("k");
    await entered.promise;
    expect((await writes.run("k")).kind).toBe("busy");
    finish.open();
    expect((await running).kind).toBe("completed");
  });
});

describe("after retention", () => {
  const short = { retentionMs: 100_000, clientRetryWindowMs: 0 };

  it("a key runs anew", async () => {
    const time = fakeClock();
    const store = memoryStore({ clock: time.now });
    const { run } = await release(store, { maxDurationMs: 10 }, { ...short, clock: time.clock });
    expect((await run("k")).kind).toBe("completed");
    await time.advance(99_999);
    expect((await run("k")).kind).toBe("replayed");
    await time.advance(1);
    expect((await run("k")).kind).toBe("completed");
  });

  it("a late retry is refused while a tombstone stands, purged or not; another payload is still a mismatch", async () => {
    for (const purged of [false, true]) {
      const time = fakeClock();
      const store = memoryStore({ clock: time.now });
      const { run, runs } = await release(
        store,
        { maxDurationMs: 10 },
        { ...short, tombstoneMs: 50_000, clock: time.clock },
      );
      await run("k");
      await time.advance(100_000);
      if (purged) expect(await store.purge(10)).toBe(1);
      expect(await run("k")).toEqual({ kind: "gone", state: "succeeded" });
      expect((await run("k", { a: 2 })).kind).toBe("mismatch");
      expect(runs()).toBe(1);
      await time.advance(50_000);
      expect((await run("k")).kind).toBe("completed");
    }
  });
});

describe("options of a transaction operation", () => {
  it("skips the look-up and still replays, refuses and validates", async () => {
    const store = memoryStore();
    const schema = z.strictObject({ a: z.number() });
    const { run, runs } = await release(store, { lookUp: "skip", input: { body: schema } } as Definition);
    expect((await run("k")).kind).toBe("completed");
    expect((await run("k")).kind).toBe("replayed");
    expect((await run("k", { a: 2 })).kind).toBe("mismatch");
    await expect(run("k2", { b: 1 })).rejects.toMatchObject({ code: "idempotency_request_invalid" });
    expect(runs()).toBe(1);
  });

  it("compares nothing where the dialect compares nothing", async () => {
    const { run } = await release(memoryStore(), { compare: "none" });
    await run("k", { a: 1 });
    expect((await run("k", { a: 2 })).kind).toBe("replayed");
  });

  it("counts members that validation dropped", async () => {
    const { run } = await release(memoryStore(), { input: { body: z.object({ a: z.number() }) } } as Definition);
    await run("k", { a: 1, extra: 1 });
    expect((await run("k", { a: 1, extra: 2 })).kind).toBe("mismatch");
    expect((await run("k", { a: 1, extra: 1 })).kind).toBe("replayed");
  });

  it("refuses an input schema that is not deterministic", async () => {
    let n = 0;
    const moving = z.unknown().transform(() => ++n);
    const { run } = await release(memoryStore(), { input: { body: moving } } as Definition);
    await expect(run("k")).rejects.toMatchObject({ code: "oncekey_input_unstable" });
  });

  it("gives a handler that hangs past maxDurationMs up, and rolls it back", async () => {
    const time = fakeClock();
    const store = memoryStore({ clock: time.now });
    let hangs = true;
    const run = async ({ tx }: { tx: MemoryTransaction }) => {
      await tx.insert("order", { a: 1 });
      if (hangs) await new Promise(() => {});
      return created("/orders/1", {});
    };
    const orders = await release(store, { run, maxDurationMs: 1_000 }, { clock: time.clock });
    expect((await time.advanceUntil(orders.run("k"))).kind).toBe("lease_lost");
    expect(store.rows("order")).toHaveLength(0);
    hangs = false;
    expect((await time.advanceUntil(orders.run("k"))).kind).toBe("completed");
  });
});

describe("waiting duplicates", () => {
  it("are bounded per key and per process; more get their answer at once", async () => {
    for (const bound of [{ maxWaitersPerKey: 3 }, { maxWaiters: 3 }]) {
      const entered = gate();
      const finish = gate();
      const run = async () => {
        entered.open();
        await finish.promise;
        return created("/orders/1", {});
      };
      const orders = await release(memoryStore(), { run }, { waitMs: 60_000, ...bound });
      const first = orders.run("k");
      await entered.promise;
      const rest = Array.from({ length: 5 }, () => orders.run("k"));
      const crowded = await Promise.all(rest.slice(3));
      expect(crowded.map((result) => result.kind)).toEqual(["busy", "busy"]);
      finish.open();
      expect((await Promise.all([first, ...rest.slice(0, 3)])).map((result) => result.kind)).toEqual([
        "completed",
        ...Array(3).fill("replayed"),
      ]);
    }
  });
});
