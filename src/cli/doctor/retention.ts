import type { SqlRow } from "../../stores/postgres/index.ts";
import { counted, duration, visible } from "../layout.ts";
import { type Check, type Finding, numberOf, seen, textOf } from "./check.ts";
import { type Sample, sampleOf } from "./sample.ts";

/** Whether outcomes are kept for as long as clients go on retrying. */
export const retentionCheck: Check = {
  name: "retention",
  needs: "tables",
  async look(view) {
    const sample = await sampleOf(view);
    const ms = (interval: string) => `(extract(epoch FROM min(${interval})) * 1000)::float8`;
    const rows = await view.sql(
      `SELECT operation, count(*)::text AS entries, ${ms("expires_at - completed_at")} AS kept_ms,
         ${ms("greatest(expires_at, tombstone_until) - completed_at")} AS refused_ms
       FROM ${view.schema}.entry TABLESAMPLE SYSTEM ($1::float8)
       WHERE state = 'succeeded' AND NOT outcome_gone
       GROUP BY operation ORDER BY min(expires_at - completed_at) LIMIT 100`,
      [sample.percent],
    );
    const windowMs = view.given.clientWindowMs;
    const short = rows.filter((row) => numberOf(row, "kept_ms") < windowMs);
    const shortest = rows[0] === undefined ? "no outcome is stored" : duration(numberOf(rows[0], "kept_ms"));
    return seen(
      `shortest ${shortest}, clients retry for ${duration(windowMs)}${sample.words}`,
      short.map((row) => tooShort(row, windowMs, sample)),
    );
  },
};

function tooShort(row: SqlRow, windowMs: number, { words }: Sample): Finding {
  const operation = visible(textOf(row, "operation"));
  const isRefused = numberOf(row, "refused_ms") >= windowMs;
  const entries = counted(numberOf(row, "entries"), "outcome", "outcomes");
  return {
    severity: isRefused ? "warning" : "error",
    what: `${operation} keeps an outcome for ${duration(numberOf(row, "kept_ms"))}, clients retry for ${duration(windowMs)}; seen in ${entries}${words}.`,
    why: isRefused
      ? "A late retry is refused with 409 instead of being answered; it does not run again."
      : "A late retry finds nothing and runs again.",
    fix: "Raise retentionMs of the operation to the window or more; if clients give up sooner, say so with --client-window (and clientRetryWindowMs).",
  };
}
