import { setTimeout as sleep } from "node:timers/promises";
import { fromPg } from "oncekey/drivers/pg";
import { discardMessages, postgresStore, retryMessages } from "oncekey/postgres";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { createDatabase, query, testPool } from "../support/postgres.ts";
import { newEntry, newMessage } from "../support/store-values.ts";

// The server is shared with other test files: only what happens in this database counts.
const WAITING_HERE = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
const CLAIM = { topics: ["*"], limit: 100, leaseMs: 60_000 };

async function database() {
  const { url } = await createDatabase();
  return { url, store: postgresStore(fromPg(testPool(url, { max: 16 }))) };
}

async function inserted(url: string, select: string): Promise<void> {
  await query(
    url,
    `INSERT INTO oncekey.outbox (id, topic, payload, tenant, order_by, state, created_at, available_at) ${select}`,
    "ANALYZE oncekey.outbox",
  );
}

describe("the order of sending", () => {
  it("a second sender in one order waits for the first to commit, and its place comes after", async () => {
    const { url, store } = await database();
    const commit = gate();
    const sent = gate();
    const first = store.transaction(async (session) => {
      await session.send(newMessage({ id: "first", orderBy: "inv_1" }));
      sent.open();
      await commit.promise;
    });
    await sent.promise;
    const second = store.transaction((session) => session.send(newMessage({ id: "second", orderBy: "inv_1" })));
    while ((await query(url, WAITING_HERE)).length === 0) await sleep(5);
    // Drawn before the lock, the waiting one's number would come before this one's, which has no order.
    await store.transaction((session) => session.send(newMessage({ id: "between" })));
    // Other orders and tenants do not wait.
    await store.transaction(async (session) => {
      await session.send(newMessage({ id: "other-order", orderBy: "inv_2" }));
      await session.send(newMessage({ id: "other-tenant", orderBy: "inv_1", tenant: "globex" }));
    });
    commit.open();
    await Promise.all([first, second]);
    const rows = await query(url, "SELECT id FROM oncekey.outbox ORDER BY seq");
    expect(rows.map(({ id }) => id)).toEqual(["first", "between", "other-order", "other-tenant", "second"]);
  });

  it("a sender that rolls back leaves no gap in the order that anybody waits for", async () => {
    const { store } = await database();
    const rolledBack = store.transaction(async (session) => {
      await session.send(newMessage({ id: "lost", orderBy: "inv_1" }));
      throw new Error("changed its mind");
    });
    await expect(rolledBack).rejects.toThrow("changed its mind");
    await store.transaction((session) => session.send(newMessage({ id: "kept", orderBy: "inv_1" })));
    expect((await store.outbox.claim(CLAIM)).map(({ id }) => id)).toEqual(["kept"]);
  });

  it("two transactions that send in two orders crosswise are told to run again, not left hanging", async () => {
    const { store } = await database();
    const both = [gate(), gate()] as const;
    const crosswise = (index: 0 | 1, orders: readonly string[]) =>
      store.transaction(async (session) => {
        const [one, other] = orders;
        await session.send(newMessage({ orderBy: one ?? null }));
        both[index].open();
        await both[index === 0 ? 1 : 0].promise;
        await session.send(newMessage({ orderBy: other ?? null }));
      });
    const ended = await Promise.allSettled([crosswise(0, ["a", "b"]), crosswise(1, ["b", "a"])]);
    expect(ended.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const refused = ended.find((end) => end.status === "rejected");
    expect(refused?.reason).toMatchObject({ kind: "contention" });
  });
});

describe("claims", () => {
  it("skip what another claimer holds, without waiting for it", async () => {
    const { url, store } = await database();
    await inserted(
      url,
      "SELECT n::text, 't', '{}', 'acme', NULL, 'pending', now(), now() FROM generate_series(1, 10) n",
    );
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await other.query("BEGIN");
    await other.query("SELECT FROM oncekey.outbox WHERE seq <= 4 FOR UPDATE");
    const claimed = await store.outbox.claim(CLAIM);
    expect(claimed.map(({ id }) => id)).toEqual(["5", "6", "7", "8", "9", "10"]);
    await other.query("ROLLBACK");
    await other.end();
    expect((await store.outbox.claim(CLAIM)).map(({ id }) => id)).toEqual(["1", "2", "3", "4"]);
  });

  it("racing for a thousand messages of twenty orders give each to one, the heads first, under distinct fences", async () => {
    const { url, store } = await database();
    await inserted(
      url,
      "SELECT n::text, 't', '{}', 'acme', 'o' || n % 20, 'pending', now(), now() FROM generate_series(1, 1000) n",
    );
    const rounds = await Promise.all(Array.from({ length: 8 }, () => store.outbox.claim(CLAIM)));
    const claimed = rounds.flat();
    expect(new Set(claimed.map(({ orderBy }) => orderBy)).size).toBe(claimed.length);
    expect(claimed.map(({ seq }) => Number(seq)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, n) => n + 1),
    );
    expect(new Set(claimed.map(({ fence }) => Buffer.from(fence).toString("hex"))).size).toBe(20);
  });

  it("behind two thousand messages of an order that is held back, the heads of other orders are found", async () => {
    const { url, store } = await database();
    await inserted(
      url,
      `SELECT n::text, 't', '{}', 'acme', CASE WHEN n > 2000 THEN 'late' || n % 3 ELSE 'stuck' END,
         CASE WHEN n = 1 THEN 'dead' ELSE 'pending' END, now(), now() + (n - 3000) * interval '1 millisecond'
       FROM generate_series(1, 2100) n`,
    );
    await store.transaction((session) => session.send(newMessage({ id: "unordered" })));
    const claimed = await store.outbox.claim(CLAIM);
    expect(claimed.map(({ id }) => id)).toEqual(["2001", "2002", "2003", "unordered"]);
    expect(await store.outbox.claim(CLAIM)).toEqual([]);
    for (const message of claimed) expect(await store.outbox.delivered(message)).toBe(true);
    expect((await store.outbox.claim({ ...CLAIM, limit: 2 })).map(({ id }) => id)).toEqual(["2004", "2005"]);
  });

  it("of a relay that is never idle come to the heads of other orders behind an order that is held back", async () => {
    const { url, store } = await database();
    await inserted(
      url,
      `SELECT n::text, 't', '{}', 'acme',
         CASE WHEN n <= 1500 THEN 'stuck' WHEN n <= 1503 THEN 'late' || n END,
         CASE WHEN n = 1 THEN 'dead' ELSE 'pending' END, now(), now() + (n - 3000) * interval '1 millisecond'
       FROM generate_series(1, 1600) n`,
    );
    const rounds = [];
    for (let round = 0; round < 3; round++) rounds.push(await store.outbox.claim({ ...CLAIM, limit: 8 }));
    expect(rounds.map(({ length }) => length)).toEqual([8, 8, 8]);
    const heads = rounds.flat().filter(({ orderBy }) => orderBy !== null);
    expect(heads.map(({ orderBy }) => orderBy)).toEqual(["late1501", "late1502", "late1503"]);
  });

  it("take topics as they are: what means something in patterns means nothing in them", async () => {
    const { url, store } = await database();
    await inserted(
      url,
      `SELECT topic, topic, '{}', 'acme', NULL, 'pending', now(), now()
       FROM unnest(ARRAY['a_b', 'axb', 'a%b', 'a', 'a*', 'a.b', 'A']) AS topic`,
    );
    const ids = async (...topics: string[]) =>
      (await store.outbox.claim({ ...CLAIM, topics })).map(({ id }) => id).sort();
    expect(await ids("a_b")).toEqual(["a_b"]);
    expect(await ids("a%*")).toEqual(["a%b"]);
    expect(await ids("a.*", "nobody")).toEqual(["a.b"]);
    expect(await ids()).toEqual([]);
    expect(await ids("a*")).toEqual(["a", "a*", "axb"]);
  });
});

describe("a message sent in a transaction of the caller's own", () => {
  it("is committed with it, or not at all", async () => {
    const { url } = await database();
    const pool = testPool(url);
    const store = postgresStore(fromPg(pool));
    for (const end of ["ROLLBACK", "COMMIT"]) {
      const tx = await pool.connect();
      await tx.query("BEGIN");
      await store.send(tx, newMessage({ id: end, entryId: newEntry().id, orderBy: "inv_1" }));
      await tx.query(end);
      tx.release();
    }
    expect(await query(url, "SELECT id FROM oncekey.outbox")).toEqual([{ id: "COMMIT" }]);
  });
});

describe("an operator who meets somebody else at the same messages", () => {
  it.each([
    ["retries", retryMessages],
    ["discards", discardMessages],
  ])("%s them all the same, under snapshots that are too old as well", async (_what, change) => {
    const { url } = await createDatabase({ isolation: "repeatable read" });
    await inserted(url, "SELECT 'm', 't', '{}', 'acme', NULL, 'dead', now(), now()");
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await other.query("BEGIN");
    await other.query("UPDATE oncekey.outbox SET reason = 'seen'");
    const changed = change(fromPg(testPool(url)), { ids: ["m"] });
    const waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'";
    while ((await query(url, waiting)).length === 0) await sleep(5);
    await other.query("COMMIT");
    await other.end();
    expect(await changed).toBe(1);
  });
});
