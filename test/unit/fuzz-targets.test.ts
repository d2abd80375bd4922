import { describe, expect, it } from "vitest";
import { evolve, faultOf, runQuietly } from "../../lab/fuzz/evolve.ts";
import { seedFor } from "../../lab/fuzz/random.ts";
import { targets } from "../../lab/fuzz/targets.ts";

/** A short run with one seed; `npm run fuzz` is the long one. */
const SEED = 20_260_131;
const INPUTS = 400;
const RUNS = 40;
/** What is quadratic takes minutes for this much, and the test's time ends before. */
const GROWN_BYTES = 262_144;

for (const target of targets) {
  describe(`fuzzing: ${target.name}`, () => {
    it("finds nothing wrong with its seeds", async () => {
      for (const seed of target.seeds)
        expect(await faultOf(target, seed), Buffer.from(seed).toString("latin1")).toBeNull();
    });

    it("finds nothing wrong with a few hundred mutations", async () => {
      const { found, inputs } = await evolve(target, {
        ...{ seed: seedFor(SEED, target.name), coverage: null, slowestMs: Number.POSITIVE_INFINITY },
        goesOn: (tried) => tried < INPUTS + target.seeds.length,
      });
      expect(found.map(({ what, input }) => [what, Buffer.from(input).toString("base64")])).toEqual([]);
      expect(inputs).toBeGreaterThanOrEqual(INPUTS);
    });

    for (const { name, check } of target.properties) {
      it(`holds: ${name}`, async () => check({ seed: SEED, numRuns: RUNS }));
    }

    it("comes to an end on inputs made to be slow", () => {
      for (const family of target.families) runQuietly(target, family.make(GROWN_BYTES));
    });
  });
}
