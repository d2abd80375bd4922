import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { createDatabase } from "../support/postgres.ts";

const run = promisify(execFile);

// The rows that each example's own ORM counts come last in a line.
it.each(["kysely", "drizzle", "knex", "prisma"])("examples/drivers/%s.ts writes once, and replays", async (name) => {
  const { url } = await createDatabase({ migrated: false });
  const args = ["--conditions=oncekey-source", "--import", "tsx", `examples/drivers/${name}.ts`];
  const { stdout } = await run(process.execPath, args, { env: { ...process.env, DATABASE_URL: url } });
  const [first, second] = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { kind: string; body: string });
  expect([first?.kind, second?.kind]).toEqual(["completed", "replayed"]);
  expect({ ...second, kind: first?.kind }).toEqual(first);
  expect(Object.values(first ?? {}).at(-1)).toBe(1);
});
