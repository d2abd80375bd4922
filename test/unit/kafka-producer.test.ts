import { createOncekey, type DeliveryStep } from "oncekey";
import { appendKafkaBatch, type KafkaBatchHead, type NumberedBatchOptions } from "oncekey/inbox";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { fakeClock } from "../../src/testing/fake-clock.ts";
import { gate } from "../support/gate.ts";

const KEY = { id: 1, key: new Uint8Array(32).fill(7) };
const HIGHEST = 2 ** 31 - 1;
const orders = { tenant: "acme", topic: "orders", partition: 0 };

type Step = DeliveryStep<MemoryTransaction>;

async function started(options: NumberedBatchOptions = {}) {
  const clock = fakeClock();
  const store = memoryStore({ clock: clock.now });
  const once = createOncekey({ store, waitMs: 5_000, encryptionKeys: [KEY], onError: () => {} });
  await once.start();
  const append = (head: Partial<KafkaBatchHead>, then?: (step: Step) => unknown, partition: object = {}) =>
    appendKafkaBatch(
      once,
      { ...orders, ...partition },
      { producerId: 1n, producerEpoch: 0, baseSequence: 0, records: 1, ...head },
      async (step) => {
        const offset = BigInt((await step.tx.rows("log")).length);
        await step.tx.insert("log", { offset });
        await then?.(step);
        return offset;
      },
      options,
    );
  return { append, store, clock, once };
}

const answer = ({ errorCode, baseOffset }: { errorCode: number; baseOffset: bigint }) => [errorCode, baseOffset];

describe("a batch of an idempotent producer", () => {
  it("is appended in its turn, and answered with its own offset when it is sent again", async () => {
    const { append, store } = await started();
    expect(answer(await append({ records: 3 }))).toEqual([0, 0n]);
    expect(answer(await append({ baseSequence: 3, records: 2 }))).toEqual([0, 1n]);
    expect(answer(await append({ records: 3 }))).toEqual([0, 0n]);
    expect(answer(await append({ baseSequence: 3, records: 2 }))).toEqual([0, 1n]);
    expect(store.rows("log")).toHaveLength(2);
  });

  it("after a gap, across two that are known, or older than five batches is refused with 45", async () => {
    const { append, store } = await started();
    for (const baseSequence of [0, 1, 2, 3, 4, 5]) await append({ baseSequence });
    for (const refused of [{ baseSequence: 7 }, { baseSequence: 0 }, { baseSequence: 4, records: 2 }]) {
      const { result, ...answered } = await append(refused);
      expect(answer(answered)).toEqual([45, -1n]);
      expect(result).toEqual({ kind: "out_of_order", expected: 6n });
    }
    expect(answer(await append({ baseSequence: 1 }))).toEqual([0, 1n]);
    expect(store.rows("log")).toHaveLength(6);
  });

  it("of a producer that is unknown begins at 0, or is refused with 45", async () => {
    const { append, store } = await started();
    const { errorCode, result } = await append({ baseSequence: 4 });
    expect([errorCode, result?.kind]).toEqual([45, "unknown_producer"]);
    expect(store.rows("log")).toEqual([]);
  });

  it("of a newer epoch begins at 0 and fences the older one out with 47", async () => {
    const { append } = await started();
    await append({});
    expect((await append({ producerEpoch: 1, baseSequence: 1 })).errorCode).toBe(45);
    expect(answer(await append({ producerEpoch: 1 }))).toEqual([0, 1n]);
    expect((await append({ baseSequence: 1 })).errorCode).toBe(47);
    expect((await append({})).errorCode).toBe(47);
    expect(answer(await append({ producerEpoch: 1 }))).toEqual([0, 1n]);
  });

  it("counts by tenant, topic, partition and producer", async () => {
    const { append, store } = await started();
    await append({});
    for (const other of [{ tenant: "globex" }, { topic: "bills" }, { partition: 1 }]) {
      expect((await append({}, undefined, other)).result?.kind).toBe("done");
    }
    expect((await append({ producerId: 2n })).result?.kind).toBe("done");
    expect(store.rows("log")).toHaveLength(5);
  });

  it("whose append throws was not sent: the next one is out of order, it itself is taken in", async () => {
    const { append, store } = await started();
    const broken = append({}, () => Promise.reject(new Error("full")));
    await expect(broken).rejects.toThrow("full");
    expect((await append({ baseSequence: 1 })).errorCode).toBe(45);
    expect(answer(await append({}))).toEqual([0, 0n]);
    expect(store.rows("log")).toHaveLength(1);
  });

  it("is appended once where copies of it race, each answered with its offset", async () => {
    const { append, store } = await started();
    const [entered, finish] = [gate(), gate()];
    const first = append({}, () => {
      entered.open();
      return finish.promise;
    });
    await entered.promise;
    const copies = [append({}), append({}), append({ baseSequence: 1 })];
    finish.open();
    expect((await Promise.all([first, ...copies])).map(answer)).toEqual([
      [0, 0n],
      [0, 0n],
      [0, 0n],
      [0, 1n],
    ]);
    expect(store.rows("log")).toHaveLength(2);
  });

  it("that is still being appended elsewhere is answered with 7, which clients send again", async () => {
    const { append } = await started({ waitMs: 0 });
    const [entered, finish] = [gate(), gate()];
    const first = append({}, () => {
      entered.open();
      return finish.promise;
    });
    await entered.promise;
    const { errorCode, result } = await append({});
    expect([errorCode, result]).toMatchObject([7, { kind: "unsettled", why: "busy" }]);
    finish.open();
    await first;
    expect(answer(await append({}))).toEqual([0, 0n]);
  });

  it.each([
    ["no producer", { producerId: -1n, producerEpoch: -1, baseSequence: -1 }],
    ["no epoch", { producerEpoch: -1 }],
    ["no number", { baseSequence: -1 }],
    ["no records", { records: 0 }],
  ])("with %s cannot be told from its repetition: 87", async (_, head) => {
    const { append, store } = await started();
    expect(await append(head)).toEqual({ errorCode: 87, baseOffset: -1n, result: null });
    expect(store.rows("log")).toEqual([]);
  });
});

describe("the numbers of a producer", () => {
  it("begin at 0 again after 2^31 - 1, and its last five batches are known across that", async () => {
    const { append } = await started();
    const most = 100_000_000;
    let baseSequence = 0;
    for (; baseSequence + most < HIGHEST - 2; baseSequence += most) await append({ baseSequence, records: most });
    const fill = { baseSequence, records: HIGHEST - 2 - baseSequence };
    expect((await append(fill)).errorCode).toBe(0);
    const across = { baseSequence: HIGHEST - 2, records: 4 };
    const sent = [across, { baseSequence: 1, records: 2 }, { baseSequence: 3, records: 1 }];
    const offsets = [];
    for (const one of sent) offsets.push(answer(await append(one)));
    for (const [index, one] of [fill, ...sent].entries()) {
      const [errorCode, baseOffset] = answer(await append(one));
      expect(errorCode).toBe(0);
      if (index > 0) expect(baseOffset).toBe(offsets[index - 1]?.[1]);
    }
    // 0 was the number of the very first one, a lap ago.
    expect((await append({ baseSequence: 0, records: most })).errorCode).toBe(45);
    expect((await append({ baseSequence: 5 })).errorCode).toBe(45);
    expect((await append({ baseSequence: 4 })).errorCode).toBe(0);
  });

  it("are kept for ever, its last batches for as long as it says: a repetition then is an error, never another append", async () => {
    const { append, store, clock } = await started({ rememberMs: 600_000 });
    await append({});
    await clock.advance(599_000);
    expect(answer(await append({}))).toEqual([0, 0n]);
    await clock.advance(2_000);
    expect((await append({})).errorCode).toBe(45);
    expect(answer(await append({ baseSequence: 1 }))).toEqual([0, 1n]);
    expect(answer(await append({ baseSequence: 1 }))).toEqual([0, 1n]);
    expect(store.rows("log")).toHaveLength(2);
  });
});

describe("a numbered batch", () => {
  it("gives what its handler gave, as it was recorded, and has a reference of its own", async () => {
    const { once, store } = await started();
    const references: string[] = [];
    const take = (first: bigint) =>
      once.consumeNumberedBatch(
        { tenant: "acme", source: "meters", producer: "p", epoch: 0n, first, count: 2n, correlation: "trace-1" },
        async ({ reference, send }) => {
          references.push(reference);
          await send("reading.taken", { first });
          return { at: new Date(5), first };
        },
      );
    const [first, second, again] = [await take(0n), await take(2n), await take(0n)];
    expect(first).toEqual({ kind: "done", value: { at: new Date(5), first: 0n } });
    expect(second).toMatchObject({ kind: "done", value: { first: 2n } });
    expect(again).toEqual({ kind: "duplicate", value: { at: new Date(5), first: 0n } });
    expect(new Set(references).size).toBe(2);
    expect(store.messages()).toMatchObject([{ correlation: "trace-1" }, { correlation: "trace-1" }]);
  });

  it("shares its producer's number with messages that come alone", async () => {
    const { once } = await started();
    const producer = { tenant: "acme", source: "meters", producer: "p", epoch: 0n };
    await once.consumeNumberedBatch({ ...producer, first: 0n, count: 3n }, async () => {});
    expect((await once.consumeNumbered({ ...producer, sequence: 2n }, async () => {})).kind).toBe("duplicate");
    expect((await once.consumeNumbered({ ...producer, sequence: 3n }, async () => {})).kind).toBe("done");
    const next = { ...producer, first: 4n, count: 1n };
    expect((await once.consumeNumberedBatch(next, async () => {})).kind).toBe("done");
  });

  const wrong: [string, object][] = [
    ["an ordinary number", { first: 1 }],
    ["a number of more than 31 bits", { first: 2n ** 31n }],
    ["an empty batch", { count: 0n }],
    ["more than a batch can have", { count: 100_000_001n }],
    ["a negative epoch", { epoch: -1n }],
    ["no producer", { producer: "" }],
  ];
  it.each(wrong)("is refused: %s", async (_, more) => {
    const { once } = await started();
    const batch = { tenant: "acme", source: "s", producer: "p", epoch: 0n, first: 0n, count: 1n, ...more };
    const taking = once.consumeNumberedBatch(batch, async () => {});
    await expect(taking).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
  });

  it("is refused where it would be forgotten while it may still run", async () => {
    const { once } = await started();
    const batch = { tenant: "acme", source: "s", producer: "p", epoch: 0n, first: 0n, count: 1n };
    const taking = once.consumeNumberedBatch(batch, async () => {}, { rememberMs: 1_000 });
    await expect(taking).rejects.toMatchObject({ code: "oncekey_delivery_invalid" });
  });
});
