import { numberOf, type View } from "./check.ts";

/** 32 MiB of the table of entries are read at most, in pages of 8 KiB. */
const MOST_PAGES = 4_096;

/** A part of the table of entries. */
export interface Sample {
  /** Percent of the pages, for TABLESAMPLE SYSTEM. */
  readonly percent: number;
  /** How to say so: empty where it is the whole table. */
  readonly words: string;
}

/** How much of the table of entries may be read. Whole pages at random: rows that were written together stay together. */
export async function sampleOf({ sql, schema }: View): Promise<Sample> {
  const [row] = await sql(`
    SELECT (greatest(
      pg_relation_size(c),
      (SELECT coalesce(sum(pg_relation_size(relid)), 0) FROM pg_partition_tree(c) WHERE isleaf)
    ) / current_setting('block_size')::int)::float8 AS pages
    FROM (SELECT '${schema}.entry'::regclass AS c) AS t`);
  const percent = Math.min(100, (100 * MOST_PAGES) / Math.max(1, numberOf(row, "pages")));
  return { percent, words: percent === 100 ? "" : ` (in a sample of ${percent.toPrecision(2)} % of the table)` };
}

/** Finished entries that are read at most, where neighbours in time matter. */
const MOST_RECENT = 20_000;

/**
 * The newest finished entries by the index of the purge: those whose retention ends last. A sample of pages would part
 * what one client sent shortly one after the other.
 */
export function recentEntries(schema: string, columns: string): string {
  return `SELECT ${columns} FROM ${schema}.entry WHERE expires_at IS NOT NULL
    ORDER BY (CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END) DESC
    LIMIT ${MOST_RECENT}`;
}

/** How to say how many were read. */
export function recentWords(entries: number): string {
  return entries < MOST_RECENT ? "" : ` (among the ${MOST_RECENT.toLocaleString("en-US")} whose retention ends last)`;
}
