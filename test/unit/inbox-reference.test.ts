import { createOncekey, ok } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { deliveryReference, entryReference, numberedDigest } from "../../src/core/reference.ts";

const scope = { tenant: "acme", client: null };
const DAY_MS = 86_400_000;

async function started() {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const once = createOncekey({ store, clock: time.clock, waitMs: 0, leaseMs: 1_000, onError: () => {} });
  const seen: string[] = [];
  const input = { body: z.strictObject({ amount: z.number() }) };
  const invoices = once.transaction({
    ...{ name: "invoices.create", version: 1, input },
    async run({ reference }) {
      seen.push(reference);
      return ok({});
    },
  });
  const broken = { left: 0 };
  const charges = once.phases({
    ...{ name: "charges.create", version: 1, input },
    async run(op) {
      await op.phase("charge", async ({ reference }) => void seen.push(reference));
      if (broken.left-- > 0) throw new Error("broken");
      return op.complete(async ({ reference }) => {
        seen.push(reference);
        return ok({});
      });
    },
  });
  await once.start();
  const run = (operation: typeof invoices | typeof charges, key = "k", amount = 5, of = scope) =>
    once.run(operation, { scope: of, key, input: { body: { amount } } });
  return { time, store, once, invoices, charges, run, seen, broken };
}

describe("a reference", () => {
  it("is the same in every step and on every attempt", async () => {
    const { charges, run, seen, broken } = await started();
    broken.left = 1;
    await expect(run(charges)).rejects.toThrow("broken");
    expect((await run(charges)).kind).toBe("completed");
    expect(seen).toHaveLength(2);
    expect(new Set(seen).size).toBe(1);
    expect(seen[0]).toMatch(/^[\w-]{43}$/);
  });

  it("is the same after the entry was purged, unless the payload is another one", async () => {
    const { invoices, run, seen, time, store } = await started();
    for (const amount of [5, 5, 6]) {
      expect((await run(invoices, "k", amount)).kind).toBe("completed");
      await time.advance(DAY_MS + 1);
      expect(await store.purge(10)).toBe(1);
    }
    const [first, second, third] = seen;
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  it("is shared by no two keys, tenants or operations", async () => {
    const { invoices, charges, run, seen } = await started();
    await run(invoices);
    await run(invoices, "k2");
    await run(invoices, "k", 5, { tenant: "globex", client: null });
    await run(charges);
    expect(new Set(seen).size).toBe(4);
  });

  it("of a delivery is the same whenever it is taken in", async () => {
    const { once, time } = await started();
    const consume = (id: string) =>
      once.consume({ tenant: "acme", source: "payments", id }, async ({ reference }) => reference);
    const first = await consume("evt_1");
    await time.advance(8 * DAY_MS);
    expect(await consume("evt_1")).toEqual(first);
    expect(await consume("evt_2")).not.toEqual(first);
  });

  it("is frozen", () => {
    const bytes = (length: number, from: number) => Uint8Array.from({ length }, (_, index) => from + index);
    expect(entryReference({ id: bytes(32, 0), fingerprint: bytes(35, 100) })).toBe(
      "KQmxgyrjL7yje9j-5psPQkh7D9nTc3ogdCYc77cLits",
    );
    expect(deliveryReference(bytes(32, 0))).toBe("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
    const message = { tenant: "acme", source: "meter", producer: "p1", epoch: 1n, sequence: 2n };
    expect(deliveryReference(numberedDigest(message))).toBe("wHByJzhU-mAeI7DQcZKws5T4SvfAQtAyKaqI1pNQgzk");
  });
});
