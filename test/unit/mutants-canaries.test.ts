import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { verdictOf } from "../../lab/canaries/by-test.ts";
import { catcherName } from "../../lab/canaries/canary.ts";
import { staleness } from "../../lab/canaries/mutation.ts";
import { CANARIES } from "../../lab/canaries/plants/index.ts";
import { sampled } from "../../lab/canaries/sample.ts";
import { strykerPlugins } from "../../lab/mutation/prose.ts";
import { percentOf, scoreOf, triedOnly } from "../../lab/mutation/score.ts";
import { repositoryRoot } from "../../scripts/check.ts";

describe("the planted faults", () => {
  it("can all be made in the sources as they are", async () => {
    const reasons = await Promise.all(
      CANARIES.map(async ({ id, edits }) => [id, await staleness(edits, repositoryRoot)] as const),
    );
    expect(reasons.filter(([, reason]) => reason !== null)).toEqual([]);
  });

  it("have names of their own, and name somebody who must notice", () => {
    expect(new Set(CANARIES.map(({ id }) => id)).size).toBe(CANARIES.length);
    expect(CANARIES.filter(({ caughtBy }) => caughtBy.length === 0)).toEqual([]);
    expect(CANARIES.length).toBeGreaterThanOrEqual(25);
  });

  it("name files that exist", () => {
    const files = CANARIES.flatMap(({ caughtBy }) => caughtBy).flatMap((one) => ("test" in one ? [one.test] : []));
    expect(files.filter((file) => !existsSync(join(repositoryRoot, file)))).toEqual([]);
  });

  it("are noticed as stale where their text has gone, came twice, or would change nothing", async () => {
    const edit = { file: "package.json", find: '"name": "oncekey"', replace: '"name": "x"' };
    expect(await staleness([edit], repositoryRoot)).toBe(null);
    expect(await staleness([{ ...edit, find: "no such text" }], repositoryRoot)).toContain("0 times");
    expect(await staleness([{ ...edit, find: '"types"' }], repositoryRoot)).toMatch(/stands \d+ times/);
    expect(await staleness([{ ...edit, replace: edit.find }], repositoryRoot)).toContain("changes nothing");
    expect(await staleness([{ ...edit, file: "no-such-file" }], repositoryRoot)).toContain("there is no");
    expect(await staleness([], repositoryRoot)).toContain("changes nothing");
  });

  it("are sampled by a seed: the same ones again, in their order", () => {
    const items = Array.from({ length: 50 }, (_, at) => at);
    const once = sampled(items, 10, 7);
    expect(sampled(items, 10, 7)).toEqual(once);
    expect(sampled(items, 10, 8)).not.toEqual(once);
    expect(once).toEqual([...new Set(once)].sort((a, b) => a - b));
    expect(once).toHaveLength(10);
    expect(sampled(items, 50, 1)).toEqual(items);
  });

  it("show a catcher by all that makes it another one", () => {
    expect(catcherName({ test: "a", title: "b" })).toBe("a: b");
    expect(catcherName({ world: "w" })).toBe("explore w");
    expect(catcherName({ lab: "l", options: ["--n", "1"], check: "c" })).toBe("l --n 1: c");
  });
});

describe("what a test says of a planted fault", () => {
  const result = (fullName: string, status: string, ...failureMessages: string[]) => ({
    fullName,
    status,
    failureMessages,
  });
  const about = (title: string, ...results: ReturnType<typeof result>[]) => verdictOf({ test: "t", title }, results);

  it("is a catch where it failed by an expectation", () => {
    const failed = result("a suite says so", "failed", "AssertionError: expected 1 to be 2\n    at x");
    expect(about("says so", failed)).toEqual({ kind: "caught", how: "AssertionError: expected 1 to be 2" });
    expect(about("a suite…so", failed, result("a suite is not so", "passed")).kind).toBe("caught");
  });

  it.each(["SyntaxError: x", "TypeError: y is not a function", "Error: Test timed out in 20ms", "ReferenceError: z"])(
    "is no catch where the broken code does not even run, or comes to no end: %s",
    (message) => {
      expect(about("says so", result("a suite says so", "failed", message)).kind).toBe("broken");
    },
  );

  it("is nothing where it passed, another one failed, or none of that name ran", () => {
    const other = result("a suite says no", "failed", "AssertionError: x");
    expect(about("says so", result("a suite says so", "passed"), other)).toEqual({ kind: "clean" });
    expect(about("says so", other).kind).toBe("broken");
    expect(about("says so", result("a suite says so", "skipped")).kind).toBe("broken");
    expect(about("says (so)", result("a suite says so", "failed", "AssertionError: x")).kind).toBe("broken");
  });
});

describe("the score of mutation testing", () => {
  const start = { line: 2, column: 3 };
  const mutant = { mutatorName: "M", replacement: "no", location: { start, end: { line: 2, column: 6 } } } as const;
  const source = "first\n  yes;\n";

  it("counts time-outs as kills, places that no test reaches as survivors, and leaves the rest out", () => {
    const statuses = ["Killed", "Timeout", "Survived", "NoCoverage", "Ignored", "RuntimeError"] as const;
    const score = scoreOf({
      files: { "a.ts": { source, mutants: statuses.map((status) => ({ ...mutant, status })) } },
    });
    expect(score).toMatchObject({ killed: 2, timedOut: 1, ignored: 1 });
    expect(score.survivors.map(({ isUncovered }) => isUncovered)).toEqual([false, true]);
    expect(percentOf(score)).toBe(50);
  });

  it("counts the files of this run, and not what earlier runs found in others", () => {
    const file = { source, mutants: [] };
    const report = { files: { "src/core/a.ts": file, "src/core/json/b.ts": file, "src/engine/a.ts": file } };
    const tried = (...globs: string[]) => Object.keys(triedOnly(report, globs).files);
    expect(tried("src/core/a.ts")).toEqual(["src/core/a.ts"]);
    expect(tried("src/core/**/*.ts")).toEqual(["src/core/a.ts", "src/core/json/b.ts"]);
    expect(tried("src/core/c.ts", "src/engine/a.ts")).toEqual(["src/engine/a.ts"]);
  });

  it("shows what was replaced by what, in one line", () => {
    const mutants = [{ ...mutant, replacement: "\n  no\n", status: "Survived" as const }];
    const [survivor] = scoreOf({ files: { "a.ts": { source, mutants } } }).survivors;
    expect(survivor).toEqual({
      file: "a.ts",
      line: 2,
      code: "yes;",
      mutator: "M",
      from: "yes",
      to: "no",
      isUncovered: false,
    });
  });

  it("leaves text for people alone, and nothing else", () => {
    const ignored = (node: object) => strykerPlugins.map(({ value }) => value.shouldIgnore({ node: node as never }));
    const literal = (value: string) => ignored({ type: "StringLiteral", value });
    const template = (...raws: string[]) =>
      ignored({ type: "TemplateLiteral", quasis: raws.map((raw) => ({ value: { raw } })) });
    const prose = ["Nothing was run or stored.", "names, aliases and versions"];
    for (const text of prose)
      expect([literal(text), template(text)]).toEqual([["text for people"], ["text for people"]]);
    expect(template("Operation ", " was given to nobody")).toEqual(["text for people"]);
    for (const text of ["in_progress", "gave_up: x", "base64url", "", "owner lost"]) {
      expect([literal(text), template(text)]).toEqual([[undefined], [undefined]]);
    }
    expect(ignored({ type: "NumericLiteral", value: 1 })).toEqual([undefined]);
  });
});
