import { OncekeyError } from "../../core/errors.ts";
import type { SqlRow } from "./driver-port.ts";
import { number, text } from "./rows.ts";
import { migrations } from "./sql.gen.ts";

/** A numbered change of the schema. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  /** Oldest release, counted in migrations that it knows, which may still use the schema after this change. */
  readonly minimumReader: number;
  readonly statements: readonly string[];
}

/** A row of the table of migrations. */
export type AppliedMigration = Omit<Migration, "statements">;

/** The migrations that this version knows, ascending. */
export const knownMigrations: readonly Migration[] = migrations;

/** Rows of migration_state.sql and schema_state.sql. */
export function appliedMigrations(rows: readonly SqlRow[]): AppliedMigration[] {
  return rows.map((row) => ({
    number: number(row, "number"),
    name: text(row, "name"),
    checksum: text(row, "checksum"),
    minimumReader: number(row, "minimum_reader"),
  }));
}

/**
 * The migrations that are still to be applied. Raises `oncekey_schema_skew` where the database was changed by a newer
 * version in a way that this one must not work with, or by a migration that is not ours.
 */
export function pendingMigrations(applied: readonly AppliedMigration[]): readonly Migration[] {
  const latest = knownMigrations.at(-1)?.number ?? 0;
  const demanded = Math.max(0, ...applied.map(({ minimumReader }) => minimumReader));
  if (demanded > latest) {
    throw skew(
      `The database was migrated by a newer version (it demands migration ${demanded}, this version knows ${latest}). Nothing was changed; deploy the newer version of Oncekey.`,
    );
  }
  return knownMigrations.filter((known) => {
    const found = applied.find((row) => row.number === known.number);
    if (found === undefined) return true;
    if (found.checksum === known.checksum) return false;
    throw skew(
      `Migration ${known.number} (${known.name}) was applied in another form than this version has. Nothing was changed; use the version that migrated the database, or one released after it.`,
    );
  });
}

/** The schema does not fit this version. */
export function skew(message: string): OncekeyError {
  return new OncekeyError("oncekey_schema_skew", message);
}
