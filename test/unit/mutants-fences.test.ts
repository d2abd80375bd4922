import { type Clock, createOncekey, type Outcome } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { expect, it } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { gate } from "../support/gate.ts";

const answer = (status: number): Outcome => ({ status, headers: [], body: new Uint8Array() });

it("a claim that a database crash has lost is owned by nobody, though the key is claimed anew meanwhile (V9)", async () => {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const instance = async (clock: Clock) => {
    const once = createOncekey({ store: Object.create(store) as MemoryStore, clock, onError: () => {} });
    const operation = once.capture({ name: "refunds.create", version: 1, maxDurationMs: 60_000 });
    await once.start();
    return (handler: () => Promise<Outcome>) => runCaptured(operation, { handler });
  };
  const claimed: (readonly [id: Uint8Array, fence: Uint8Array])[] = [];
  const { claim } = store;
  store.claim = async (entry, leaseMs) => {
    claimed.push([entry.id, entry.fence]);
    return claim(entry, leaseMs);
  };
  const [wakeOld, wakeNew] = [gate(), gate()];
  const old = (await instance({ monotonicMs: () => 0, after: () => () => {} }))(() =>
    wakeOld.promise.then(() => answer(201)),
  );
  await time.advance(1);
  // As if the commit had never reached the disk: the row is gone, its owner knows nothing of it.
  for (const [id, fence] of claimed) await store.release(id, fence, false);
  const next = (await instance(time.clock))(() => wakeNew.promise.then(() => answer(202)));
  await time.advance(1);
  expect(claimed).toHaveLength(2);
  wakeOld.open();
  expect((await old).kind).toBe("lease_lost");
  wakeNew.open();
  expect(await next).toMatchObject({ kind: "completed", outcome: { status: 202 } });
});
