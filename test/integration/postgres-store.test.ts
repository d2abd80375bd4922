import { setTimeout as sleep } from "node:timers/promises";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { createDatabase, passTime, query, testPool } from "../support/postgres.ts";
import { completion, limits, newEntry } from "../support/store-values.ts";

const BUSINESS = "CREATE TABLE business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL)";

// The server is shared with other test files: only what happens in this database counts.
const WAITING_HERE = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

async function database() {
  const { url } = await createDatabase();
  await query(url, BUSINESS);
  const pool = testPool(url, { max: 16 });
  return { url, pool, store: postgresStore(fromPg(pool)) };
}

const countBusiness = async (url: string) => Number((await query(url, "SELECT count(*) AS n FROM business"))[0]?.n);

describe("one-commit transactions", () => {
  it("of 16 connections on one key, one payload each round, one runs; nobody else leaves a row", async () => {
    const { url, store } = await database();
    for (let round = 0; round < 10; round += 1) {
      const entry = newEntry({ runKind: "transaction" });
      const racers = Array.from({ length: 16 }, () => raceOnce(store, entry));
      const told = await Promise.all(racers);
      expect(told.filter((result) => result === "ran")).toHaveLength(1);
      expect(told).not.toContain("mismatch");
    }
    expect(await countBusiness(url)).toBe(10);
  });

  async function raceOnce(store: ReturnType<typeof postgresStore<pg.PoolClient>>, entry: ReturnType<typeof newEntry>) {
    return store.transaction(async (session) => {
      const lock = await session.lock(entry.id, entry.fingerprint, limits);
      if (lock !== "owner") return lock;
      if ((await session.read(entry.id)) !== null) return "finished";
      await session.tx.query("INSERT INTO business (key) VALUES ($1)", [entry.key]);
      await session.insertFinished({ ...entry, fence: newEntry().fence }, completion());
      return "ran";
    });
  }
});

describe("the transaction that the handler was given (V21, V22)", () => {
  it("stores nothing and says so when the handler committed it before the last insert", async () => {
    const { url, store } = await database();
    const entry = newEntry({ runKind: "transaction" });
    const lost = store.transaction(async (session) => {
      await session.lock(entry.id, entry.fingerprint, limits);
      await session.tx.query("COMMIT");
      await session.insertFinished(entry, completion());
    });
    await expect(lost).rejects.toMatchObject({ kind: "transaction_lost" });
    expect(await query(url, "SELECT FROM oncekey.entry")).toHaveLength(0);
  });

  it("notices it as well when the handler began another one", async () => {
    const { url, store } = await database();
    const entry = newEntry({ runKind: "transaction" });
    const lost = store.transaction(async (session) => {
      await session.lock(entry.id, entry.fingerprint, limits);
      await session.tx.query("ROLLBACK");
      await session.tx.query("BEGIN");
      await session.insertFinished(entry, completion());
    });
    await expect(lost).rejects.toMatchObject({ kind: "transaction_lost" });
    expect(await query(url, "SELECT FROM oncekey.entry")).toHaveLength(0);
  });

  it("records no phase and no outcome outside the transaction that the phase began with", async () => {
    const { store } = await database();
    const entry = newEntry();
    const { id, fence } = entry;
    await store.claim(entry, 60_000);
    const record = { position: 0, kind: "phase" as const, name: "created", value: new Uint8Array([1]) };
    for (const last of ["recordPhase", "complete"] as const) {
      const lost = store.transaction(async (session) => {
        await session.enter(id, fence, limits);
        await session.tx.query("COMMIT");
        if (last === "complete") await session.complete(id, fence, completion());
        else await session.recordPhase(id, fence, record);
      });
      await expect(lost).rejects.toMatchObject({ kind: "transaction_lost" });
    }
    expect(await store.journal(id)).toEqual({ records: [], intents: [] });
    expect(await store.read(id)).toMatchObject({ state: "in_progress", recoveryPoint: null });
  });

  it("survives savepoints of the handler", async () => {
    const { store } = await database();
    const entry = newEntry({ runKind: "transaction" });
    await store.transaction(async (session) => {
      await session.lock(entry.id, entry.fingerprint, limits);
      await session.tx.query("SAVEPOINT a");
      await session.tx.query("SELECT 1 / 0").catch(() => {});
      await session.tx.query("ROLLBACK TO a");
      await session.insertFinished(entry, completion());
    });
    expect(await store.read(entry.id)).toMatchObject({ state: "succeeded" });
  });

  it("is aborted, not committed, when the handler swallowed an SQL error and nothing of ours came after", async () => {
    const { store } = await database();
    const swallowed = store.transaction(async ({ tx }) => {
      await tx.query("INSERT INTO business (key) VALUES ('x')");
      await tx.query("SELECT 1 / 0").catch(() => {});
    });
    await expect(swallowed).rejects.toMatchObject({ kind: "aborted" });
  });

  it("refuses a session that is used after its transaction", async () => {
    const { store } = await database();
    const session = await store.transaction(async (open) => open);
    await expect(session.read(newEntry().id)).rejects.toMatchObject({ kind: "transaction_lost" });
  });
});

describe("retention (V24)", () => {
  it("is over at the microsecond of the completion where it is none: the clock is read once", async () => {
    const { url, store } = await database();
    for (let round = 0; round < 50; round++) {
      const { id, fence } = (await store.claim(newEntry({ runKind: "phases" }), 10_000)) ?? newEntry();
      await store.complete(id, fence, { ...completion(), state: "failed", retentionMs: 0, tombstoneMs: 1_000 });
    }
    const one = "completed_at = expires_at AND tombstone_until = expires_at + interval '1 s'";
    const [counted] = await query(url, `SELECT count(*) FILTER (WHERE ${one})::int AS n FROM oncekey.entry`);
    expect(counted).toEqual({ n: 50 });
  });

  it("counts from the completion, however long the operation took", async () => {
    const { url, store } = await database();
    const entry = newEntry();
    await store.claim(entry, 60_000);
    await passTime(url, 10_000);
    await store.complete(entry.id, entry.fence, completion({ retentionMs: 10_000 }));
    await passTime(url, 9_000);
    expect(await store.read(entry.id)).toMatchObject({ state: "succeeded", clock: { expired: false } });
    await passTime(url, 2_000);
    expect(await store.read(entry.id)).toMatchObject({ clock: { expired: true } });
  });
});

describe("records cannot be lost by a release", () => {
  it("keeps an entry whose intent was committed while its release was on the way", async () => {
    const { url, store } = await database();
    const entry = newEntry();
    const { id, fence } = entry;
    await store.claim(entry, 60_000);
    // The release meets an intent that is open but not yet committed: its snapshot shows nothing recorded.
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await other.query("BEGIN");
    await other.query("SELECT FROM oncekey.entry WHERE id = $1 FOR NO KEY UPDATE", [Buffer.from(id)]);
    await other.query(
      `INSERT INTO oncekey.intent (entry_id, call, generation, derived_key, request_digest, fence, started_at)
       VALUES ($1, 'authorize', 1, 'k', sha256('r'), $2, now())`,
      [Buffer.from(id), Buffer.from(fence)],
    );
    const releasing = store.release(id, fence, false);
    while ((await query(url, WAITING_HERE)).length === 0) await sleep(5);
    await other.query("COMMIT");
    await other.end();
    expect(await releasing).toBe(true);
    expect(await store.read(id)).toMatchObject({ state: "released" });
    expect((await store.journal(id)).intents).toHaveLength(1);
  });
});
