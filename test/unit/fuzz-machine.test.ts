import { describe, expect, it } from "vitest";
import { startCoverage } from "../../lab/fuzz/coverage.ts";
import { evolve } from "../../lab/fuzz/evolve.ts";
import { Finding, MARKER, outcomeOf } from "../../lab/fuzz/finding.ts";
import { growthFault } from "../../lab/fuzz/growth.ts";
import { minimal } from "../../lab/fuzz/minimal.ts";
import { mutate } from "../../lab/fuzz/mutate.ts";
import { targets as planted } from "../../lab/fuzz/planted.ts";
import { seededRandom } from "../../lab/fuzz/random.ts";
import { targets } from "../../lab/fuzz/targets.ts";

describe("the fuzzer", () => {
  it("tries the same inputs for the same seed, and others for another one", () => {
    const inputs = (seed: number) => {
      const random = seededRandom(seed);
      const material = { words: [Buffer.from("word")], other: Buffer.from("other"), maxBytes: 64 };
      return Array.from({ length: 50 }, () => mutate(Buffer.from("an input"), material, random).toString("hex"));
    };
    expect(inputs(1)).toEqual(inputs(1));
    expect(inputs(1)).not.toEqual(inputs(2));
    expect(new Set(inputs(1)).size).toBeGreaterThan(40);
    expect(Math.max(...inputs(1).map((hex) => hex.length / 2))).toBeLessThanOrEqual(64);
  });

  it("sees a value that went through a double, and names the smallest input it can", async () => {
    const rounded = planted.find(({ name }) => name === "numbers that went through a double");
    if (rounded === undefined) throw new Error("It is not planted.");
    const { found } = await evolve(rounded, {
      ...{ seed: 1, coverage: null, slowestMs: Number.POSITIVE_INFINITY, mostFound: 1 },
      goesOn: (tried) => tried < 2_000,
    });
    expect(found).toHaveLength(1);
    expect(found[0]?.what).toBe("two values have one form");
    expect(found[0]?.input.length).toBeLessThan(45);
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9])(
    "keeps what reached code first as short as it can be (seed %i)",
    async (seed) => {
      const coverage = startCoverage((url) => url.includes("/planted"));
      try {
        // A module of its own, loaded after the counting began: nothing of it is known.
        const module = new URL(`../../lab/fuzz/planted.ts?seed=${seed}`, import.meta.url).href;
        const { targets: fresh } = (await import(/* @vite-ignore */ module)) as { targets: typeof planted };
        const [maze] = fresh;
        if (maze === undefined) throw new Error("It is not planted.");
        // Three branches deep at once; the tail would take nearly all further changes.
        const long = Buffer.from(`zq9${"-".repeat(800)}`);
        const { kept } = await evolve(
          { ...maze, generate: () => long },
          { seed, coverage, slowestMs: Number.POSITIVE_INFINITY, mostFound: 1, goesOn: (tried) => tried < 1_000 },
        );
        expect(kept.map((input) => Buffer.from(input).toString("latin1"))).toContain("zq9");
        expect(Math.max(...kept.map(({ length }) => length))).toBeLessThanOrEqual(4);
      } finally {
        coverage.stop();
      }
    },
  );

  it("takes an undeclared error for a finding, and a refusal that repeats what was sent", () => {
    const raise = (error: Error) => () => {
      throw error;
    };
    expect(() => outcomeOf(["RangeError"], raise(new TypeError("x")))).toThrow(Finding);
    expect(outcomeOf(["RangeError"], raise(new RangeError("x"))).kind).toBe("refused");
    expect(() => outcomeOf(["RangeError"], raise(new RangeError(`not ${MARKER}`)))).toThrow(/repeats/);
  });

  it("makes an input smaller as long as it shows the same", async () => {
    const smallest = await minimal(Buffer.from("aaaaaXbbbbbbbYcccc"), async (input) =>
      /X.*Y/.test(Buffer.from(input).toString()),
    );
    expect(Buffer.from(smallest).toString()).toBe("XY");
  });

  it("takes quadratic growth for a fault, and linear growth with some noise for none", () => {
    const growth = { target: "t", family: "f", size: 1, tookMs: 500 };
    expect(growthFault({ ...growth, work: 2.1, time: 20 })).toBeNull();
    expect(growthFault({ ...growth, work: 4, time: 20 })).toMatch(/4\.0 times the work/);
    expect(growthFault({ ...growth, work: 2, time: 64 })).toMatch(/as long/);
  });

  it("counts the blocks of code that is loaded after it began", async () => {
    const coverage = startCoverage((url) => url.includes("lab/fuzz/unframed"));
    try {
      const { unframed } = await import("../../lab/fuzz/unframed.ts");
      unframed(Uint8Array.of(1));
      const first = coverage.fresh();
      coverage.keep(first);
      unframed(Uint8Array.of(1));
      expect(coverage.fresh()).toEqual([]);
      unframed(Uint8Array.of(1, 0));
      expect(first.length).toBeGreaterThan(0);
      expect(coverage.fresh().length).toBeGreaterThan(0);
    } finally {
      coverage.stop();
    }
  });

  it("has a name of its own for each target", () => {
    const names = [...targets, ...planted].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
