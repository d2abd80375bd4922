import type { SqlRow } from "../../stores/postgres/index.ts";
import { counted, visible } from "../layout.ts";
import { type Check, type Finding, numberOf, seen, textOf } from "./check.ts";
import { recentEntries, recentWords } from "./sample.ts";

/** Keys that seem to be made from the payload: callers that know nothing of each other have the same key for the same request. */
export const keyOfPayloadCheck: Check = {
  name: "key of payload",
  needs: "tables",
  async look({ sql, schema }) {
    const rows = await sql(shared(schema));
    const words = recentWords(numberOf(rows[0], "entries_read"));
    const operations = rows.filter((row) => textOf(row, "operation") !== "");
    const keys = operations.reduce((sum, row) => sum + numberOf(row, "shared"), 0);
    return seen(
      `${counted(keys, "key is", "keys are")} shared between callers; a key that comes again days later leaves no row, and is not seen here`,
      operations
        .flatMap((row) => [sharedFinding(schema, row, words), namedFinding(row, words)])
        .filter((f) => f !== null),
    );
  },
};

// UUIDs of version 3 and 5 are digests of a name (RFC 9562 §5.3, §5.5).
const NAMED = "^[0-9a-f]{8}-[0-9a-f]{4}-[35][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$";

const shared = (schema: string) => `
  WITH recent AS (${recentEntries(schema, "id, operation, key, fingerprint")}),
  keys AS (
    SELECT operation, count(*) AS callers, bool_or(key ~* '${NAMED}') AS named,
      (array_agg(encode(id, 'hex')))[1] AS id
    FROM recent GROUP BY operation, key, fingerprint),
  operations AS (
    SELECT operation, count(*) FILTER (WHERE callers > 1)::text AS shared, count(*) FILTER (WHERE named)::text AS named,
      (array_agg(id) FILTER (WHERE callers > 1))[1] AS id
    FROM keys GROUP BY operation HAVING count(*) FILTER (WHERE callers > 1 OR named) > 0
    ORDER BY count(*) FILTER (WHERE callers > 1) DESC LIMIT 20)
  SELECT (SELECT count(*) FROM recent)::text AS entries_read, o.*
  FROM (SELECT 1) AS one LEFT JOIN operations AS o ON true`;

function sharedFinding(schema: string, row: SqlRow, words: string): Finding | null {
  if (numberOf(row, "shared") === 0) return null;
  const keys = counted(numberOf(row, "shared"), "key was", "keys were");
  return {
    severity: "warning",
    what: `In ${visible(textOf(row, "operation"))} ${keys} sent by several tenants or clients, each with the same request${words}.`,
    why: "It looks as if keys are made from the payload: whoever wants the same thing a second time is given the first one's answer, and nothing happens.",
    fix: `SELECT tenant, client, created_at FROM ${schema}.entry WHERE key = (SELECT key FROM ${schema}.entry WHERE id = '\\x${textOf(row, "id")}'); -- then: a random key for each action of the user`,
  };
}

function namedFinding(row: SqlRow, words: string): Finding | null {
  if (numberOf(row, "named") === 0) return null;
  const keys = counted(numberOf(row, "named"), "key is a UUID", "keys are UUIDs");
  return {
    severity: "note",
    what: `In ${visible(textOf(row, "operation"))} ${keys} of version 3 or 5: digests of a name${words}.`,
    why: "Right where the name says which action of the user it is. Where it is the payload, the second of two equal wishes is never carried out.",
    fix: "Ask who writes the client what goes into the name; else UUIDs of version 4 or 7.",
  };
}
