import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "./support/markdown.ts";

it("the site is built of every page and export, without a link that leads nowhere", { timeout: 600_000 }, async () => {
  await promisify(execFile)("npm", ["run", "-s", "docs", "--", "--build"], { cwd: root });
  const site = join(root, ".docs-site");
  expect(readFileSync(join(site, "documents", "Guide.html"), "utf8")).toContain("Scope and key");
  expect(readFileSync(join(site, "assets", "navigation.js"), "utf8").length).toBeGreaterThan(1_000);
  expect(existsSync(join(site, "functions", "oncekey.createOncekey.html"))).toBe(true);
});
