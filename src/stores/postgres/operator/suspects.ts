import type { SqlRow } from "../driver-port.ts";
import { instant, instantOrNull, number, text, textOrNull } from "../rows.ts";
import type { Offered } from "./indexes.ts";
import type { Ask } from "./reading.ts";

/** Callers whose keys look as if they were made wrongly. */
export interface Suspect {
  /** A key for each attempt; or made from the payload, so that several callers share it. */
  readonly kind: "key_per_attempt" | "key_from_payload";
  readonly tenant: string;
  readonly client: string | null;
  readonly operation: string;
  /** Keys of the first kind, entries of the second. */
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** A few of the entries, in hex. */
  readonly entryIds: readonly string[];
}

/** How much was read. */
export interface Sampled {
  readonly entries: number;
  readonly fromAt: Date | null;
  readonly toAt: Date | null;
}

/** Entries that are read at most, where neighbours in time matter. */
const MOST_RECENT = 20_000;

const READ = "id, tenant, client, operation, key, fingerprint, created_at";
const PURGE_AT = "CASE WHEN outcome_gone THEN greatest(expires_at, tombstone_until) ELSE expires_at END";

/**
 * The newest entries where the console has its index of their beginnings, else the finished ones whose retention ends last,
 * by the index of the purge (those in partitions are not seen then).
 */
function recent({ indexes, apart }: Offered): string {
  if (!indexes.has("created")) {
    return `SELECT ${READ} FROM oncekey.entry WHERE expires_at IS NOT NULL ORDER BY (${PURGE_AT}) DESC LIMIT ${MOST_RECENT}`;
  }
  const newest = (table: string) =>
    `(SELECT ${READ} FROM oncekey.${table} ORDER BY created_at DESC LIMIT ${MOST_RECENT})`;
  const all = apart ? `${newest("entry")} UNION ALL ${newest("outcome")}` : newest("entry");
  return `SELECT ${READ} FROM (${all}) AS both_tables ORDER BY created_at DESC LIMIT ${MOST_RECENT}`;
}

// Fingerprints that compare nothing (third kind, second byte) are equal by themselves. Three of a kind within minutes: a
// customer who buys the same thing twice is none.
const SUSPECTS = (from: string) => `
  WITH recent AS MATERIALIZED (${from}),
  spaced AS (
    SELECT *, created_at - lag(created_at) OVER (
      PARTITION BY tenant, client, operation, fingerprint ORDER BY created_at) < interval '5 minutes' AS soon
    FROM recent WHERE substring(fingerprint FROM 2 FOR 1) <> '\\x03'::bytea AND ($1::text IS NULL OR tenant = $1::text)),
  bursts AS (
    SELECT tenant, client, operation, 1 + count(*) FILTER (WHERE soon) AS keys, min(created_at) AS first_at,
      max(created_at) AS last_at, max(encode(id, 'hex')) AS one_id
    FROM spaced GROUP BY tenant, client, operation, fingerprint HAVING count(*) FILTER (WHERE soon) >= 2),
  per_attempt AS (
    SELECT 'key_per_attempt' AS kind, tenant, client, operation, sum(keys) AS entries, min(first_at) AS first_at,
      max(last_at) AS last_at, string_agg(one_id, ' ' ORDER BY last_at DESC) AS ids
    FROM bursts GROUP BY tenant, client, operation ORDER BY sum(keys) DESC LIMIT 20),
  shared AS (
    SELECT operation, key, fingerprint FROM recent
    GROUP BY operation, key, fingerprint HAVING count(*) > 1),
  from_payload AS (
    SELECT 'key_from_payload', r.tenant, r.client, r.operation, count(*), min(r.created_at), max(r.created_at),
      string_agg(encode(r.id, 'hex'), ' ' ORDER BY r.created_at DESC)
    FROM recent AS r JOIN shared AS s USING (operation, key, fingerprint)
    WHERE $1::text IS NULL OR r.tenant = $1::text
    GROUP BY r.tenant, r.client, r.operation ORDER BY count(*) DESC LIMIT 20)
  SELECT kind, tenant, client, operation, entries::text AS entries, left(ids, 324) AS ids,
    (extract(epoch FROM first_at) * 1000)::float8 AS first_at, (extract(epoch FROM last_at) * 1000)::float8 AS last_at
  FROM (SELECT * FROM per_attempt UNION ALL SELECT * FROM from_payload) AS suspects
  UNION ALL
  SELECT 'sample', NULL, NULL, NULL, count(*)::text, NULL,
    (extract(epoch FROM min(created_at)) * 1000)::float8, (extract(epoch FROM max(created_at)) * 1000)::float8
  FROM recent WHERE $1::text IS NULL OR tenant = $1::text`;

/** Callers that look as if they made their keys wrongly, of one tenant or (`null`) of all, in a bounded sample. Raises as `ask` does. */
export async function suspectClients(
  ask: Ask,
  facts: Offered,
  tenant: string | null,
): Promise<{ readonly suspects: readonly Suspect[]; readonly sampled: Sampled }> {
  const rows = await ask({ sql: SUSPECTS(recent(facts)) }, [tenant]);
  const sample = rows.find((row) => row.kind === "sample");
  return {
    suspects: rows.filter((row) => row !== sample).map(suspect),
    sampled: {
      entries: number(sample ?? { entries: 0 }, "entries"),
      fromAt: sample === undefined ? null : instantOrNull(sample, "first_at"),
      toAt: sample === undefined ? null : instantOrNull(sample, "last_at"),
    },
  };
}

function suspect(row: SqlRow): Suspect {
  return {
    kind: text(row, "kind") as Suspect["kind"],
    tenant: text(row, "tenant"),
    client: textOrNull(row, "client"),
    operation: text(row, "operation"),
    count: number(row, "entries"),
    firstAt: instant(row, "first_at"),
    lastAt: instant(row, "last_at"),
    entryIds: text(row, "ids").split(" "),
  };
}
