import type { Store } from "../core/store.ts";
import { type Driver, postgresStore, printGrants } from "../stores/postgres/index.ts";
import { openClient } from "./client.ts";
import { type CommandLine, type OptionTable, UsageError } from "./command-line.ts";
import { databaseUrl } from "./database-url.ts";
import { counted } from "./layout.ts";

/** The options of every command that needs the database. */
export const databaseOptions: OptionTable = {
  database: { value: "URL", meaning: "the database; better DATABASE_URL, since others can see command lines" },
  schema: { value: "NAME", meaning: "the schema of Oncekey's tables; default: oncekey" },
  json: { meaning: "print JSON, for programs" },
  help: { meaning: "print this help" },
};

/** An open database and the schema that was asked for. */
export interface Database {
  readonly driver: Driver<unknown>;
  readonly schema: string;
}

/** The asked schema. Raises {@link UsageError} where it cannot be one. */
export function schemaOf({ values }: CommandLine): string {
  const schema = values.get("schema") ?? "oncekey";
  try {
    // Grants for nobody: nothing but the check of the name.
    printGrants({}, { schema });
    return schema;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : "The schema name is not valid.");
  }
}

/** The same database, which tells after each statement how many there were: work whose end nobody knows shows that it goes on. */
export function counting(database: Database, tell: (what: string) => void): Database {
  let statements = 0;
  const { driver } = database;
  return {
    ...database,
    driver: {
      ...driver,
      async run(sql, parameters, tx) {
        const rows = await driver.run(sql, parameters, tx);
        statements += 1;
        tell(counted(statements, "statement", "statements"));
        return rows;
      },
    },
  };
}

/** Runs `body` with the database open, and closes it whatever happens. */
export async function withDatabase<R>(line: CommandLine, body: (database: Database) => Promise<R>): Promise<R> {
  const schema = schemaOf(line);
  const client = openClient(databaseUrl(line, process.env));
  try {
    return await body({ driver: client.driver, schema });
  } finally {
    await client.close();
  }
}

/**
 * Runs `body` with the database open and a store on it, after checking that the schema is there and fits this version.
 * Raises `oncekey_schema_missing`, `oncekey_schema_skew`, `oncekey_config_invalid`.
 */
export function withStore<R>(
  line: CommandLine,
  body: (store: Store<unknown>, database: Database) => Promise<R>,
): Promise<R> {
  return withDatabase(line, async (database) => {
    const store = postgresStore(database.driver, { schema: database.schema });
    await store.start();
    return body(store, database);
  });
}
