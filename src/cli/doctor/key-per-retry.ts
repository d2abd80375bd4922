import type { SqlRow } from "../../stores/postgres/index.ts";
import { counted, grouped, visible } from "../layout.ts";
import { type Check, type Finding, numberOf, seen, textOf } from "./check.ts";
import { recentEntries, recentWords } from "./sample.ts";

/** Clients that seem to mint a key for each attempt: the same request again and again, each time under another key. */
export const keyPerRetryCheck: Check = {
  name: "key per retry",
  needs: "tables",
  async look({ sql, schema }) {
    const rows = await sql(suspects(schema));
    const words = recentWords(numberOf(rows[0], "entries_read"));
    const clients = rows.filter((row) => numberOf(row, "keys") > 0);
    const suspected = counted(clients.length, "client", "clients");
    return seen(
      `${suspected} suspected, ${counted(numberOf(rows[0], "entries_read"), "entry", "entries")} read`,
      clients.map((row) => finding(schema, row, words)),
    );
  },
};

// Fingerprints that compare nothing (third kind, second byte) are equal by themselves. Three of a kind within minutes:
// a customer who buys the same thing twice is none.
const suspects = (schema: string) => `
  WITH recent AS (${recentEntries(schema, "id, tenant, client, operation, fingerprint, created_at")}),
  spaced AS (
    SELECT *, created_at - lag(created_at) OVER (
      PARTITION BY tenant, client, operation, fingerprint ORDER BY created_at) < interval '5 minutes' AS soon
    FROM recent WHERE substring(fingerprint FROM 2 FOR 1) <> '\\x03'::bytea),
  bursts AS (
    SELECT tenant, client, operation, 1 + count(*) FILTER (WHERE soon) AS keys,
      (array_agg(encode(id, 'hex') ORDER BY created_at DESC))[1] AS newest_id
    FROM spaced GROUP BY tenant, client, operation, fingerprint HAVING count(*) FILTER (WHERE soon) >= 2),
  clients AS (
    SELECT left(encode(sha256(convert_to(tenant || chr(31) || coalesce(client, ''), 'UTF8')), 'hex'), 12) AS digest,
      operation, count(*)::text AS requests, sum(keys)::text AS keys, max(newest_id) AS id
    FROM bursts GROUP BY tenant, client, operation ORDER BY sum(keys) DESC LIMIT 20)
  SELECT (SELECT count(*) FROM recent)::text AS entries_read, c.*
  FROM (SELECT 1) AS one LEFT JOIN clients AS c ON true`;

function finding(schema: string, row: SqlRow, words: string): Finding {
  const requests = counted(numberOf(row, "requests"), "request", "requests");
  return {
    severity: "warning",
    what: `A client (digest ${textOf(row, "digest")}) sent ${requests} to ${visible(textOf(row, "operation"))} under ${grouped(numberOf(row, "keys"))} keys within minutes of each other${words}.`,
    why: "It looks as if it mints a key for each attempt: then no retry of its is ever recognised, and each one runs.",
    fix: `SELECT tenant, client FROM ${schema}.entry WHERE id = '\\x${textOf(row, "id")}'; -- then: one key for each action of the user, kept until its result is known`,
  };
}
