import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { anchors, type Page, pages, root, withoutCode } from "./support/markdown.ts";

/** Relative links that lead nowhere: a missing file, or a heading that the page does not have. */
function brokenLinks({ path, text }: Page): string[] {
  const targets = [...withoutCode(text).matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? "");
  return targets
    .filter((target) => !/^(https?|mailto):/.test(target))
    .filter((target) => !resolves(path, text, target));
}

function resolves(path: string, text: string, target: string): boolean {
  const [file = "", anchor] = target.split("#");
  const full = file === "" ? join(root, path) : join(root, dirname(path), file);
  if (!existsSync(full)) return false;
  return anchor === undefined || anchors(file === "" ? text : readFileSync(full, "utf8")).has(anchor);
}

describe("links of the documentation", () => {
  it.each(pages().map((page) => [page.path, page] as const))("all resolve in %s", (_, page) => {
    expect(brokenLinks(page)).toEqual([]);
  });

  it("are found broken when they are (canary)", () => {
    const text = "# A page\n[a](missing.md) [b](#nowhere) [c](#a-page) [d](https://example.com) `[e](code.md)`\n";
    expect(brokenLinks({ path: "README.md", text })).toEqual(["missing.md", "#nowhere"]);
  });

  it("reach every page of docs/ from the README", () => {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    // Pages of the problem types are linked from docs/errors.md.
    const docs = pages().filter(({ path }) => /^docs\/[^/]+\.md$/.test(path));
    expect(docs.map(({ path }) => path).filter((path) => !readme.includes(`(${path}`))).toEqual([]);
  });
});
