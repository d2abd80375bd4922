import { created, createOncekey, type PhasesContext } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { StoreFailure } from "../../src/core/store.ts";

type Op = PhasesContext<MemoryTransaction, unknown>;
type Code = (op: Op, attempt: number) => Promise<unknown>;

async function world(code: Code) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const view = Object.create(store) as MemoryStore;
  const once = createOncekey({ store: view, clock: time.clock, leaseMs: 1_000, waitMs: 0, onError: () => {} });
  let attempts = 0;
  let id = new Uint8Array();
  const operation = once.phases({
    name: "charges.create",
    version: 1,
    run: async (op) => {
      id = Buffer.from(op.id, "hex");
      return (await code(op, ++attempts)) as never;
    },
  });
  await once.start();
  const run = () =>
    time.advanceUntil(once.run(operation, { scope: { tenant: "a", client: null }, key: "k", input: {} }));
  return { time, store, view, run, attempts: () => attempts, entry: () => store.read(id) };
}

const boom = new Error("boom");
const fails = () => Promise.reject(boom);
const done = (op: Op) => op.complete(async () => created("/1", {}));
const call = { timeoutMs: 100, request: {}, run: async () => "paid", recover: { atMostOnce: true } } as const;

describe("the name of a step", () => {
  it.each([
    ["one character", "x", true],
    ["as long as one may be", "x".repeat(255), true],
    ["longer", "x".repeat(256), false],
    ["no text", 7, false],
  ])("is text of 1 to 255 characters: %s", async (_, name, isName) => {
    const { run } = await world((op) => op.phase(name as string, async () => 1).then(() => done(op)));
    if (isName) expect((await run()).kind).toBe("completed");
    else await expect(run()).rejects.toMatchObject({ code: "oncekey_phase_duplicate" });
  });

  it("is free again after its step failed, in the same attempt as well", async () => {
    const { run, store } = await world(async (op) => {
      await expect(op.phase("row", fails)).rejects.toBe(boom);
      await op.phase("row", ({ tx }) => tx.insert("row", {}));
      return done(op);
    });
    expect((await run()).kind).toBe("completed");
    expect(store.rows("row")).toHaveLength(1);
  });
});

describe("a step that fails", () => {
  it("is the operation's own business, and no place for another one to stand in", async () => {
    const { run, store } = await world(async (op, attempt) => {
      await op.phase("first", async () => 1);
      if (attempt === 1) throw boom;
      await op.phase("second", fails).catch(() => {});
      await op.phase("third", ({ tx }) => tx.insert("row", {}));
      return done(op);
    });
    await expect(run()).rejects.toBe(boom);
    expect((await run()).kind).toBe("completed");
    expect(store.rows("row")).toHaveLength(1);
  });

  it.each(["unavailable", "commit_unknown", "contention"] as const)(
    "by its store ends the attempt, whatever its code makes of it (%s)",
    async (kind) => {
      const { run, entry } = await world(async (op) => {
        await op.phase("first", async () => 1);
        await op.phase("second", () => Promise.reject(new StoreFailure(kind, "away"))).catch(() => {});
        return done(op);
      });
      expect((await run()).kind).toBe(kind === "unavailable" ? "store_unavailable" : kind);
      expect(await entry()).toMatchObject({ state: "in_progress", outcome: null });
    },
  );

  it.each([
    ["an intent", call.recover],
    ["none", { dedupes: { forMs: 3_600_000 } }],
  ] as const)("after its call was sent ends the attempt as well, and gives its own error (%s)", async (_, recover) => {
    const { run, entry } = await world(async (op) => {
      await op.call("pay", { ...call, recover, run: async () => ({ close() {} }) }).catch(() => {});
      return done(op);
    });
    await expect(run()).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    expect(await entry()).toMatchObject({ state: "in_progress", outcome: null });
  });
});

describe("the journal", () => {
  it("is read where there can be one, and only there", async () => {
    const { run, view, store } = await world(async (op, attempt) => {
      await op.phase("row", async () => attempt);
      if (attempt === 1) throw boom;
      return done(op);
    });
    let reads = 0;
    view.journal = async (id) => {
      reads++;
      return store.journal(id);
    };
    await expect(run()).rejects.toBe(boom);
    expect(reads).toBe(0);
    expect((await run()).kind).toBe("completed");
    expect(reads).toBe(1);
  });

  it("tells of a call by its newest generation, in whatever order they come", async () => {
    for (const order of [1, -1]) {
      const keys: string[] = [];
      const landed: string[] = [];
      const cancelled: string[] = [];
      const looked: string[] = [];
      let answers = false;
      const { run, view, store, time } = await world(async (op) => {
        await op.call("pay", {
          timeoutMs: 100,
          request: {},
          run: async ({ key }) => {
            keys.push(key);
            if (!answers) throw boom;
            landed.push(key);
            return "paid";
          },
          recover: {
            find: async ({ key }) => {
              looked.push(key);
              return landed.includes(key) ? { kind: "found", value: "paid" } : { kind: "none" };
            },
            cancel: async ({ key }) => {
              cancelled.push(key);
            },
          },
        });
        return done(op);
      });
      expect((await run()).kind).toBe("unknown");
      expect([keys.length, cancelled.length]).toEqual([3, 3]);
      await time.advance(2_000);
      view.journal = async (id) => {
        const { records, intents } = await store.journal(id);
        return { records, intents: intents.toSorted((a, b) => order * (a.generation - b.generation)) };
      };
      answers = true;
      looked.length = 0;
      expect((await run()).kind).toBe("completed");
      // The fourth: what the third was cancelled for needs no look any more.
      expect([new Set(keys).size, looked.length]).toEqual([4, 0]);
    }
  });
});

describe("code that has another step where an earlier attempt stopped", () => {
  it.each<[string, Code, string]>([
    [
      "another kind",
      (op) => op.phase("pay", async () => 1),
      "phase_changed: recorded call pay at 0, the code has phase pay",
    ],
    ["another name", (op) => op.call("buy", call), "phase_changed: recorded call pay at 0, the code has call buy"],
  ])("is stopped where the recorded one has %s", async (_, code, reason) => {
    const { run, entry } = await world(async (op, attempt) => {
      if (attempt > 1) return code(op, attempt);
      await op.call("pay", call);
      throw boom;
    });
    await expect(run()).rejects.toBe(boom);
    expect(await run()).toMatchObject({ kind: "unknown", state: "needs_recovery", reason });
    expect(await entry()).toMatchObject({ reason });
  });
});
