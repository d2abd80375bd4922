import pg from "pg";
import { awaited, type FaultKind, forMs } from "../fault.ts";
import { TIMES } from "../terms.ts";

const LIMIT_MS = 5_000;
const LOCK = `SELECT id FROM oncekey.entry WHERE state = 'in_progress' ORDER BY created_at DESC LIMIT 20
              FOR UPDATE SKIP LOCKED`;
const WAITING = `SELECT count(*)::int AS count FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'`;

/** Somebody else's transaction holds entries that are in progress, and sleeps: their leases cannot be renewed. */
export const longTransaction: FaultKind = {
  name: "long_transaction",
  lane: "database",
  async strike({ database: { url, pool } }, random) {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => {});
    const idleMs = TIMES.leaseMs + random.between(200, 1_500);
    let locked = 0;
    await client.connect();
    try {
      await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
      await awaited(async () => {
        locked = (await client.query(LOCK)).rows.length;
        return locked > 0;
      }, LIMIT_MS);
      // What nobody may vacuum away, and what refunds wait for.
      await client.query("SELECT id FROM charges ORDER BY seq DESC LIMIT 20 FOR UPDATE SKIP LOCKED");
      await forMs(idleMs);
      const waiting = (await pool.query<{ count: number }>(WAITING)).rows[0]?.count ?? 0;
      await client.query("ROLLBACK");
      return { did: `${locked} entries in progress were locked for ${idleMs} ms; ${waiting} waited`, met: locked };
    } finally {
      await client.end().catch(() => undefined);
    }
  },
};
