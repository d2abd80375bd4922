import { counted } from "../layout.ts";
import { type Check, numberOf, seen, type View } from "./check.ts";

/** Rows that are counted at most. */
const MOST_ROWS = 10_000;

/** Whether what is past its retention is deleted. */
export const purgeCheck: Check = {
  name: "purge",
  needs: "tables",
  async look(view) {
    const expired = await overdue(view);
    const many =
      expired > MOST_ROWS
        ? `more than ${counted(MOST_ROWS, "entry", "entries")}`
        : counted(expired, "entry", "entries");
    const line = `${many} past retention for more than an hour`;
    if (expired === 0) return seen(line);
    return seen(line, [
      {
        severity: "warning",
        what: `There ${expired === 1 ? "is" : "are"} ${line}.`,
        why: "No sweeper purges, or it does not keep up: the table grows, and what should be forgotten is still there.",
        fix: "oncekey purge; then let a sweeper run: oncekey worker ./worker.js",
      },
    ]);
  },
};

async function overdue({ sql, schema }: View): Promise<number> {
  const [row] = await sql(
    `SELECT count(*)::text AS entries FROM (
       SELECT FROM ${schema}.entry
       WHERE expires_at IS NOT NULL
         AND (CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END)
           < statement_timestamp() - interval '1 hour'
       LIMIT ${MOST_ROWS + 1}) AS e`,
  );
  return numberOf(row, "entries");
}
