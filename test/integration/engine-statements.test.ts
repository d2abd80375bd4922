import type { RunKind } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { statementName } from "../../src/stores/postgres/driver-port.ts";
import { statements } from "../../src/stores/postgres/sql.gen.ts";
import { gate } from "../support/gate.ts";
import { query, startTestServer, type TestServer, testPool } from "../support/postgres.ts";
import { answerOf, type Orders, orders, RUN_KINDS, tally } from "./support/orders.ts";
import { type RecordingPool, recordingPool } from "./support/recording-pool.ts";
import { ordersDatabase } from "./support/rows.ts";

/** A server of this file's own: nobody else's statements, no autovacuum, and pg_stat_statements, which counts on its side. */
let server: TestServer;
let url: string;

beforeAll(async () => {
  const settings = { shared_preload_libraries: "pg_stat_statements", autovacuum: "off" };
  server = await startTestServer({ settings });
  url = await ordersDatabase({ server });
  await query(url, "CREATE EXTENSION pg_stat_statements");
});

afterAll(() => server.close());

interface Counted {
  readonly calls: number;
  readonly walRecords: number;
}

/** What the server counted since the last reset, by the first words of each statement. */
async function serverCounts(database = url): Promise<Record<string, Counted>> {
  const rows = await query(
    database,
    `SELECT query, calls::int, wal_records::int FROM pg_stat_statements
     JOIN pg_database ON pg_database.oid = dbid AND datname = current_database()
     WHERE query NOT LIKE '%pg_stat%' AND query NOT LIKE '%pg_snapshot%'`,
  );
  const counts: Record<string, Counted> = {};
  for (const row of rows) {
    const name = String(row.query)
      .replaceAll(/--.*\n/g, "")
      .trim()
      .split(/\s+/)
      .slice(0, 3)
      .join(" ");
    const known = counts[name] ?? { calls: 0, walRecords: 0 };
    const { calls, wal_records } = row as { calls: number; wal_records: number };
    counts[name] = { calls: known.calls + calls, walRecords: known.walRecords + wal_records };
  }
  return counts;
}

const resetCounts = () => query(url, "SELECT pg_stat_statements_reset()");

/** The next transaction id: how many were given out in between. */
async function nextTransaction(): Promise<bigint> {
  const [row] = await query(url, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next");
  return BigInt(String(row?.next));
}

const INSERT_EFFECT = "INSERT INTO effect";
const INSERT_OUTBOX = "send";

const FRESH: Record<RunKind, readonly string[]> = {
  transaction: ["read", "BEGIN", "lock", "read", INSERT_EFFECT, INSERT_OUTBOX, "insert_finished", "COMMIT"],
  phases: [
    ...["read", "claim"],
    ...["BEGIN", "enter", INSERT_EFFECT, "record_phase", "COMMIT"],
    ...["BEGIN", "enter", INSERT_EFFECT, INSERT_OUTBOX, "complete", "COMMIT"],
  ],
  capture: ["read", "claim", INSERT_EFFECT, "complete"],
};

describe.each(RUN_KINDS)("the statements of a %s operation", (kind) => {
  async function world(): Promise<RecordingPool & Pick<Orders<unknown>, "run">> {
    const recording = recordingPool(url);
    const { run } = await orders({ driver: fromPg(recording.pool) });
    recording.take();
    return { ...recording, run };
  }

  it("of a fresh run are the fewest: look-up, claim or locks, business, record", async () => {
    const { run, take } = await world();
    expect((await run(kind, `${kind}-fresh`)).kind).toBe("completed");
    expect(take()).toEqual(FRESH[kind]);
  });

  it("of a replay are one look-up: no write, no transaction, not even a transaction id", async () => {
    const { run, take } = await world();
    const key = `${kind}-replayed`;
    const first = await run(kind, key);
    take();
    await resetCounts();
    const [before] = await query(url, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next");
    const replays = [];
    for (let index = 0; index < 20; index++) replays.push(await run(kind, key));
    expect(tally(replays)).toEqual({ replayed: 20 });
    expect(new Set(replays.map(answerOf))).toEqual(new Set([answerOf(first)]));
    expect(take()).toEqual(Array.from({ length: 20 }, () => "read"));
    const [after] = await query(url, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next");
    expect(after).toEqual(before);
    const counts = await serverCounts();
    expect(Object.values(counts)).toEqual([{ calls: 20, walRecords: 0 }]);
  });

  it("of a refused payload are one look-up, too", async () => {
    const { run, take } = await world();
    await run(kind, `${kind}-refused`);
    take();
    expect((await run(kind, `${kind}-refused`, { amount: 6 })).kind).toBe("mismatch");
    expect(take()).toEqual(["read"]);
  });

  it("of duplicates that wait in one process are none while they wait, and none afterwards", async () => {
    const recording = recordingPool(url);
    const entered = gate();
    const finish = gate();
    const at = async () => {
      entered.open();
      await finish.promise;
    };
    const { run } = await orders({ driver: fromPg(recording.pool), at });
    recording.take();
    const key = `${kind}-waiting`;
    const first = run(kind, key);
    await entered.promise;
    const before = recording.take();
    const waiting = Array.from({ length: 49 }, () => run(kind, key));
    // A request that goes all the way to the database and back: whatever the duplicates would send is sent by then.
    await query(url, "SELECT 1");
    await new Promise((resolve) => setImmediate(resolve));
    expect(recording.take()).toEqual([]);
    finish.open();
    expect(tally(await Promise.all([first, ...waiting]))).toEqual({ completed: 1, replayed: 49 });
    expect([...before, ...recording.take()]).toEqual(FRESH[kind]);
  });
});

describe.each([
  { lookUp: "first", looks: ["read"], again: ["read"], ids: 0 },
  // The owner of the locks is given a transaction id.
  { lookUp: "skip", looks: [], again: ["BEGIN", "lock", "read", "ROLLBACK"], ids: 1 },
] as const)("the statements of a transaction with lookUp: $lookUp", ({ lookUp, looks, again, ids }) => {
  async function world() {
    const recording = recordingPool(url);
    const { run } = await orders({ driver: fromPg(recording.pool), lookUp, kinds: ["transaction"] });
    recording.take();
    return { ...recording, run };
  }
  const inside = FRESH.transaction.slice(1);

  it("of a fresh key: the look-up is the only difference", async () => {
    const { run, take } = await world();
    expect((await run("transaction", `${lookUp}-fresh`)).kind).toBe("completed");
    expect(take()).toEqual([...looks, ...inside]);
  });

  it("of a replay and of a refused payload: nothing is committed", async () => {
    const { run, take } = await world();
    const key = `${lookUp}-again`;
    const first = await run("transaction", key);
    take();
    const before = await nextTransaction();
    const replay = await run("transaction", key);
    expect([replay.kind, answerOf(replay)]).toEqual(["replayed", answerOf(first)]);
    expect(take()).toEqual(again);
    expect((await run("transaction", key, { amount: 6 })).kind).toBe("mismatch");
    expect(take()).toEqual(again);
    expect((await nextTransaction()) - before).toBe(BigInt(2 * ids));
  });

  it("of a duplicate of another process's running request: the locks tell", async () => {
    const entered = gate();
    const finish = gate();
    const at = async () => {
      entered.open();
      await finish.promise;
    };
    const other = await orders({ driver: fromPg(testPool(url)), at, kinds: ["transaction"] });
    const { run, take } = await world();
    const key = `${lookUp}-busy`;
    const running = other.run("transaction", key);
    await entered.promise;
    expect((await run("transaction", key, { waitMs: 0 })).kind).toBe("busy");
    expect(take()).toEqual([...looks, "BEGIN", "lock", "ROLLBACK"]);
    finish.open();
    expect((await running).kind).toBe("completed");
  });
});

it("a fresh claim of phases or capture is one statement, and commits by itself", async () => {
  for (const kind of ["phases", "capture"] as const) {
    const recording = recordingPool(url);
    const claimed = gate();
    const finish = gate();
    const onPoint = async (point: string) => {
      if (point !== "claim:after") return;
      claimed.open();
      await finish.promise;
    };
    const { run } = await orders({ driver: fromPg(recording.pool), once: { onPoint } });
    recording.take();
    const running = run(kind, `${kind}-claimed`);
    await claimed.promise;
    expect(recording.take()).toEqual(["read", "claim"]);
    const seen = await query(url, `SELECT state FROM oncekey.entry WHERE key = '${kind}-claimed'`);
    expect(seen).toEqual([{ state: "in_progress" }]);
    finish.open();
    await running;
  }
});

it("named statements are parsed once on a connection and then only bound; the name is the digest of the text", async () => {
  const pool = testPool(url, { max: 1 });
  const { run } = await orders({ driver: fromPg(pool, { named: true }), kinds: ["transaction"] });
  for (let index = 0; index < 8; index++) await run("transaction", `named-${index}`);
  const { rows } = await pool.query(
    "SELECT name, statement, (generic_plans + custom_plans)::int AS runs FROM pg_prepared_statements WHERE name <> ''",
  );
  const runs = new Map(rows.map((row) => [row.statement, row.runs]));
  for (const row of rows) expect(row.name).toBe(statementName(row.statement));
  const texts = new Set<unknown>(Object.values(statements));
  // The business rows of these tests go through the driver too; what goes through the client itself never has a name.
  const others = [...runs.keys()].filter((text) => !texts.has(text));
  expect(others).toEqual([expect.stringMatching(/^INSERT INTO effect/)]);
  expect([statements.read, statements.lock, statements.insert_finished].map((text) => runs.get(text))).toEqual([
    16, 8, 8,
  ]);
});

describe("on the server's own count", () => {
  const RUNS = 20;

  async function fresh(kind: RunKind, database = url): Promise<Record<string, Counted>> {
    const pool = new pg.Pool({ connectionString: database, max: 4 });
    const { run } = await orders({ driver: fromPg(pool) });
    await resetCounts();
    for (let index = 0; index < RUNS; index++) await run(kind, `${kind}-counted-${index}`);
    // A connection hands in its statistics when it ends, at the latest.
    await pool.end();
    return serverCounts(database);
  }

  const calls = (counts: Record<string, Counted>) => {
    const total = Object.values(counts).reduce((sum, counted) => sum + counted.calls, 0);
    return { total, begin: counts.BEGIN?.calls ?? 0, commit: counts.COMMIT?.calls ?? 0 };
  };

  it("a fresh transaction is 8 statements, of which the business sent 2, and one commit", async () => {
    expect(calls(await fresh("transaction"))).toEqual({ total: 8 * RUNS, begin: RUNS, commit: RUNS });
  });

  it("fresh phases with one phase are 13 statements, of which the business sent 3", async () => {
    expect(calls(await fresh("phases"))).toEqual({ total: 13 * RUNS, begin: 2 * RUNS, commit: 2 * RUNS });
  });

  it("a fresh captured run is 4 statements, of which the handler sent 1, and no transaction block", async () => {
    expect(calls(await fresh("capture"))).toEqual({ total: 4 * RUNS, begin: 0, commit: 0 });
  });

  it("a fresh transaction leaves no dead row, updates none, and writes few WAL records for its entry", async () => {
    const database = await ordersDatabase({ server });
    await query(database, "CREATE EXTENSION pg_stat_statements");
    const counts = await fresh("transaction", database);
    const entry = await vi.waitUntil(async () => {
      const [row] = await query(
        database,
        `SELECT n_tup_ins::int AS inserted, n_tup_upd::int AS updated, n_tup_del::int AS deleted, n_dead_tup::int AS dead
         FROM pg_stat_user_tables WHERE schemaname = 'oncekey' AND relname = 'entry'`,
      );
      return row?.inserted === RUNS ? row : undefined;
    }, WAIT);
    expect(entry).toEqual({ inserted: RUNS, updated: 0, deleted: 0, dead: 0 });
    const inserted = counts["INSERT INTO oncekey.entry"]?.walRecords ?? Infinity;
    // The row, its primary key, the index over retention; a few more where a page splits.
    expect(inserted / RUNS).toBeLessThan(4);
  });
});

/** How long a condition may take to come true on a busy machine. */
const WAIT = { timeout: 30_000, interval: 50 };
