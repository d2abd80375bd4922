import { expect, it } from "vitest";
import { spawnExample } from "./support/example.ts";

it("npm run demo ends with every payment made exactly once", { timeout: 600_000 }, async () => {
  const command = ["npm", "run", "-s", "demo"] as const;
  const { output, ended } = await spawnExample({ command, env: { ONCEKEY_DEMO_PAYMENTS: "40" } });
  const code = await ended;
  expect(output.stdout, output.stderr).toContain("Every payment happened exactly once.");
  expect(output.stdout).not.toContain("WRONG");
  expect(code).toBe(0);
});
