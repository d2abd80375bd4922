import type pg from "pg";
import { createDatabase, query, type TestDatabaseOptions, testPool } from "../../support/postgres.ts";
import { EFFECT_TABLE } from "./orders.ts";

/** A migrated database with the business table. */
export async function ordersDatabase(options: TestDatabaseOptions = {}): Promise<string> {
  const { url } = await createDatabase(options);
  await query(url, EFFECT_TABLE);
  return url;
}

const pools = new Map<string, pg.Pool>();

/** Looks at the database from outside. Over connections that stay: a fresh one for each look costs more than the look. */
async function look(url: string, sql: string, parameters: unknown[] = []): Promise<Record<string, unknown>[]> {
  const pool = pools.get(url) ?? testPool(url, { max: 2 });
  pools.set(url, pool);
  return (await pool.query(sql, parameters)).rows;
}

/** One row of the business table. */
export interface EffectRow {
  readonly kind: string;
  readonly key: string;
  readonly amount: number;
  readonly pid: number;
}

/** The committed effects of a key (or of all keys), the completing rows of `phases` left out. */
export async function effects(url: string, key?: string): Promise<EffectRow[]> {
  const all = "SELECT kind, key, amount, pid FROM effect WHERE kind <> 'settled'";
  const rows: unknown = key === undefined ? await look(url, all) : await look(url, `${all} AND key = $1`, [key]);
  return rows as EffectRow[];
}

/** The stored entries, wherever they lie, with what tests look at. */
export function entries(url: string): Promise<Record<string, unknown>[]> {
  return look(
    url,
    `SELECT key, run_kind, state, attempt, encode(fence, 'hex') AS fence, recovery_point, reason,
            extract(epoch FROM lease_until - created_at) * 1000 AS leased_for_ms,
            lease_until <= clock_timestamp() AS lapsed,
            expires_at > clock_timestamp() AS kept
     FROM (SELECT * FROM oncekey.entry UNION ALL SELECT * FROM oncekey.outcome) AS either ORDER BY key`,
  );
}
