import type { Driver } from "./driver-port.ts";
import { ownFailure } from "./errors.ts";
import { migrationLockKey } from "./lock-keys.ts";
import { appliedMigrations, knownMigrations, type Migration, pendingMigrations } from "./migrations.ts";
import { checkSchemaName, DEFAULT_SCHEMA, inSchema, statementRunner } from "./statements.ts";

/** Where the tables live. */
export interface SchemaOptions {
  /** Default `oncekey`. */
  readonly schema?: string;
}

/** What a migration did. */
export interface MigrateResult {
  /** Numbers and names of the migrations applied now, ascending; empty when there was nothing to do. */
  readonly applied: readonly { readonly number: number; readonly name: string }[];
}

/**
 * Brings the schema to this version, in one transaction under an advisory transaction lock: several processes may call
 * it at once, one does the work. Needs a role that may create the schema. Raises `oncekey_schema_skew` where the
 * database is newer than this version or was migrated by something else, or a `StoreFailure`.
 */
export async function migrate<Tx>(driver: Driver<Tx>, options: SchemaOptions = {}): Promise<MigrateResult> {
  const schema = checkSchemaName(options.schema ?? DEFAULT_SCHEMA);
  try {
    return await driver.transaction((tx) => migrateIn(driver, schema, tx));
  } catch (error) {
    throw ownFailure(error);
  }
}

async function migrateIn<Tx>(driver: Driver<Tx>, schema: string, tx: Tx): Promise<MigrateResult> {
  const run = statementRunner(driver, schema);
  // Under another default level the snapshot would be older than the lock, and hide what the holder before us did.
  await driver.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", [], tx);
  await run("migration_lock", [migrationLockKey(schema)], tx);
  const [exists] = await run("schema_exists", [], tx);
  const rows = exists?.found === true ? await run("migration_state", [], tx) : [];
  const pending = pendingMigrations(appliedMigrations(rows));
  for (const migration of pending) {
    for (const statement of migration.statements) await driver.run(inSchema(statement, schema), [], tx);
    const { number, name, checksum, minimumReader } = migration;
    await run("migration_applied", [number, name, checksum, minimumReader], tx);
  }
  return { applied: pending.map(({ number, name }) => ({ number, name })) };
}

/** The SQL of all migrations, from `from` on (default: the first), for those who run them with a tool of their own. */
export function printMigrations(options: SchemaOptions & { readonly from?: number } = {}): string {
  const schema = checkSchemaName(options.schema ?? DEFAULT_SCHEMA);
  const wanted = knownMigrations.filter(({ number }) => number >= (options.from ?? 1));
  return wanted.map((migration) => printed(migration, schema)).join("\n");
}

function printed(migration: Migration, schema: string): string {
  const { number, name, checksum, minimumReader, statements } = migration;
  const note = `INSERT INTO oncekey.migration (number, name, checksum, minimum_reader)
VALUES (${number}, '${name}', '${checksum}', ${minimumReader})`;
  return ["BEGIN", ...statements, note, "COMMIT"].map((statement) => `${inSchema(statement, schema)};\n`).join("\n");
}
