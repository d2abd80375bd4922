import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./support/markdown.ts";

/** How many faults the page has: a row that is lost must be noticed. */
const FAULTS = 98;

interface Row {
  readonly id: string;
  readonly here: string;
  readonly shown: string;
}

const rows = rowsOf(readFileSync(join(root, "docs", "faults.md"), "utf8"));

function rowsOf(text: string): Row[] {
  const lines = text.split("\n").filter((line) => line.startsWith("| F"));
  return lines.map((line) => {
    const [, id = "", , here = "", shown = ""] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    return { id, here, shown };
  });
}

/** Names of tests in a row that no file has. */
function unknownTests({ shown }: Row): string[] {
  if (shown === "–") return [];
  return shown.split("<br>").filter((reference) => {
    const [, path = "", title = ""] = /^\[[^\]]+\]\(\.\.\/([^)]+)\) "(.+)"$/.exec(reference) ?? [];
    const file = join(root, path);
    return title === "" || !existsSync(file) || !readFileSync(file, "utf8").includes(title);
  });
}

describe("the faults of other systems", () => {
  it("are all there, once each, in order", () => {
    const ids = rows.map(({ id }) => id);
    expect(ids).toHaveLength(FAULTS);
    expect(ids).toEqual([...new Set(ids)].toSorted());
  });

  it("are shown by tests that exist, or say why they do not apply", () => {
    expect(rows.flatMap(unknownTests)).toEqual([]);
    const silent = rows.filter(({ here, shown }) => shown === "–" && !here.startsWith("does not apply"));
    expect(silent).toEqual([]);
  });

  it("are noticed when a test is renamed, or a row names none (canary)", () => {
    const [first] = rows as [Row];
    expect(unknownTests({ ...first, shown: first.shown.replace(/"$/, ' no more"') })).toHaveLength(1);
    expect(unknownTests({ ...first, shown: "" })).toEqual([""]);
  });
});
