/**
 * Writes sql/schema.sql: what the migrations make, read from the catalogue of a fresh database (pg_dump is not shipped
 * with the embedded server). `--check` writes nothing and fails when the file is stale.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { fromPg } from "../src/drivers/pg.ts";
import { migrate } from "../src/stores/postgres/index.ts";
import { startTestServer } from "../test/support/postgres-server.ts";

const target = join(import.meta.dirname, "../sql/schema.sql");

const COLUMNS = `
  SELECT c.relname AS "table", c.reloptions::text AS options, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
    a.attnotnull AS required, a.attidentity AS identity, pg_get_expr(d.adbin, d.adrelid) AS initial
  FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE c.relnamespace = 'oncekey'::regnamespace AND c.relkind = 'r'
  ORDER BY c.relname, a.attnum`;

const CONSTRAINTS = `
  SELECT conrelid::regclass::text AS "table", conname AS name, pg_get_constraintdef(oid) AS definition
  FROM pg_constraint
  WHERE connamespace = 'oncekey'::regnamespace AND contype <> 'n'
  ORDER BY 1, contype DESC, conname`;

const INDEXES = `
  SELECT indexdef AS definition FROM pg_indexes
  WHERE schemaname = 'oncekey' AND indexname NOT IN (SELECT conname FROM pg_constraint)
  ORDER BY indexname`;

type Row = Record<string, unknown>;
type Query = (sql: string) => Promise<readonly Row[]>;

/** The schema of a migrated database, in SQL that is the same on every server version. */
export async function dumpSchema(query: Query): Promise<string> {
  const columns = await query(COLUMNS);
  const constraints = await query(CONSTRAINTS);
  const indexes = await query(INDEXES);
  const tables = [...new Set(columns.map((row) => String(row.table)))];
  const parts = tables.map((table) =>
    tableSql(
      table,
      columns.filter((row) => row.table === table),
      constraints.filter((row) => row.table === `oncekey.${table}`),
    ),
  );
  const note =
    "-- Written by scripts/dump-schema.ts: what the migrations make. Do not edit, and do not run: migrate.\n";
  return [note, ...parts, ...indexes.map((row) => `${row.definition};\n`)].join("\n");
}

function tableSql(table: string, columns: readonly Row[], constraints: readonly Row[]): string {
  const lines = [
    ...columns.map(columnSql),
    ...constraints.map((row) => `CONSTRAINT ${row.name} ${String(row.definition).replace(/\s+/g, " ")}`),
  ];
  const options =
    columns[0]?.options === null ? "" : ` WITH ${String(columns[0]?.options).replace("{", "(").replace("}", ")")}`;
  return `CREATE TABLE oncekey.${table} (\n${lines.map((line) => `  ${line}`).join(",\n")}\n)${options};\n`;
}

function columnSql(row: Row): string {
  const required = row.required === true ? " NOT NULL" : "";
  const identity = row.identity === "" ? "" : " GENERATED ALWAYS AS IDENTITY";
  const initial = row.initial === null ? "" : ` DEFAULT ${row.initial}`;
  return `${row.name} ${row.type}${required}${identity}${initial}`;
}

async function freshDump(): Promise<string> {
  const server = await startTestServer();
  const pool = new pg.Pool({ connectionString: server.url, max: 1 });
  try {
    await migrate(fromPg(pool));
    return await dumpSchema(async (sql) => (await pool.query(sql)).rows as Row[]);
  } finally {
    await pool.end();
    await server.close();
  }
}

async function main(check: boolean): Promise<void> {
  const dump = await freshDump();
  if (!check) return writeFileSync(target, dump);
  if (dump === readFileSync(target, "utf8")) return;
  console.error('sql/schema.sql is stale. Run "node --import tsx scripts/dump-schema.ts".');
  process.exitCode = 1;
}

if (process.argv[1] === import.meta.filename) await main(process.argv.includes("--check"));
