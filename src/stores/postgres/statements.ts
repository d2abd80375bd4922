import { OncekeyError } from "../../core/errors.ts";
import type { Driver, SqlParameter, SqlRow } from "./driver-port.ts";
import { statements } from "./sql.gen.ts";

/** The name of a statement: its file below sql/statements, without the extension. */
export type StatementName = keyof typeof statements;

/** Runs a statement of ours by name, on a transaction or on any connection in a commit of its own. */
export type RunStatement<Tx> = (
  name: StatementName,
  parameters: readonly SqlParameter[],
  tx?: Tx,
) => Promise<readonly SqlRow[]>;

/** The schema that sql/ is written for; another name is put in its place. */
export const DEFAULT_SCHEMA = "oncekey";

const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** Checks a schema name: lower case letters, digits and underscores, so that it never depends on quoting. Raises `oncekey_config_invalid`. */
export function checkSchemaName(schema: string): string {
  if (SCHEMA_NAME.test(schema) && !schema.startsWith("pg_") && schema !== "information_schema") return schema;
  throw new OncekeyError(
    "oncekey_config_invalid",
    "The schema name must be lower case letters, digits and underscores, at most 63, and not one of PostgreSQL's own. Choose another name.",
  );
}

/** The SQL with the configured schema in the place of the default one. */
export function inSchema(sql: string, schema: string): string {
  return schema === DEFAULT_SCHEMA ? sql : sql.replaceAll(/\boncekey\b/g, `"${schema}"`);
}

/** Binds the statements to a driver and a schema. */
export function statementRunner<Tx>(driver: Driver<Tx>, schema: string): RunStatement<Tx> {
  checkSchemaName(schema);
  const texts = new Map(Object.entries(statements).map(([name, sql]) => [name, inSchema(sql, schema)]));
  return (name, parameters, tx) => driver.run(texts.get(name) ?? "", parameters, tx);
}
