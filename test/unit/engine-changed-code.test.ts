import { created, createOncekey, type Found, type PhasesContext, reject } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { type Provider, provider } from "../support/provider.ts";

const LEASE_MS = 1_000;

type Op = PhasesContext<MemoryTransaction, unknown>;
type Code = (op: Op, psp: Provider) => Promise<unknown>;

/** Processes of one service over one store and one provider, each with its own code of the same operation. */
function world() {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const psp = provider();
  let id = new Uint8Array();
  const worker = async (code: Code, version = 1) => {
    const own = Object.create(store) as MemoryStore;
    const once = createOncekey({ store: own, clock: time.clock, leaseMs: LEASE_MS, waitMs: 0, onError: () => {} });
    const operation = once.phases({
      name: "charges.create",
      version,
      async run(op) {
        id = Buffer.from(op.id, "hex");
        return (await code(op, psp)) as never;
      },
    });
    await once.start();
    const run = () =>
      time.advanceUntil(once.run(operation, { scope: { tenant: "a", client: null }, key: "k", input: {} }));
    const sweeper = createSweeper(once);
    return { run, sweep: () => time.advanceUntil(sweeper.runOnce()) };
  };
  return { time, store, psp, worker, entry: () => store.read(id) };
}

const call = (op: Op, psp: Provider, name: string, find?: () => Promise<unknown>) =>
  op.call(name, {
    timeoutMs: 500,
    request: { amount: 5 },
    run: ({ key }) => psp.call(key),
    recover: {
      find: (find ?? (({ key }: { key: string }) => psp.find(key))) as () => Promise<Found<{ id: string }>>,
      settlesWithinMs: 2_000,
    },
  });

const complete = (op: Op) => op.complete(async () => created("/1", {}));

describe("a call that was sent and that the code does not make any more", () => {
  const sent: Code = async (op, psp) => {
    await call(op, psp, "authorize");
    return complete(op);
  };
  const changes: [string, Code][] = [
    [
      "renamed",
      async (op, psp) => {
        await call(op, psp, "authorise");
        return complete(op);
      },
    ],
    [
      "behind another one",
      async (op, psp) => {
        await call(op, psp, "check");
        await call(op, psp, "authorize");
        return complete(op);
      },
    ],
    ["dropped", complete],
    ["dropped for a refusal", (op) => op.complete(async () => reject(402, {}))],
  ];
  it.each(changes)("is not followed by anything: %s", async (_, code) => {
    const { time, psp, worker, entry } = world();
    psp.script.push("late");
    const before = await worker(sent);
    expect(await before.run()).toMatchObject({ kind: "unknown" });
    await time.advance(60_000);
    const after = await worker(code, 2);
    expect(await after.run()).toMatchObject({ kind: "unknown", reason: expect.stringContaining("phase_changed") });
    expect(psp.sent).toHaveLength(1);
    psp.land();
    // The code that sent it can settle it.
    await time.advance(60_000);
    expect(await before.sweep()).toMatchObject({ resumed: 1 });
    expect(await entry()).toMatchObject({ state: "succeeded" });
    expect(psp.sent).toHaveLength(1);
  });
});

describe("a look-up that answers nothing we know", () => {
  it.each([undefined, null, [], {}, { id: "auth_1" }, "none", { kind: "None" }, { kind: "nope" }])(
    "is no proof that nothing happened: %j",
    async (answer) => {
      const { time, psp, worker, entry } = world();
      psp.script.push("lost");
      const { run, sweep } = await worker(async (op) => {
        await call(op, psp, "authorize", async () => answer).catch(() => {});
        return op.complete(async () => reject(402, {}));
      });
      await run().catch(() => {});
      for (let n = 0; n < 10; n++) {
        await time.advance(10_000);
        await sweep();
      }
      expect(psp.sent).toHaveLength(1);
      expect(await entry()).toMatchObject({ state: "needs_recovery" });
    },
  );
});

describe("a call that was sent and whose value cannot be stored", () => {
  it("is not turned into a refusal by code that catches its error", async () => {
    const { time, psp, worker, entry } = world();
    const { run, sweep } = await worker(async (op) => {
      try {
        await op.call("authorize", {
          timeoutMs: 500,
          request: { amount: 5 },
          run: async ({ key }) => ({ ...(await psp.call(key)), close() {} }),
          recover: { find: async () => ({ kind: "found", value: { close() {} } }), settlesWithinMs: 2_000 },
        });
      } catch {
        return op.complete(async () => reject(402, {}));
      }
      return complete(op);
    });
    await expect(run()).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    for (let n = 0; n < 10; n++) {
      await time.advance(10_000);
      await sweep();
    }
    expect(psp.sent).toHaveLength(1);
    expect(await entry()).toMatchObject({ state: "needs_recovery" });
  });
});

describe("an instance of an older version in a rollout", () => {
  it("leaves what newer code went on with to the newer code's sweeper", async () => {
    const { time, worker, entry } = world();
    let broken = true;
    const code =
      (names: readonly string[]): Code =>
      async (op) => {
        for (const name of names) await op.phase(name, async () => null);
        if (broken) throw new Error("the database blinked");
        return complete(op);
      };
    const old = await worker(code(["a"]));
    const next = await worker(code(["a", "b"]), 2);
    await old.run().catch(() => {});
    await next.run().catch(() => {});
    broken = false;
    await time.advance(60_000);
    expect(await old.sweep()).toMatchObject({ gaveUp: 1 });
    expect(await entry()).toMatchObject({
      reason: "phase_changed: recorded phase b at 1, the code has phase complete",
    });
    await time.advance(60_000);
    expect(await next.sweep()).toMatchObject({ resumed: 1 });
    expect(await entry()).toMatchObject({ state: "succeeded" });
  });
});
