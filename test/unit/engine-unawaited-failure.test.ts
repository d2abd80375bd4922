import { created, createOncekey } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";

describe("a phase that failed and was never awaited", () => {
  it("is not silenced while the operation goes on: its row is missing from what is answered", async () => {
    const time = fakeClock();
    const once = createOncekey({ store: memoryStore({ clock: time.now }), clock: time.clock, onError: () => {} });
    const charges = once.phases({
      name: "charges",
      version: 1,
      async run(op) {
        void op.phase("ledger", async () => {
          throw new Error("the row was refused");
        });
        await new Promise<void>((resolve) => time.clock.after(100, resolve));
        return op.complete(async () => created("/1", {}));
      },
    });
    await once.start();
    const told: unknown[] = [];
    const note = (error: unknown) => void told.push(error);
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
    try {
      const run = once.run(charges, { scope: { tenant: "a", client: null }, key: "k", input: {} });
      await time.advanceUntil(run.catch(() => {}));
      await time.advance(1_000);
    } finally {
      process.off("unhandledRejection", note);
      for (const other of others) process.on("unhandledRejection", other);
    }
    expect(told).toHaveLength(1);
  });
});
