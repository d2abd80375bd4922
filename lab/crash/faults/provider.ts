import { awaited, type FaultKind } from "../fault.ts";
import type { World } from "../world.ts";

const LIMIT_MS = 5_000;
/** Of pieces that come by; more than any fault waits for. */
const ANY = Number.MAX_SAFE_INTEGER;

/** The next payments fail, or are made without anybody hearing of it. */
export function nextPayments(knob: "fail_next" | "drop_next"): FaultKind {
  return {
    name: `provider_${knob}`,
    lane: "wires",
    async strike(world, random) {
      const times = random.between(2, 5);
      let left = times;
      await world.behave({ [knob]: times });
      await awaited(async () => {
        left = (await world.behave({}))[knob];
        return left === 0;
      }, LIMIT_MS);
      await world.behave({ [knob]: 0 });
      return { did: `provider: ${knob} ${times}, ${times - left} of them came`, met: times - left };
    },
  };
}

/** For a while the provider takes payments and makes them later, when nobody is there any more. */
export const landsLater: FaultKind = {
  name: "provider_land_after",
  lane: "wires",
  strike(world, random) {
    const land_after_ms = random.between(300, 1_500);
    return forAWhile(world, { land_after_ms }, random.between(800, 2_000));
  },
};

/** For a while the provider refuses everything. */
export const down: FaultKind = {
  name: "provider_down",
  lane: "wires",
  strike: (world, random) => forAWhile(world, { down: true }, random.between(500, 1_500)),
};

/** For a while the provider is slow, slower than a lease for some. */
export const slow: FaultKind = {
  name: "provider_slow",
  lane: "wires",
  strike: (world, random) => forAWhile(world, { latency_ms: random.between(200, 2_500) }, random.between(800, 2_500)),
};

type Mood = Parameters<World["behave"]>[0];

async function forAWhile(world: World, mood: Mood, lastsMs: number) {
  await world.behave(mood);
  // A strike that does nothing counts what comes by.
  const met = await world.network.psp.strike(
    { toward: "server", act: { delayMs: 0 } },
    { times: ANY, limitMs: lastsMs },
  );
  const names = Object.keys(mood) as (keyof Mood)[];
  await world.behave(Object.fromEntries(names.map((name) => [name, world.goodDay[name]])));
  return { did: `provider: ${JSON.stringify(mood)} for ${lastsMs} ms; ${met} pieces of requests came`, met };
}
