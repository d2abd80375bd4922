import { readFileSync } from "node:fs";
import { join } from "node:path";
import { codes } from "oncekey";
import { describe, expect, it } from "vitest";
import { readPublicSurface } from "../../scripts/public-surface.ts";
import { root } from "./support/markdown.ts";

const surface = readPublicSurface();

describe("the public surface", () => {
  it("has a doc comment on every export", () => {
    const bare = surface.subpaths.flatMap(({ name, exports }) =>
      exports.filter(({ doc }) => doc === "").map((item) => `${name}: ${item.name} (${item.declaredIn})`),
    );
    expect(bare).toEqual([]);
  });

  it("exports every type of ours that its functions take or give", () => {
    expect(surface.unnameable).toEqual([]);
  });

  it("exports something at every subpath", () => {
    expect(surface.subpaths.filter(({ exports }) => exports.length === 0)).toEqual([]);
  });
});

describe("docs/errors.md", () => {
  it("says of every code of the table, and of no other, what to do", () => {
    const page = readFileSync(join(root, "docs/errors.md"), "utf8");
    const advice = page.slice(page.indexOf("## What to do"));
    const described = [...advice.matchAll(/^\*\*`([a-z_]+)`\*\*/gm)].map((match) => match[1]);
    expect(described.toSorted()).toEqual(Object.keys(codes).sort());
  });
});
