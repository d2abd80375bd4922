import type { SqlRow } from "../../stores/postgres/index.ts";
import { counted, duration, grouped } from "../layout.ts";
import { type Check, type Finding, numberOf, seen, textOf, type View } from "./check.ts";

/** Tables whose migrations set a share of their own: the server's default of a fifth lets claims wade through dead rows. */
const EAGER = /^(?:entry|inbox|producer|subject)/;

/** A share of dead rows above which vacuum comes too late for these tables; the migrations set 0.02. */
const LAZY_SHARE = 0.1;

/** Dead rows below this are nothing to speak of. */
const FEW_ROWS = 10_000;

/** Whether dead rows are taken away soon enough for claims. */
export const autovacuumCheck: Check = {
  name: "autovacuum",
  needs: "tables",
  async look(view) {
    const [settings] = await view.sql(
      "SELECT current_setting('autovacuum') AS autovacuum, current_setting('track_counts') AS track_counts",
    );
    const tables = await tableStates(view);
    const dead = tables.reduce((sum, row) => sum + numberOf(row, "dead"), 0);
    return seen(`${counted(dead, "dead row", "dead rows")} in ${tables.length} tables`, [
      ...["autovacuum", "track_counts"].map((name) => (textOf(settings, name) === "off" ? serverOff(name) : null)),
      ...tables.flatMap((row) => [disabled(view, row), lazy(view, row), behind(view, row)]),
      await heldBack(view),
    ]);
  },
};

function tableStates({ sql, schema }: View): Promise<readonly SqlRow[]> {
  const option = (name: string) =>
    `(SELECT option_value FROM pg_options_to_table(c.reloptions) WHERE option_name = '${name}')`;
  return sql(`
    SELECT c.relname AS name, s.n_dead_tup::text AS dead, greatest(c.reltuples, 0)::float8 AS rows,
      ${option("autovacuum_enabled")} AS enabled,
      coalesce(${option("autovacuum_vacuum_scale_factor")}, current_setting('autovacuum_vacuum_scale_factor'))::float8 AS share,
      coalesce(${option("autovacuum_vacuum_threshold")}, current_setting('autovacuum_vacuum_threshold'))::float8 AS base
    FROM pg_class AS c LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
    WHERE c.relnamespace = '${schema}'::regnamespace AND c.relkind = 'r'
    ORDER BY c.relname LIMIT 1000`);
}

function serverOff(name: string): Finding {
  return {
    severity: "error",
    what: `${name} is off on the server.`,
    why: "Nothing takes dead rows away: claims, purge and relay get slower without end.",
    fix: `ALTER SYSTEM SET ${name} = on; SELECT pg_reload_conf();`,
  };
}

function disabled({ schema }: View, row: SqlRow): Finding | null {
  if (!/^(?:false|off|no|0)$/i.test(textOf(row, "enabled"))) return null;
  const name = textOf(row, "name");
  return {
    severity: "error",
    what: `Autovacuum is switched off for ${name}.`,
    why: "Its dead rows stay, and claims, purge and relay read through them.",
    fix: `ALTER TABLE ${schema}.${name} RESET (autovacuum_enabled);`,
  };
}

function lazy({ schema }: View, row: SqlRow): Finding | null {
  const name = textOf(row, "name");
  const share = numberOf(row, "share");
  if (!EAGER.test(name) || share <= LAZY_SHARE) return null;
  return {
    severity: "warning",
    what: `Vacuum comes to ${name} only when ${share * 100} % of its rows are dead.`,
    why: "Claims and the purge read through dead rows until it comes; the migrations set 2 %.",
    fix: `ALTER TABLE ${schema}.${name} SET (autovacuum_vacuum_scale_factor = 0.02);`,
  };
}

function behind({ schema }: View, row: SqlRow): Finding | null {
  const [name, dead] = [textOf(row, "name"), numberOf(row, "dead")];
  const due = numberOf(row, "base") + numberOf(row, "share") * numberOf(row, "rows");
  if (dead < FEW_ROWS || dead < 2 * due) return null;
  return {
    severity: "warning",
    what: `${name} has ${grouped(dead)} dead rows; vacuum was due at ${grouped(Math.round(due))}.`,
    why: "Vacuum does not keep up, or is held back by an old transaction.",
    fix: `VACUUM (VERBOSE) ${schema}.${name}; -- it says what it could not remove; then more workers or a higher autovacuum_vacuum_cost_limit`,
  };
}

/** Of other roles' sessions a role sees the times only where it may read all statistics (pg_read_all_stats). */
async function heldBack({ sql, given }: View): Promise<Finding | null> {
  const [row] = await sql(
    `SELECT count(*)::text AS open, (extract(epoch FROM clock_timestamp() - min(xact_start)) * 1000)::float8 AS oldest_ms,
       (array_agg(pid ORDER BY xact_start))[1] AS pid
     FROM pg_stat_activity
     WHERE xact_start < clock_timestamp() - $1::float8 * interval '1 millisecond'
       AND datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`,
    [given.longTransactionMs],
  );
  const open = numberOf(row, "open");
  if (open === 0) return null;
  const pid = numberOf(row, "pid");
  return {
    severity: "warning",
    what: `${counted(open, "transaction is", "transactions are")} open for long, the oldest for ${duration(numberOf(row, "oldest_ms"))} (process ${pid}).`,
    why: "Vacuum removes nothing that died after it began.",
    fix: `SELECT pg_terminate_backend(${pid}); -- after a look at what it does: SELECT * FROM pg_stat_activity WHERE pid = ${pid};`,
  };
}
