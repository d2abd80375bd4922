import { createOncekey, type OncekeyEvent } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { gate } from "../support/gate.ts";

describe("the events of a captured handler that outlives its lease", () => {
  it("end its request with the lost lease, and tell its answer where that still counts", async () => {
    const time = fakeClock();
    const store = Object.create(memoryStore({ clock: time.now })) as MemoryStore;
    store.renew = async () => false;
    const events: OncekeyEvent[] = [];
    const observe = (event: OncekeyEvent) => void events.push(event);
    const once = createOncekey({ store, clock: time.clock, leaseMs: 1_000, onError: () => {}, observe });
    const operation = once.capture({ name: "refunds", version: 1, reconcile: async () => ({ kind: "not_done" }) });
    await once.start();
    const end = gate();
    const handler = async () => {
      await end.promise;
      return { status: 201, headers: [], body: new Uint8Array() };
    };
    const running = runCaptured(operation, { handler });
    expect((await time.advanceUntil(running)).kind).toBe("lease_lost");
    const kinds = () => events.map(({ kind }) => kind);
    expect(kinds()).toEqual(["began", "claimed", "needs_recovery", "lease_lost"]);
    end.open();
    await time.advance(0);
    expect(kinds().slice(4)).toEqual(["completed_late"]);
    expect((await runCaptured(operation, { handler })).kind).toBe("replayed");
  });
});
