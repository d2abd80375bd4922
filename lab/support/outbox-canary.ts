import type pg from "pg";
import type { Check } from "./check.ts";
import { type CheckedWorld, checkDeliveries } from "./outbox-checks.ts";

/** A violation, and the words of the check that must find it. */
interface Planted {
  readonly what: string;
  readonly sql: string;
  readonly foundBy: string;
}

/** The first effect of an order, moved behind all others of it. */
const MOVED = `WITH first AS (
    DELETE FROM effect WHERE seq = (SELECT min(seq) FROM effect WHERE order_by LIKE 'lane-%' AND place = 0)
    RETURNING id, n, order_by, place
  )
  INSERT INTO effect (id, n, order_by, place) SELECT * FROM first`;

const PLANTED: readonly Planted[] = [
  {
    what: "a lost effect",
    sql: "DELETE FROM effect WHERE seq = (SELECT min(seq) FROM effect)",
    foundBy: "every committed",
  },
  {
    what: "a second effect",
    sql: "INSERT INTO effect (id, n, order_by, place) SELECT id, n, order_by, place FROM effect LIMIT 1",
    foundBy: "two effects",
  },
  {
    what: "a message of a rolled-back transaction",
    sql: "INSERT INTO arrival (id, n, rolled_back) VALUES ('x', -1, true)",
    foundBy: "rolled back",
  },
  {
    what: "a message under another id",
    sql: "INSERT INTO arrival (id, n, rolled_back) SELECT 'x', n, false FROM effect LIMIT 1",
    foundBy: "kept one id",
  },
  { what: "a message out of the order of commits", sql: MOVED, foundBy: "order of the commits" },
  { what: "a message out of its lane's order", sql: MOVED, foundBy: "own lanes" },
];

/** Plants violations, each in a transaction that is rolled back: a check that finds none of them shows nothing. */
export async function checkCanaries(world: CheckedWorld, sink: pg.Pool): Promise<Check> {
  const missed: string[] = [];
  for (const { what, sql, foundBy } of PLANTED) {
    const client = await sink.connect();
    await client.query("BEGIN");
    await client.query(sql);
    const checks = await checkDeliveries({ ...world, sink: client });
    await client.query("ROLLBACK");
    client.release();
    if (checks.find(({ name }) => name.includes(foundBy))?.passed !== false) missed.push(what);
  }
  return { name: "planted violations are found", passed: missed.length === 0, found: missed.join(", ") };
}
