import { bytes, counted, duration, grouped } from "../layout.ts";
import { type Check, type Finding, numberOf, seen, type View } from "./check.ts";
import { sampleOf } from "./sample.ts";

const DAY_MS = 86_400_000;

/** A table of which nobody would notice that it doubles. */
const SMALL_BYTES = 1024 ** 3;

/** A rate needs that many entries over that long a time. */
const FEW_ENTRIES = 1_000;
const SHORT_MS = 60_000;

/** How the table of entries grows, and where that ends. */
export const growthCheck: Check = {
  name: "growth",
  needs: "tables",
  async look(view) {
    const { entries, size, perDay, keptMs, words } = await measured(view);
    const now = `about ${counted(Math.round(entries), "entry", "entries")}, ${bytes(size)} with indexes${words}`;
    if (perDay === null) return seen(`${now}; too few to tell a rate`);
    const atEnd = perDay * (keptMs / DAY_MS);
    const bytesAtEnd = size * (atEnd / entries);
    const forecast = `about ${grouped(Math.round(perDay))} a day, kept for ${duration(keptMs)}: ends at about ${counted(Math.round(atEnd), "entry", "entries")}, ${bytes(bytesAtEnd)}`;
    return seen(`${now}; ${forecast}`, [
      perDay > view.given.manyPerDay ? tooMany(forecast) : null,
      bytesAtEnd > SMALL_BYTES && bytesAtEnd > 2 * size ? grows(size, forecast) : null,
    ]);
  },
};

async function measured(view: View) {
  const { percent, words } = await sampleOf(view);
  const [row] = await view.sql(
    `SELECT count(*)::text AS entries,
       least((extract(epoch FROM clock_timestamp() - min(created_at)) * 1000)::float8, ${DAY_MS}) AS span_ms,
       (count(*) FILTER (WHERE created_at > clock_timestamp() - interval '1 day'))::text AS recent,
       (extract(epoch FROM avg(greatest(expires_at, tombstone_until) - created_at)) * 1000)::float8 AS kept_ms
     FROM ${view.schema}.entry TABLESAMPLE SYSTEM ($1::float8)`,
    [percent],
  );
  const [table] = await view.sql(
    `SELECT greatest(pg_total_relation_size('${view.schema}.entry'::regclass),
       (SELECT coalesce(sum(pg_total_relation_size(relid)), 0) FROM pg_partition_tree('${view.schema}.entry'::regclass)))::float8 AS size`,
  );
  const recent = numberOf(row, "recent");
  const spanMs = numberOf(row, "span_ms");
  const perDay = (recent * (100 / percent) * DAY_MS) / spanMs;
  return {
    entries: numberOf(row, "entries") * (100 / percent),
    size: numberOf(table, "size"),
    perDay: recent < FEW_ENTRIES || spanMs < SHORT_MS ? null : perDay,
    keptMs: numberOf(row, "kept_ms"),
    words,
  };
}

function tooMany(forecast: string): Finding {
  return {
    severity: "warning",
    what: `There are ${forecast}.`,
    why: "At so many, deleting them one by one costs a good part of what processor and disk can do.",
    fix: "A shorter retentionMs; several databases, by tenant; docs/postgres.md has what each costs.",
  };
}

function grows(size: number, forecast: string): Finding {
  return {
    severity: "note",
    what: `The table has ${bytes(size)} and will grow: ${forecast}.`,
    why: "A disk that is full refuses every write, with 503 for every request.",
    fix: "See that the disk has room for it, or lower retentionMs.",
  };
}
