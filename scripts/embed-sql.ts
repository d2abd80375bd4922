/**
 * Embeds sql/ into src/stores/postgres/sql.gen.ts, so that the package reads no files at run time.
 * `--check` writes nothing and fails when something is stale. The entry's columns are written once, in read.sql; the
 * blocks between the same marks in other statements are copies, which this script keeps equal.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const root = join(import.meta.dirname, "..");
const statementDirectory = join(root, "sql/statements");
const migrationDirectory = join(root, "sql/migrations");
const target = join(root, "src/stores/postgres/sql.gen.ts");
const COLUMNS = / *-- entry columns\n[\s\S]*?-- end of entry columns/;

const sqlFiles = (directory: string): string[] =>
  readdirSync(directory)
    .filter((name) => name.endsWith(".sql"))
    .sort();

const read = (path: string): string => readFileSync(path, "utf8").replaceAll("\r\n", "\n");

function withoutComments(sql: string): string {
  return sql
    .split("\n")
    .filter((line) => !line.trimStart().startsWith("--"))
    .join("\n");
}

/** The text that travels: one line, no comments, no final semicolon. No literal of ours holds white space that counts. */
function compact(sql: string): string {
  return withoutComments(sql).replace(/\s+/g, " ").trim().replace(/;$/, "");
}

function checkStatement(name: string, sql: string): void {
  const text = compact(sql);
  if (!/^[a-z_]+$/.test(name)) throw new Error(`${name}.sql: lower case and underscores only`);
  if (text.includes(";")) throw new Error(`${name}.sql: more than one statement`);
  for (const match of text.matchAll(/\$\d+(?!::|\d)/g)) throw new Error(`${name}.sql: ${match[0]} has no cast`);
  if (/[?]|\bARRAY\b|\[\]/.test(text)) throw new Error(`${name}.sql: arrays and ? operators do not pass every driver`);
}

/** Each statement with its copy of the entry's columns brought up to date. */
function statementsWithColumns(): { path: string; name: string; before: string; after: string }[] {
  const columns = COLUMNS.exec(read(join(statementDirectory, "read.sql")))?.[0];
  if (columns === undefined) throw new Error("read.sql has lost the marks around the entry's columns");
  return sqlFiles(statementDirectory).map((file) => {
    const path = join(statementDirectory, file);
    const before = read(path);
    const after = before.replace(COLUMNS, () => columns);
    checkStatement(basename(file, ".sql"), after);
    return { path, name: basename(file, ".sql"), before, after };
  });
}

function migrationSource(file: string): string {
  const match = /^(\d{4})_(\w+)\.sql$/.exec(file);
  const text = read(join(migrationDirectory, file));
  const minimumReader = /^-- minimum reader: (\d+)$/m.exec(text)?.[1];
  if (match === null || minimumReader === undefined) throw new Error(`${file}: needs a number and a minimum reader`);
  const statements = text.split(/;[ \t]*\n/).map((part) => part.trim());
  const real = statements.filter((part) => withoutComments(part).trim() !== "");
  const lines = [
    `    number: ${Number(match[1])},`,
    `    name: ${JSON.stringify(match[2])},`,
    `    checksum: "${createHash("sha256").update(text).digest("hex")}",`,
    `    minimumReader: ${minimumReader},`,
    "    statements: [",
    ...real.map((part) => `      ${JSON.stringify(part)},`),
    "    ],",
  ];
  return `  {\n${lines.join("\n")}\n  },`;
}

function generate(statements: readonly { name: string; after: string }[]): string {
  return `// Written by scripts/embed-sql.ts from sql/. Do not edit.

/** One statement each, by the name of its file. */
export const statements = {
${statements.map(({ name, after }) => `  ${name}: ${JSON.stringify(compact(after))},`).join("\n")}
} as const;

/** The migrations, ascending. */
export const migrations = [
${sqlFiles(migrationDirectory).map(migrationSource).join("\n")}
] as const;
`;
}

function main(check: boolean): void {
  const statements = statementsWithColumns();
  const stale = statements.filter(({ before, after }) => before !== after).map(({ path }) => path);
  const source = generate(statements);
  const embedded = (() => {
    try {
      return read(target);
    } catch {
      return "";
    }
  })();
  if (embedded !== source) stale.push(target);
  if (check && stale.length > 0) {
    console.error(`Stale, run "node --import tsx scripts/embed-sql.ts":\n${stale.join("\n")}`);
    process.exitCode = 1;
  }
  if (check) return;
  for (const { path, after } of statements) writeFileSync(path, after);
  writeFileSync(target, source);
}

main(process.argv.includes("--check"));
