import { created, createOncekey } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { type ChargesOptions, chargesWorld, LEASE_MS } from "../support/charges.ts";
import { gate } from "../support/gate.ts";
import { provider } from "../support/provider.ts";

type Form = NonNullable<ChargesOptions["recover"]>;

const cancels: Form = (psp) => ({ find: ({ key }) => psp.find(key), cancel: ({ key }) => psp.cancel(key) });
const settles: Form = (psp) => ({ find: ({ key }) => psp.find(key), settlesWithinMs: 20_000 });
const never: Form = () => ({ atMostOnce: true });

/** A world whose worker writes down, at each sending, the states of the intents that are committed by then. */
async function watched(recover: Form) {
  const world = chargesWorld({ recover });
  const seen: string[][] = [];
  const worker = await world.worker({
    at: async (place) => {
      if (place !== "sending") return;
      const { intents } = await world.store.journal(world.id());
      seen.push(intents.map(({ state }) => state));
    },
  });
  return { world, seen, run: () => world.time.advanceUntil(worker.run("k")) };
}

describe("an outside call", () => {
  it.each([
    ["find and cancel", cancels],
    ["find and a settle time", settles],
    ["at most once", never],
  ])("finds its intent committed when it is sent (%s)", async (_, recover) => {
    const { seen, run } = await watched(recover);
    expect((await run()).kind).toBe("completed");
    expect(seen).toEqual([["open"]]);
  });

  it("of a next generation finds the one before written down as cancelled", async () => {
    const { world, seen, run } = await watched(cancels);
    world.psp.script.push("late");
    expect((await run()).kind).toBe("completed");
    expect(seen).toEqual([["open"], ["cancelled", "open"]]);
  });

  it("is not sent where its process slept between the intent and the sending, and no timer told it", async () => {
    const world = chargesWorld({ recover: settles });
    const asleep = gate();
    const wake = gate();
    const zombie = await world.worker({
      once: {
        // It goes on before its timers fire: only a look at the clock can stop it.
        clock: { ...world.time.clock, after: () => () => {} },
        onPoint: async (point) => {
          if (point !== "call:authorize:before") return;
          asleep.open();
          await wake.promise;
        },
      },
    });
    const result = zombie.run("k");
    await asleep.promise;
    await world.time.advance(LEASE_MS);
    wake.open();
    expect((await world.time.advanceUntil(result)).kind).toBe("lease_lost");
    expect(world.psp.sent).toEqual([]);
  });
});

describe("an operation that throws after a call was sent", () => {
  it("keeps everybody away until what was sent has settled, though the first throw frees the lease otherwise", async () => {
    const unstorable = async () => ({ id: "auth_1", close() {} });
    const world = chargesWorld({ recover: settles, psp: { ...provider(), call: unstorable } });
    const worker = await world.worker();
    await expect(worker.run("k")).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    const entry = await world.entry();
    expect(entry).toMatchObject({ state: "in_progress", attempt: 1 });
    expect(entry?.clock.claimableInMs).toBeGreaterThanOrEqual(20_000);
  });

  it("keeps its entry where nothing else tells of the call: the other side's window began with the claim", async () => {
    const time = fakeClock();
    const store = memoryStore({ clock: time.now });
    const once = createOncekey({ store, clock: time.clock, leaseMs: LEASE_MS, onError: () => {} });
    let id = "";
    const operation = once.phases({
      name: "mails.send",
      version: 1,
      async run(op) {
        id = op.id;
        await op.call("send", {
          timeoutMs: 500,
          request: {},
          run: async () => ({ close() {} }),
          recover: { dedupes: { forMs: 60_000 } },
        });
        return op.complete(async () => created("/mails/1", {}));
      },
    });
    await once.start();
    const run = once.run(operation, { scope: { tenant: "acme", client: null }, key: "k", input: {} });
    await expect(run).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
    expect(await store.read(Buffer.from(id, "hex"))).toMatchObject({ state: "in_progress", attempt: 1 });
  });
});
