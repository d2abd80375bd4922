import type pg from "pg";
import { frame } from "../../src/core/framing.ts";
import { identityOf } from "../../src/core/identity.ts";

/** Keys of entries that were not made by requests: all of one length, so that all frames of their digests are. */
export const keyOf = (n: number): string => `scale-${String(n).padStart(12, "0")}`;

/** A table is filled in statements of so many rows, which tell how far it is. */
const ROWS_AT_ONCE = 500_000;

/** A connection, or any one of the pool. */
type Asked = pg.Pool | pg.PoolClient;

interface Named {
  readonly name: string;
  readonly definition: string;
}

/** Whose the copies are. */
export interface Owner {
  readonly tenant: string;
  readonly client: string;
  readonly operation: string;
}

/**
 * Fills `oncekey.entry` up to `count` entries, copies of the one that a request with {@link keyOf}(1) has made, each with a key
 * and an identity of its own, so that every one of them can be replayed. In one transaction that begins with TRUNCATE, where
 * `wal_level = minimal` leaves the log out, and with the indexes made at its end: several times faster, and they become as dense as
 * a REINDEX would make them. `told` is called with the number of entries that are there.
 */
export async function fill(pool: pg.Pool, owner: Owner, count: number, told: (entries: number) => void): Promise<void> {
  const indexes = await dropIndexes(pool);
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await client.query(`CREATE TEMPORARY TABLE one ON COMMIT DROP AS ${TEMPLATE}`, [templateId(owner)]);
    await client.query("TRUNCATE oncekey.entry");
    await client.query("INSERT INTO oncekey.entry SELECT * FROM one");
    for (let from = 2; from <= count; from += ROWS_AT_ONCE) {
      const to = Math.min(count, from + ROWS_AT_ONCE - 1);
      await copy(client, owner, from, to, "template.expires_at");
      told(to);
    }
    for (const { definition } of indexes) await client.query(definition);
    await client.query("COMMIT");
  } finally {
    client.release();
  }
  await pool.query("VACUUM (FREEZE, ANALYZE) oncekey.entry");
  await pool.query("CHECKPOINT");
}

/** Adds `count` entries that have expired, beyond those that {@link fill} made. */
export async function addExpired(pool: pg.Pool, owner: Owner, entries: number, count: number): Promise<void> {
  await copy(pool, owner, entries + 1, entries + count, "clock_timestamp() - interval '1 minute'");
  await pool.query("VACUUM (ANALYZE) oncekey.entry");
}

const TEMPLATE = "SELECT * FROM oncekey.entry WHERE id = $1::bytea AND state = 'succeeded'";

const templateId = (owner: Owner): Uint8Array => identityOf(owner, owner.operation, keyOf(1)).id;

async function copy(on: Asked, owner: Owner, from: number, to: number, expiresAt: string): Promise<void> {
  const made: Readonly<Record<string, string>> = {
    id: "sha256($1::bytea || convert_to(made.key, 'UTF8'))",
    key: "made.key",
    fence: "uuid_send(gen_random_uuid())",
    seed: "uuid_send(gen_random_uuid())",
    expires_at: expiresAt,
  };
  const columns = await columnsOf(on);
  const values = columns.map((name) => made[name] ?? `template.${name}`);
  const { rowCount } = await on.query(
    `WITH template AS MATERIALIZED (SELECT * FROM oncekey.entry WHERE key = $4::text AND state = 'succeeded' LIMIT 1)
    INSERT INTO oncekey.entry (${columns.join(", ")})
    SELECT ${values.join(", ")}
    FROM template,
      LATERAL (SELECT 'scale-' || lpad(n::text, 12, '0') AS key FROM generate_series($2::int, $3::int) AS n) AS made`,
    [prefixOf(owner, keyOf(1)), from, to, keyOf(1)],
  );
  if (rowCount !== to - from + 1)
    throw new Error("There is no entry to copy: make a request with the first key before.");
}

/** What the digest of an identity is made of, up to its key: the last part, whose length is the same for all. */
function prefixOf({ tenant, client, operation }: Owner, key: string): Uint8Array {
  return frame(1, [tenant, client, operation, key]).subarray(0, -Buffer.byteLength(key));
}

async function columnsOf(on: Asked): Promise<string[]> {
  const { rows } = await on.query<{ name: string }>(
    "SELECT attname AS name FROM pg_attribute WHERE attrelid = 'oncekey.entry'::regclass AND attnum > 0 AND NOT attisdropped",
  );
  return rows.map(({ name }) => name);
}

/** Drops what slows filling down, and gives what makes it again, in order. */
async function dropIndexes(pool: pg.Pool): Promise<Named[]> {
  const { rows: constraints } = await pool.query<Named & { held: string }>(
    `SELECT conname AS name, conrelid::regclass::text AS held,
      format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS definition
    FROM pg_constraint
    WHERE (conrelid = 'oncekey.entry'::regclass AND contype = 'p') OR (confrelid = 'oncekey.entry'::regclass AND contype = 'f')
    ORDER BY contype DESC`,
  );
  const { rows: indexes } = await pool.query<Named>(
    `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition
    FROM pg_index WHERE indrelid = 'oncekey.entry'::regclass AND NOT indisprimary`,
  );
  for (const { held, name } of constraints.toReversed())
    await pool.query(`ALTER TABLE ${held} DROP CONSTRAINT ${name}`);
  for (const { name } of indexes) await pool.query(`DROP INDEX ${name}`);
  return [...constraints, ...indexes];
}
