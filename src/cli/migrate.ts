import {
  type GrantRoles,
  type MigrateResult,
  migrate,
  printGrants,
  printMigrations,
} from "../stores/postgres/index.ts";
import type { Command, Report } from "./command.ts";
import { named, UsageError } from "./command-line.ts";
import { type Database, databaseOptions, schemaOf, withDatabase } from "./database.ts";
import { PartlyDone } from "./failure.ts";
import { aligned, counted, visible } from "./layout.ts";

const PARTS = ["api", "worker", "console", "operator"] as const;

/** `oncekey migrate`: creates or updates the tables. */
export const migrateCommand: Command = {
  summary: "create or update the tables",
  about: `Applies the migrations that the database lacks, in one transaction; several may run it at once. Needs a role that
may create the schema. With --grants, also gives existing roles the least that each part needs.`,
  operands: [],
  options: {
    print: { meaning: "print the SQL instead of running it: all migrations, then the grants" },
    grants: { value: "ROLES", meaning: "grant the least they need: PART=ROLE,… (api, worker, console, operator)" },
    ...databaseOptions,
  },
  examples: ["oncekey migrate --grants api=payments_api,console=support", "oncekey migrate --print > oncekey.sql"],
  async run(line) {
    const schema = schemaOf(line);
    const roles = rolesOf(line.values.get("grants"));
    const grants = printGrants(roles, { schema });
    if (line.switches.has("print")) return printed(schema, grants);
    return withDatabase(line, async (database) => {
      const result = await migrate(database.driver, { schema });
      await runGrants(database, grants, result);
      return migrated(schema, result, roles);
    });
  },
};

function rolesOf(given: string | undefined): GrantRoles {
  const roles: { -readonly [Part in keyof GrantRoles]: GrantRoles[Part] } = {};
  for (const pair of given?.split(",") ?? []) {
    const [name = "", role = "", ...more] = pair.split("=").map((text) => text.trim());
    const part = PARTS.find((known) => known === name);
    if (part === undefined) {
      throw new UsageError(
        `--grants knows no ${named("part", name)}; write api=ROLE, worker=ROLE, console=ROLE or operator=ROLE.`,
      );
    }
    if (roles[part] !== undefined) throw new UsageError(`--grants names the part "${part}" twice.`);
    // A line feed would end the statement early where the SQL is read line by line.
    if (role === "" || more.length > 0 || /\p{Cc}/u.test(role)) {
      throw new UsageError(`--grants needs a role for the part "${part}": ${part}=ROLE.`);
    }
    roles[part] = role;
  }
  return roles;
}

function printed(schema: string, grants: string): Report {
  const sql = [printMigrations({ schema }), ...(grants === "" ? [] : [grants])].join("\n");
  return { exitCode: 0, data: { schema, sql }, text: sql };
}

/** One statement a line, as `printGrants` writes them, all in one transaction. */
async function runGrants({ driver }: Database, grants: string, { applied }: MigrateResult): Promise<void> {
  const statements = grants.split("\n").filter((statement) => statement !== "");
  if (statements.length === 0) return;
  try {
    await driver.transaction(async (tx) => {
      for (const statement of statements) await driver.run(statement, [], tx);
    });
  } catch (error) {
    const before = applied.length === 0 ? "The tables were up to date" : "The migrations were applied";
    throw new PartlyDone(`${before}, no grant was made.`, error);
  }
}

function migrated(schema: string, { applied }: MigrateResult, roles: GrantRoles): Report {
  const what =
    applied.length === 0
      ? `Schema ${schema} is up to date; nothing was applied.\n`
      : `Applied ${counted(applied.length, "migration", "migrations")} to schema ${schema}:\n`;
  const migrations = aligned(
    applied.map(({ number, name }) => [String(number).padStart(4, "0"), name]),
    "  ",
  );
  const granted = PARTS.flatMap((part) => (roles[part] === undefined ? [] : [[part, visible(roles[part])] as const]));
  const grants = granted.length === 0 ? "" : `Granted rights:\n${aligned(granted, "  ")}`;
  return { exitCode: 0, data: { schema, applied, granted: roles }, text: `${what}${migrations}${grants}` };
}
