import { created, createOncekey, type OncekeyOptions } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";

const scope = { tenant: "a", client: null };

function world(options: Partial<OncekeyOptions<MemoryTransaction>> = {}) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  return { time, store, once: createOncekey({ store, clock: time.clock, onError: () => {}, ...options }) };
}

describe("a call still under way when the operation throws", () => {
  it("is no unhandled rejection, which would end the process", async () => {
    const { time, once } = world();
    const charges = once.phases({
      name: "charges",
      version: 1,
      async run(op) {
        const call = op.call("authorize", {
          timeoutMs: 500,
          request: {},
          run: () => new Promise<never>(() => {}),
          recover: { dedupes: { forMs: 3_600_000 } },
        });
        await Promise.reject(new Error("a step in between failed"));
        await call;
        return op.complete(async () => created("/1", {}));
      },
    });
    await once.start();
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
    try {
      const running = once.run(charges, { scope, key: "k", input: {} });
      await expect(time.advanceUntil(running)).rejects.toThrow("a step in between failed");
      await time.advance(10_000);
    } finally {
      process.off("unhandledRejection", note);
      for (const other of others) process.on("unhandledRejection", other);
    }
    expect(unhandled).toEqual([]);
  });
});

describe("user code that gives a plain value instead of a promise", () => {
  it("is a call that was answered, and is not sent again", async () => {
    const { time, once } = world();
    let sent = 0;
    const charges = once.phases({
      name: "charges",
      version: 1,
      async run(op) {
        await op.call("authorize", {
          timeoutMs: 500,
          request: {},
          run: (() => ++sent) as never,
          recover: { dedupes: { forMs: 3_600_000 } },
        });
        return op.complete(async () => created("/1", {}));
      },
    });
    await once.start();
    const result = await time.advanceUntil(once.run(charges, { scope, key: "k", input: {} }));
    expect({ kind: result.kind, sent }).toEqual({ kind: "completed", sent: 1 });
  });

  it("is a transaction's response", async () => {
    const { time, once } = world();
    const invoices = once.transaction({ name: "invoices", version: 1, run: (() => created("/1", {})) as never });
    await once.start();
    const result = await time.advanceUntil(once.run(invoices, { scope, key: "k", input: {} }));
    expect(result.kind).toBe("completed");
  });
});

describe("a suspicion of another payload", () => {
  it("is forgotten once an exact duplicate is seen running", async () => {
    const { time, store, once } = world();
    const invoices = once.transaction({ name: "invoices", version: 1, run: async () => created("/1", {}) });
    await once.start();
    const said = ["mismatch", "busy", "mismatch", "busy", "mismatch", "busy", "mismatch", "busy"];
    const { transaction } = store;
    store.transaction = (body) =>
      transaction((session) => {
        const lock: typeof session.lock = async (...given) => (said.shift() as "busy") ?? session.lock(...given);
        return body(Object.assign(Object.create(session), { lock }));
      });
    const result = await time.advanceUntil(once.run(invoices, { scope, key: "k", input: {}, waitMs: 60_000 }));
    expect(result.kind).toBe("completed");
  });
});

describe("an intent whose answer was slow", () => {
  it("is sent all the same where no settle time counts from it", async () => {
    const { time, store, once } = world({ leaseMs: 30_000 });
    let sent = 0;
    const charges = once.phases({
      name: "charges",
      version: 1,
      maxDurationMs: 20_000,
      async run(op) {
        await op.call("authorize", {
          timeoutMs: 500,
          request: {},
          run: async () => ++sent,
          recover: { atMostOnce: true },
        });
        return op.complete(async () => created("/1", {}));
      },
    });
    await once.start();
    const { openIntent } = store;
    store.openIntent = async (...given) => {
      const intent = await openIntent(...given);
      await new Promise<void>((resolve) => time.clock.after(1_500, resolve));
      return intent;
    };
    const result = await time.advanceUntil(once.run(charges, { scope, key: "k", input: {} }));
    expect({ kind: result.kind, sent }).toEqual({ kind: "completed", sent: 1 });
  });
});
