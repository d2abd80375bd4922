import { createOncekey } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { expect, it } from "vitest";
import { gate } from "../support/gate.ts";

it("a delivery that somebody took in between look-up and lock is a duplicate, and its handler is not even begun", async () => {
  const shared = memoryStore();
  const looked = gate();
  const goOn = gate();
  const slowLook: Partial<MemoryStore> = {
    async deliveries(digests) {
      const known = await shared.deliveries(digests);
      looked.open();
      await goOn.promise;
      return known;
    },
  };
  const slow = createOncekey({ store: Object.assign(Object.create(shared) as MemoryStore, slowLook) });
  const fast = createOncekey({ store: shared });
  await Promise.all([slow.start(), fast.start()]);
  const event = { tenant: "acme", source: "payments", id: "evt_1" };
  const begun: string[] = [];
  const late = slow.consume(event, async () => void begun.push("slow"));
  await looked.promise;
  expect(await fast.consume(event, async () => void begun.push("fast"))).toMatchObject({ kind: "done" });
  goOn.open();
  expect(await late).toMatchObject({ kind: "duplicate" });
  expect(begun).toEqual(["fast"]);
});
