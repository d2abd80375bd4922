import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { codes } from "oncekey";
import { describe, expect, it } from "vitest";
import { root } from "./support/markdown.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");
const clientCodes = Object.entries(codes).flatMap(([code, { audience }]) => (audience === "client" ? [code] : []));

describe("docs/problems", () => {
  it("has a page for every code that clients may see, and no other", () => {
    const files = readdirSync(join(root, "docs/problems")).map((name) => name.replace(/\.md$/, ""));
    expect(files.toSorted()).toEqual(clientCodes.toSorted());
  });

  it("is linked from docs/errors.md, page by page", () => {
    const errors = read("docs/errors.md");
    expect(clientCodes.filter((code) => !errors.includes(`(problems/${code}.md)`))).toEqual([]);
  });

  it.each(clientCodes)("says of %s what happened, what was kept and what to do", (code) => {
    const page = read(`docs/problems/${code}.md`);
    expect(page.startsWith(`# ${code}\n`)).toBe(true);
    const sections = [...page.matchAll(/^## (.+)\n\n(.+)$/gm)].map(([, heading, text]) => [
      heading,
      (text ?? "") !== "",
    ]);
    expect(sections).toEqual([
      ["What happened", true],
      ["What was kept", true],
      ["What the client does next", true],
      ["What the operator checks", true],
      ["Headers", true],
    ]);
  });

  it("says of Retry-After what the table says", () => {
    const wrong = clientCodes.filter((code) => {
      const page = read(`docs/problems/${code}.md`);
      const sends = page.includes(" | yes | ");
      return page.includes("No `Retry-After`") === sends;
    });
    expect(wrong).toEqual([]);
  });
});
