import { describe, expect, it } from "vitest";
import { type RunOptions, runCases, type Target } from "../../src/verify/index.ts";
import { expressIdempotency, nodeIdempotency } from "../peers/middlewares/middlewares.ts";
import { brokerPort, withBroker } from "../support/brokers/index.ts";
import { middlewareShop } from "./support/middleware-shop.ts";
import { naiveTarget } from "./support/naive.ts";

// What the kit says of two public middlewares, as their documents say to use them, in an application that authenticates
// first. The lists stand in docs/verify.md too.

/** Ids of the failed cases, with what was seen of each where the expectation is not met. */
async function failed(target: Target, options: RunOptions = {}): Promise<Record<string, string>> {
  const { cases } = await runCases({ ...target, lateHeaders: [] }, options);
  expect(cases[0]).toMatchObject({ id: "accepted", verdict: "pass" });
  return Object.fromEntries(cases.filter(({ verdict }) => verdict === "fail").map(({ id, seen }) => [id, seen]));
}

const allOf = (ids: readonly string[]) => Object.fromEntries(ids.map((id) => [id, expect.any(String)]));

/** Cases whose outcome depends on which of two requests is a millisecond earlier, unless the look-up takes its time. */
const RACES = ["duplicates-10", "duplicates-50", "mismatch-running", "hang-up-waiting"];

/** Which of them sees a duplicate in time to refuse it is left to chance. */
const CHANCE = ["busy-answer", "retry-after"];

describe("the kit", () => {
  withBroker("redis", () => {
    it("finds that express-idempotency on Redis runs duplicates that come together", async () => {
      const base = await middlewareShop(await expressIdempotency(await brokerPort("redis"), 100));
      expect(await failed(naiveTarget(base), { only: RACES })).toEqual(allOf(RACES));
    });

    it("finds what else it lacks", async () => {
      const base = await middlewareShop(await expressIdempotency(await brokerPort("redis")));
      expect(await failed(naiveTarget(base), { skip: [...RACES, ...CHANCE] })).toEqual(
        allOf([
          ...["replay-headers", "refusal-replayed", "mismatch-answer", "numbers-exact", "other-tenant"],
          ...["key-missing", "key-empty", "key-non-ascii", "key-two-lines", "key-comma", "key-quoted"],
        ]),
      );
    });
  });

  it("finds in @node-idempotency/core what it lacks, and that it does not run duplicates", async () => {
    const base = await middlewareShop(nodeIdempotency());
    // Slow enough that every duplicate comes while the first runs.
    const target = { ...naiveTarget(base), slowHeaders: [["X-Delay-Ms", "900"]] as const };
    expect(await failed(target)).toEqual(
      allOf([
        ...["replay-headers", "mismatch-answer", "equal-order", "numbers-exact", "other-tenant"],
        ...["key-missing-answer", "key-empty", "key-non-ascii", "key-two-lines", "key-comma", "key-quoted"],
        ...["busy-answer", "retry-after"],
      ]),
    );
  });
});
