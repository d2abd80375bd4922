import { printMigrations } from "../../stores/postgres/index.ts";
import { type Check, type Finding, seen, textOf, type View } from "./check.ts";
import { newestMigration } from "./schema.ts";

interface Wanted {
  readonly name: string;
  readonly table: string;
  /** Creates it beside traffic. */
  readonly fix: string;
}

/** Whether every index is there and usable, and no table forgets its rows in a crash. */
export const indexesCheck: Check = {
  name: "indexes",
  needs: "tables",
  async look(view) {
    const wanted = wantedIndexes(view.schema, (await newestMigration(view)) ?? 0);
    const found = await view.sql(
      `SELECT c.relname AS name, (i.indisvalid AND i.indisready) AS usable
       FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
       WHERE c.relnamespace = '${view.schema}'::regnamespace LIMIT 10000`,
    );
    const usable = new Map(found.map((row) => [textOf(row, "name"), row.usable === true]));
    const broken = wanted.filter(({ name }) => usable.get(name) !== true);
    const findings = broken.map((index) => unusable(view, index, usable.has(index.name)));
    return seen(`${wanted.length - broken.length} of ${wanted.length} indexes`, [
      ...findings,
      ...(await unlogged(view)),
    ]);
  },
};

/** What the migrations up to that one created and did not drop: read from their text, so that no list can fall behind. */
function wantedIndexes(quoted: string, applied: number): Wanted[] {
  const schema = quoted.replaceAll('"', "");
  const all = printMigrations({ schema });
  const text = all.slice(0, all.length - printMigrations({ schema, from: applied + 1 }).length);
  const wanted = new Map<string, Wanted>();
  const statements =
    /^CREATE (UNIQUE )?INDEX (?:IF NOT EXISTS )?(\w+) ON (?:"?\w+"?\.)(\w+)[^;]*;|^DROP INDEX[^;]*?(\w+);/gm;
  for (const [statement, unique = "", name, table = "", dropped] of text.matchAll(statements)) {
    if (dropped !== undefined) wanted.delete(dropped);
    if (name === undefined) continue;
    const fix = statement.replace(/INDEX (?:IF NOT EXISTS )?/, "INDEX CONCURRENTLY ").replace(/\s+/g, " ");
    wanted.set(name, { name, table, fix: unique === "" ? fix : `${fix} -- remove double rows before` });
  }
  for (const [, table = "", name = "", columns = ""] of text.matchAll(
    /^CREATE TABLE "?\w+"?\.(\w+) \([^;]*?CONSTRAINT (\w+_pkey) PRIMARY KEY (\([^)]*\))/gm,
  )) {
    wanted.set(name, {
      name,
      table,
      fix: `ALTER TABLE ${quoted}.${table} ADD CONSTRAINT ${name} PRIMARY KEY ${columns};`,
    });
  }
  return [...wanted.values()];
}

function unusable({ schema }: View, { name, table, fix }: Wanted, isThere: boolean): Finding {
  const decides = name.endsWith("_pkey");
  return {
    severity: decides ? "error" : "warning",
    what: `The index ${name} of ${table} is ${isThere ? "there but not valid" : "missing"}.`,
    why: decides
      ? "This index alone decides who runs: without it, one key can run twice."
      : "What it finds is looked for in the whole table, again and again.",
    fix: isThere ? `REINDEX INDEX CONCURRENTLY ${schema}.${name};` : fix,
  };
}

async function unlogged({ sql, schema }: View): Promise<Finding[]> {
  const rows = await sql(
    `SELECT relname AS name FROM pg_class
     WHERE relnamespace = '${schema}'::regnamespace AND relkind IN ('r', 'p') AND relpersistence = 'u'
     ORDER BY relname LIMIT 100`,
  );
  return rows.map((row) => ({
    severity: "error",
    what: `The table ${textOf(row, "name")} is UNLOGGED.`,
    why: "It is empty after every crash of the server, and on every standby: what was done is done again.",
    fix: `ALTER TABLE ${schema}.${textOf(row, "name")} SET LOGGED;`,
  }));
}
