import type { SqlRow } from "../../stores/postgres/index.ts";
import { counted, duration, visible } from "../layout.ts";
import { type Check, type Finding, numberOf, seen, textOf, type View } from "./check.ts";
import { type Sample, sampleOf } from "./sample.ts";

/** Entries that are read at most by each index. */
const MOST_ROWS = 10_000;

/** Entries that nobody moves on, and why. */
export const stuckCheck: Check = {
  name: "stuck",
  needs: "tables",
  async look(view) {
    const sample = await sampleOf(view);
    const due = await overdue(view);
    const unknown = await needsRecovery(view, sample);
    const late = due.reduce((sum, row) => sum + numberOf(row, "entries"), 0);
    const open = unknown.reduce((sum, row) => sum + numberOf(row, "entries"), 0);
    return seen(
      `${counted(late, "entry is", "entries are")} overdue, ${counted(open, "needs", "need")} recovery${sample.words}`,
      [...due.map(overdueFinding), ...unknown.map((row) => recoveryFinding(row, sample))],
    );
  },
};

/** What a sweeper should have taken up a minute ago, by operation. */
function overdue({ sql, schema }: View): Promise<readonly SqlRow[]> {
  const recent = "seen_at > statement_timestamp() - interval '1 minute'";
  const columns = "operation, run_kind, operation_version, created_at, id";
  return sql(`
    SELECT d.operation, d.run_kind, d.operation_version, count(*)::text AS entries,
      (extract(epoch FROM clock_timestamp() - min(d.created_at)) * 1000)::float8 AS oldest_ms,
      (array_agg(encode(d.id, 'hex') ORDER BY d.created_at, d.id))[1] AS oldest_id,
      EXISTS (SELECT FROM ${schema}.sweep_target WHERE ${recent}) AS swept,
      EXISTS (SELECT FROM ${schema}.sweep_target AS t WHERE t.operation = d.operation AND t.run_kind = d.run_kind
        AND t.operation_version >= d.operation_version AND t.${recent}) AS known
    FROM (
      (SELECT ${columns} FROM ${schema}.entry
       WHERE state = 'in_progress' AND lease_until < statement_timestamp() - interval '1 minute'
       ORDER BY lease_until LIMIT ${MOST_ROWS})
      UNION ALL
      (SELECT ${columns} FROM ${schema}.entry
       WHERE sweep_at IS NOT NULL AND sweep_at < statement_timestamp() - interval '1 minute'
         AND state IN ('needs_recovery', 'released')
       ORDER BY sweep_at LIMIT ${MOST_ROWS})
    ) AS d
    GROUP BY d.operation, d.run_kind, d.operation_version ORDER BY count(*) DESC LIMIT 20`);
}

function overdueFinding(row: SqlRow): Finding {
  const who = `${visible(textOf(row, "operation"))} (${textOf(row, "run_kind")}, version ${textOf(row, "operation_version")})`;
  const many = counted(numberOf(row, "entries"), "entry is", "entries are");
  const [why, fix] = reasonOverdue(row);
  return {
    severity: "warning",
    what: `${many} overdue for the sweeper in ${who}, the oldest ${duration(numberOf(row, "oldest_ms"))} old: ${textOf(row, "oldest_id")}.`,
    why,
    fix,
  };
}

function reasonOverdue(row: SqlRow): [why: string, fix: string] {
  if (row.swept !== true) return ["No sweeper has been seen in the last minute.", "oncekey worker ./worker.js"];
  if (row.known !== true) {
    const why =
      "Sweepers run, but none knows this operation, kind and version: code that is no longer deployed, or not yet.";
    return [why, "Deploy a worker with that operation, or settle them: oncekey resolve <id>"];
  }
  return [
    "A sweeper knows the operation and does not keep up, or fails.",
    "See onError of the worker; raise its parallel, or run more.",
  ];
}

/** Without an index of its own: a part of the table. */
function needsRecovery({ sql, schema }: View, { percent }: Sample): Promise<readonly SqlRow[]> {
  return sql(
    `SELECT operation, reason, count(*)::text AS entries, bool_and(sweep_at IS NULL) AS waits,
       (extract(epoch FROM clock_timestamp() - min(created_at)) * 1000)::float8 AS oldest_ms,
       (array_agg(encode(id, 'hex') ORDER BY created_at, id))[1] AS oldest_id
     FROM ${schema}.entry TABLESAMPLE SYSTEM ($1::float8)
     WHERE state = 'needs_recovery'
     GROUP BY operation, reason ORDER BY count(*) DESC LIMIT 20`,
    [percent],
  );
}

function recoveryFinding(row: SqlRow, { words }: Sample): Finding {
  const many = counted(numberOf(row, "entries"), "entry needs", "entries need");
  const waits = row.waits === true;
  return {
    severity: waits ? "warning" : "note",
    what: `${many} recovery in ${visible(textOf(row, "operation"))} (${visible(textOf(row, "reason"))}), the oldest ${duration(numberOf(row, "oldest_ms"))} old: ${textOf(row, "oldest_id")}${words}.`,
    why: waits
      ? "Nobody knows what these did; only a retry or a person moves them on."
      : "Nobody knows yet what these did; the sweeper asks again by itself.",
    fix: `Ask the other side, then: oncekey resolve ${textOf(row, "oldest_id")}`,
  };
}
