import { createDatabase, query, type TestDatabaseOptions } from "../../support/postgres.ts";
import { EFFECT_TABLE } from "./orders.ts";

/** A migrated database with the business table. */
export async function ordersDatabase(options: TestDatabaseOptions = {}): Promise<string> {
  const { url } = await createDatabase(options);
  await query(url, EFFECT_TABLE);
  return url;
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
  const rows = (await query(url, "SELECT kind, key, amount, pid FROM effect WHERE kind <> 'settled'")) as unknown;
  return (rows as EffectRow[]).filter((row) => key === undefined || row.key === key);
}

/** The stored entries, with what tests look at. */
export function entries(url: string): Promise<Record<string, unknown>[]> {
  return query(
    url,
    `SELECT key, run_kind, state, attempt, encode(fence, 'hex') AS fence, recovery_point, reason,
            extract(epoch FROM lease_until - created_at) * 1000 AS leased_for_ms,
            lease_until <= clock_timestamp() AS lapsed,
            expires_at > clock_timestamp() AS kept
     FROM oncekey.entry ORDER BY key`,
  );
}
