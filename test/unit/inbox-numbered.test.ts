import { createOncekey, type DeliveryStep, type NumberedMessage } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";

type Step = DeliveryStep<MemoryTransaction>;

async function started() {
  const store = memoryStore();
  const once = createOncekey({ store, waitMs: 5_000, onError: () => {} });
  await once.start();
  const consume = (sequence: bigint, more: Partial<NumberedMessage> = {}, then?: (step: Step) => unknown) =>
    once.consumeNumbered(
      { tenant: "acme", source: "meter", producer: "p1", epoch: 0n, sequence, ...more },
      async (step) => {
        await step.tx.insert("reading", { sequence });
        await then?.(step);
        return sequence;
      },
    );
  return { once, store, consume };
}

describe("a numbered message", () => {
  it("is accepted in its order; one that was seen is acknowledged, one after a gap is refused", async () => {
    const { consume, store } = await started();
    expect(await consume(0n)).toEqual({ kind: "done", value: 0n });
    expect(await consume(1n)).toEqual({ kind: "done", value: 1n });
    expect(await consume(0n)).toEqual({ kind: "duplicate" });
    expect(await consume(1n)).toEqual({ kind: "duplicate" });
    expect(await consume(3n)).toEqual({ kind: "out_of_order", expected: 2n });
    expect(await consume(2n)).toEqual({ kind: "done", value: 2n });
    expect(store.rows("reading")).toEqual([{ sequence: 0n }, { sequence: 1n }, { sequence: 2n }]);
  });

  it("begins at 0, also in a new epoch, which fences the lower ones out", async () => {
    const { consume } = await started();
    expect(await consume(5n)).toEqual({ kind: "out_of_order", expected: 0n });
    await consume(0n);
    await consume(1n);
    expect(await consume(2n, { epoch: 1n })).toEqual({ kind: "out_of_order", expected: 0n });
    expect((await consume(0n, { epoch: 1n })).kind).toBe("done");
    expect(await consume(2n)).toEqual({ kind: "fenced", epoch: 1n });
    expect(await consume(0n)).toEqual({ kind: "fenced", epoch: 1n });
    expect((await consume(1n, { epoch: 1n })).kind).toBe("done");
  });

  it("counts by tenant, source and producer", async () => {
    const { consume } = await started();
    for (const other of [{}, { tenant: "globex" }, { source: "gas" }, { producer: "p2" }]) {
      expect((await consume(0n, other)).kind).toBe("done");
    }
  });

  it("does not move the number when its handler throws", async () => {
    const { consume, store } = await started();
    await consume(0n);
    await expect(consume(1n, {}, () => Promise.reject(new Error("boom")))).rejects.toThrow("boom");
    expect(await consume(2n)).toEqual({ kind: "out_of_order", expected: 1n });
    expect((await consume(1n)).kind).toBe("done");
    expect(store.rows("reading")).toHaveLength(2);
  });

  it("runs once when copies of it race, and the next one waits its turn", async () => {
    const { consume, store } = await started();
    const entered = gate();
    const finish = gate();
    const first = consume(0n, {}, () => {
      entered.open();
      return finish.promise;
    });
    await entered.promise;
    const others = [consume(0n), consume(1n), consume(1n)];
    finish.open();
    expect((await first).kind).toBe("done");
    const kinds = (await Promise.all(others)).map(({ kind }) => kind);
    expect(kinds.sort()).toEqual(["done", "duplicate", "duplicate"]);
    expect(store.rows("reading")).toHaveLength(2);
  });

  it("has a reference of its own and sends messages", async () => {
    const { consume, store } = await started();
    const references: string[] = [];
    const more = { correlation: "trace-1" };
    for (const sequence of [0n, 1n]) {
      await consume(sequence, more, async ({ reference, send }) => {
        references.push(reference);
        await send("reading.taken", { sequence });
      });
    }
    expect(new Set(references).size).toBe(2);
    expect(store.messages()).toMatchObject([
      { tenant: "acme", correlation: "trace-1", payload: '{"sequence":0}' },
      { payload: '{"sequence":1}' },
    ]);
  });

  const wrong: [string, object][] = [
    ["an ordinary number", { sequence: 1 }],
    ["a negative one", { sequence: -1n }],
    ["one beyond 64 bits", { epoch: 2n ** 63n }],
    ["no producer", { producer: "" }],
  ];
  it.each(wrong)("is refused: %s", async (_, more) => {
    const { consume } = await started();
    await expect(consume(0n, more)).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
  });
});
