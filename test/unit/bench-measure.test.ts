import { describe, expect, it } from "vitest";
import { interleave, ratioOf, type Slice, spreadOf } from "../../bench/measure.ts";

const slice = (requests: number): Slice => ({ requests, tookMs: 1_000, cpuMs: null });

describe("the bench's measure", () => {
  it("lets contenders work in turn, every second round backwards, after a warm-up that is forgotten", async () => {
    const worked: string[] = [];
    const contender = (name: string) => ({
      name,
      async slice() {
        worked.push(name);
        return slice(worked.length);
      },
    });
    const pace = { rounds: 2, sliceMs: 1, warmUpRequests: 1, warmUpMs: 60_000 };
    const slices = await interleave(["a", "b", "c"].map(contender), pace);
    expect(worked.join(" ")).toBe("a b c a b c c b a");
    expect(slices.get("a")?.map(({ requests }) => requests)).toEqual([4, 9]);
    expect(slices.get("c")?.map(({ requests }) => requests)).toEqual([6, 7]);
  });

  it("compares what ran in the same round: a machine that gets slower changes no ratio", () => {
    const one = [slice(200), slice(100), slice(20)];
    const other = [slice(100), slice(50), slice(10)];
    expect(ratioOf(one, other)).toEqual({ median: 2, lower: 2, upper: 2 });
  });

  it("takes median and quartiles, between neighbours where they fall between them", () => {
    expect(spreadOf([5, 1, 3, 2, 4])).toEqual({ median: 3, lower: 2, upper: 4 });
    expect(spreadOf([1, 2])).toEqual({ median: 1.5, lower: 1.25, upper: 1.75 });
    expect(() => spreadOf([])).toThrow("Nothing was measured.");
  });
});
