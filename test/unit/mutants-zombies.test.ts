import type { Clock } from "oncekey";
import { describe, expect, it } from "vitest";
import { type ChargesOptions, chargesWorld, LEASE_MS } from "../support/charges.ts";
import { gate } from "../support/gate.ts";
import { provider } from "../support/provider.ts";

/** The clock of a process that sleeps: its own deadline never comes, so only the store can refuse it. */
const STOPPED: Clock = { monotonicMs: () => 0, after: () => () => {} };

/** An owner that slept at a place of its code while another one took over and finished, and then goes on to its end. */
async function wokenAt(asleepAt: string, options: ChargesOptions) {
  const world = chargesWorld(options);
  const entered = gate();
  const wake = gate();
  const places: string[] = [];
  const at = async (place: string) => {
    places.push(place);
    if (place !== asleepAt) return;
    entered.open();
    await wake.promise;
  };
  const zombie = await world.worker({ once: { clock: STOPPED }, at });
  const result = zombie.run("k");
  await entered.promise;
  await world.time.advance(LEASE_MS * 2);
  const successor = await world.worker();
  const taken = await world.time.advanceUntil(successor.run("k"));
  expect(taken.kind).toBe("completed");
  wake.open();
  return { world, places, result: await result };
}

describe("an owner that slept through a takeover", () => {
  it("sends no call whose intent the store refuses", async () => {
    const { world, places, result } = await wokenAt("before_call", {
      recover: (psp) => ({ find: ({ key }) => psp.find(key), settlesWithinMs: 2_000 }),
    });
    expect(result.kind).toBe("lease_lost");
    expect(places).not.toContain("sending");
    expect(world.psp.sent).toHaveLength(1);
  });

  it("does not go on behind a call whose result the store refuses", async () => {
    const { world, places, result } = await wokenAt("sending", { psp: provider({ dedupes: true }) });
    expect(result.kind).toBe("lease_lost");
    expect(places.at(-1)).toBe("sending");
    expect(world.psp.landed).toHaveLength(1);
    expect(world.store.rows("settled")).toHaveLength(1);
  });
});
