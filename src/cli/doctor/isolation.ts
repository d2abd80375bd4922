import { type Check, type Finding, seen, textOf } from "./check.ts";

/** The level that transactions have where nobody asks for one, and whether they may write. */
export const isolationCheck: Check = {
  name: "isolation",
  needs: "server",
  async look({ sql, schema }) {
    const [row] = await sql(`
      SELECT current_setting('default_transaction_isolation') AS level,
        current_setting('default_transaction_read_only') AS read_only,
        (SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass('${schema}.entry')) AS partitioned`);
    const level = textOf(row, "level");
    return seen(`${level} by default`, [
      levelFinding(level, row?.partitioned === true),
      readOnly(textOf(row, "read_only")),
    ]);
  },
};

const RESET =
  "ALTER DATABASE … SET default_transaction_isolation = 'read committed'; -- or ALTER ROLE, where it is set there";

function levelFinding(level: string, isPartitioned: boolean): Finding | null {
  if (level === "read committed") return null;
  const what = `Transactions are ${level.toUpperCase()} unless they ask for another level.`;
  if (isPartitioned) {
    const why = "The table of entries is partitioned: its lock decides, and holds only at READ COMMITTED.";
    return { severity: "error", what, why, fix: RESET };
  }
  return {
    severity: "note",
    what,
    why: "Right, but dearer: your statements may fail with 40001, are run again, and end in 503 idempotency_contention.",
    fix: `Where that is not wanted: ${RESET}`,
  };
}

function readOnly(setting: string): Finding | null {
  if (setting !== "on") return null;
  return {
    severity: "error",
    what: "Transactions are read-only by default for this role or database.",
    why: "Nothing can be claimed: every request that is not a replay ends in 503.",
    fix: "ALTER DATABASE … RESET default_transaction_read_only; -- or ALTER ROLE, where it is set there",
  };
}
