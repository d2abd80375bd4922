import { describe, expect, it } from "vitest";
import { beginExecution } from "../../lab/explore/execution.ts";
import { memoryBackend } from "../../lab/explore/memory.ts";
import type { World } from "../../lab/explore/world.ts";
import { chargeWorld, SETTLING, settles } from "../../lab/explore/worlds/calls.ts";
import { client, person } from "../../lab/explore/worlds/cast.ts";
import { codes } from "../../lab/explore/worlds/operators.ts";

/** Follows a schedule by what its choices are called; gives what broke on the way, or `null`. */
async function follow(world: World, schedule: readonly string[]): Promise<string | null> {
  const execution = await beginExecution({ world, seed: "1", backend: memoryBackend, reduces: true });
  try {
    for (const label of schedule) {
      const choices = execution.choices();
      const choice = choices.find((one) => one.label === label || one.label.startsWith(`${label} `));
      if (choice === undefined) throw new Error(`no ${label} among ${choices.map((one) => one.label).join(" | ")}`);
      await execution.take(choice);
      const violation = execution.violation(false);
      if (violation !== null) return `${violation.invariant}: ${violation.found}`;
    }
    return null;
  } finally {
    await execution.end();
  }
}

const gaveUp = chargeWorld({ recover: settles }, SETTLING, {
  name: "stale-look",
  about: "an operator who looked, and decides only after a retry has sent the call again",
  covers: [],
  budget: { ticks: 5, others: { "call late": 1 } },
  processes: codes({ recover: settles, maxAttempts: 1 }),
  actors: [client("Ann", { attempts: 3 }), person("Ada", "B", "fail")],
});

/** The first call never arrives in time; the entry is given up; its time to settle passes, and Ada looks it up: nothing. */
const LOOKED = [
  ...["Ann asks A", "A looks", "A claims", "A commits the intent", "time moves by 100 ms", "A looks up"],
  ...["A marks unknown", "time moves by 900 ms", "time moves by 2000 ms"],
  ...["Ada works", "B looks", "B reads the journal", "B looks up"],
];

/** Meanwhile a retry sends it again, and it lands; its time to settle passes as well. */
const SENT_AGAIN = [
  ...["Ann asks B again", "B looks", "B takes over", "B reads the journal", "B looks up", "B commits the intent"],
  ...["B sends pay 5 7-61-E: it is accepted and cut off", "B looks up", "B marks unknown", "queued pay 5"],
  ...["time moves by 1000 ms", "time moves by 2000 ms"],
];

describe("schedules that broke a rule", () => {
  it("a decision made at once after the look stands", async () => {
    expect(await follow(gaveUp, [...LOOKED, "B resolves", "Ann asks B again", "B looks"])).toBeNull();
  });

  it("an operator's decision counts only for the attempt that the operator saw", async () => {
    expect(await follow(gaveUp, [...LOOKED, ...SENT_AGAIN, "B resolves", "Ann asks A again", "A looks"])).toBeNull();
  });
});
