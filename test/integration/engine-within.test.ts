import { EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import { createOncekey, ok, reject } from "oncekey";
import { fromMikroOrm } from "oncekey/drivers/mikro-orm";
import { fromPg } from "oncekey/drivers/pg";
import { fromSequelize } from "oncekey/drivers/sequelize";
import { fromTypeOrm } from "oncekey/drivers/typeorm";
import { type Driver, fromTransaction, postgresStore } from "oncekey/postgres";
import type { PoolClient } from "pg";
import { Sequelize } from "sequelize";
import { DataSource } from "typeorm";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { atEnd, createDatabase, query, type TestDatabaseOptions, testPool } from "../support/postgres.ts";

const SCOPE = { tenant: "acme", client: null };
const BOOKING = "CREATE TABLE booking (id text NOT NULL)";

type Hook<Tx> = (tx: Tx, key: string) => Promise<unknown>;
type Statement<Tx> = (tx: Tx, sql: string) => Promise<unknown>;

/** An instance, and a transaction that the test opens itself. */
async function world<Tx>(url: string, driver: Driver<Tx>, statement: Statement<Tx>, open: Driver<Tx>["transaction"]) {
  const once = createOncekey({ store: postgresStore(driver), waitMs: 0, onError: () => {} });
  const hooks = new Map<string, Hook<Tx>>();
  const runs: string[] = [];
  const bookings = once.transaction({
    name: "bookings.create",
    version: 1,
    async run({ tx, input, send }) {
      const { key, amount } = (input as { body: { key: string; amount: number } }).body;
      runs.push(key);
      await statement(tx, `INSERT INTO booking VALUES ('${key}')`);
      await send("booked", { key });
      const answer = await hooks.get(key)?.(tx, key);
      return (answer as ReturnType<typeof ok>) ?? ok({ key, amount });
    },
  });
  const journeys = once.phases({
    name: "journeys.create",
    version: 1,
    run: async (op) => op.complete(async () => ok({})),
  });
  await once.start();
  const request = (key: string, amount = 1) => ({ scope: SCOPE, key, input: { body: { key, amount } } });
  const run = (key: string, amount?: number) => once.run(bookings, request(key, amount));
  const runIn = (tx: Tx, key: string, amount?: number) =>
    once.run(bookings, { ...request(key, amount), transaction: fromTransaction(tx) });
  const count = async (sql: string) => Number((await query(url, `SELECT count(*)::int AS n FROM ${sql}`))[0]?.n);
  /** Committed rows of a key: business, entry, message. */
  const kept = async (key: string) => [
    await count(`booking WHERE id = '${key}'`),
    await count(`oncekey.entry WHERE key = '${key}'`),
    await count(`oncekey.outbox WHERE payload::jsonb ->> 'key' = '${key}'`),
  ];
  return { url, once, bookings, journeys, request, run, runIn, open, statement, hooks, runs, count, kept };
}

async function onPg(options: TestDatabaseOptions = {}) {
  const { url } = await createDatabase(options);
  await query(url, BOOKING);
  const pool = testPool(url);
  const open: Driver<PoolClient>["transaction"] = async (body) => {
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      const result = await body(client);
      const { command } = await client.query("COMMIT");
      if (command !== "COMMIT") throw new Error("rolled back");
      return result;
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    } finally {
      client.release();
    }
  };
  const statement: Statement<PoolClient> = (tx, sql) => tx.query(sql);
  return { pool, ...(await world(url, fromPg(pool), statement, open)) };
}

async function onTypeOrm() {
  const { url } = await createDatabase();
  await query(url, BOOKING);
  const dataSource = await new DataSource({ type: "postgres", url }).initialize();
  atEnd(() => dataSource.destroy());
  const open = <R>(body: (tx: DataSource["manager"]) => Promise<R>) => dataSource.transaction(body);
  return world(url, fromTypeOrm(dataSource), (tx, sql) => tx.query(sql), open);
}

async function onSequelize() {
  const { url } = await createDatabase();
  await query(url, BOOKING);
  const sequelize = new Sequelize(url, { logging: false });
  atEnd(() => sequelize.close());
  return world(
    url,
    fromSequelize(sequelize),
    (transaction, sql) => sequelize.query(sql, { transaction }),
    (body) => sequelize.transaction(body),
  );
}

async function onMikroOrm() {
  const { url } = await createDatabase();
  await query(url, BOOKING);
  const Booking = new EntitySchema<{ id: string }>({
    name: "booking",
    properties: { id: { type: "text", primary: true } },
  });
  const orm = await MikroORM.init({ clientUrl: url, entities: [Booking] });
  atEnd(() => orm.close());
  return world(
    url,
    fromMikroOrm(orm),
    // Nothing is flushed: what is persisted is ours to flush before the entry.
    async (tx, sql) => tx.persist(tx.create(Booking, { id: /'(.*)'/.exec(sql)?.[1] ?? "" })),
    (body) => orm.em.fork().transactional(body),
  );
}

describe.each([
  ["pg", onPg as unknown as typeof onTypeOrm],
  ["TypeORM", onTypeOrm],
  ["Sequelize", onSequelize as unknown as typeof onTypeOrm],
  ["MikroORM", onMikroOrm as unknown as typeof onTypeOrm],
])("a run in a transaction that the caller opened by %s", (_name, make) => {
  it("commits and rolls back with it, and is replayed later in one and without", async () => {
    const { open, run, runIn, statement, kept, runs } = await make();
    const first = await open(async (tx) => {
      const result = await runIn(tx, "kept");
      await statement(tx, "INSERT INTO booking VALUES ('after')");
      return result;
    });
    expect(first.kind).toBe("completed");
    expect(await kept("kept")).toEqual([1, 1, 1]);
    expect(await kept("after")).toEqual([1, 0, 0]);
    const replays = [await run("kept"), await open((tx) => runIn(tx, "kept"))];
    for (const replay of replays) expect(replay).toEqual({ ...first, kind: "replayed" });
    const rolledBack = open(async (tx) => {
      expect((await runIn(tx, "lost")).kind).toBe("completed");
      throw new Error("of the caller");
    });
    await expect(rolledBack).rejects.toThrow("of the caller");
    expect(await kept("lost")).toEqual([0, 0, 0]);
    expect((await run("lost")).kind).toBe("completed");
    expect(runs).toEqual(["kept", "lost", "lost"]);
  });

  it("undoes what the operation did when it throws or refuses, and leaves the transaction usable", async () => {
    const { open, run, runIn, statement, hooks, kept } = await make();
    hooks.set("throws", () => Promise.reject(new Error("of the operation")));
    await open(async (tx) => {
      await expect(runIn(tx, "throws")).rejects.toThrow("of the operation");
      await statement(tx, "INSERT INTO booking VALUES ('goes on')");
    });
    expect(await kept("throws")).toEqual([0, 0, 0]);
    expect(await kept("goes on")).toEqual([1, 0, 0]);
    hooks.set("refuses", async () => reject(422, { code: "limit_reached" }));
    const refused = await open((tx) => runIn(tx, "refuses"));
    expect(refused).toMatchObject({ kind: "completed", outcome: { status: 422 } });
    expect(await kept("refuses")).toEqual([0, 1, 0]);
    expect(await run("refuses")).toMatchObject({ kind: "replayed", outcome: { status: 422 } });
  });

  it("shows its result to nobody before the commit: others are busy at once, another payload is a mismatch", async () => {
    const { open, run, runIn, kept, runs } = await make();
    const result = await open(async (tx) => {
      const mine = await runIn(tx, "open");
      expect((await run("open")).kind).toBe("busy");
      expect((await open((other) => runIn(other, "open"))).kind).toBe("busy");
      expect((await run("open", 2)).kind).toBe("mismatch");
      expect(await open((other) => runIn(other, "open", 2))).toEqual({ kind: "mismatch", state: "in_progress" });
      return mine;
    });
    expect(await run("open")).toEqual({ ...result, kind: "replayed" });
    expect((await run("open", 2)).kind).toBe("mismatch");
    expect(await open((tx) => runIn(tx, "open", 2))).toEqual({ kind: "mismatch", state: "succeeded" });
    expect([await kept("open"), runs]).toEqual([[1, 1, 1], ["open"]]);
  });

  it("refuses a transaction that is over", async () => {
    const { open, runIn, runs } = await make();
    const over = await open(async (tx) => ({ tx }));
    await expect(runIn(over.tx, "over")).rejects.toMatchObject({ code: "oncekey_transaction_unusable" });
    expect(runs).toEqual([]);
  });
});

describe("what a transaction must be like", () => {
  const UNUSABLE = { code: "oncekey_transaction_unusable" };

  it("refuses one that has written, and one that ran another key", async () => {
    const { open, runIn, statement, kept } = await onPg();
    await open(async (tx) => {
      await statement(tx, "INSERT INTO booking VALUES ('first')");
      await expect(runIn(tx, "late")).rejects.toMatchObject(UNUSABLE);
    });
    expect(await kept("first")).toEqual([1, 0, 0]);
    await open(async (tx) => {
      await runIn(tx, "one");
      await expect(runIn(tx, "another")).rejects.toMatchObject(UNUSABLE);
      await expect(runIn(tx, "one", 2)).resolves.toMatchObject({ kind: "mismatch" });
    });
    expect(await Promise.all([kept("late"), kept("one"), kept("another")])).toEqual([
      [0, 0, 0],
      [1, 1, 1],
      [0, 0, 0],
    ]);
  });

  it("refuses one that failed, one that is read only, and what is no transaction", async () => {
    const { open, pool, runIn, statement, runs, once, journeys, request } = await onPg();
    const failed = open(async (tx) => {
      await expect(statement(tx, "SELECT 1 / 0")).rejects.toThrow();
      await expect(runIn(tx, "failed")).rejects.toMatchObject(UNUSABLE);
    });
    await expect(failed).rejects.toThrow("rolled back");
    await open(async (tx) => {
      await statement(tx, "SET TRANSACTION READ ONLY");
      await expect(runIn(tx, "reads")).rejects.toMatchObject(UNUSABLE);
      const many = once.run(journeys, { ...request("phases"), transaction: fromTransaction(tx) });
      await expect(many).rejects.toMatchObject(UNUSABLE);
    });
    const client = await pool.connect();
    for (const none of [client, pool, null, undefined, "tx", { query: () => Promise.reject(new Error("closed")) }]) {
      await expect(runIn(none as never, "none")).rejects.toMatchObject(UNUSABLE);
    }
    client.release();
    expect(runs).toEqual([]);
  });

  it("refuses a second run while one is going on in it", async () => {
    const { open, runIn, hooks, kept } = await onPg();
    const inside = gate();
    const goOn = gate();
    hooks.set("slow", async () => {
      inside.open();
      await goOn.promise;
    });
    await open(async (tx) => {
      const slow = runIn(tx, "slow");
      await inside.promise;
      await expect(runIn(tx, "meanwhile")).rejects.toMatchObject(UNUSABLE);
      goOn.open();
      expect((await slow).kind).toBe("completed");
    });
    expect([await kept("slow"), await kept("meanwhile")]).toEqual([
      [1, 1, 1],
      [0, 0, 0],
    ]);
  });

  it("may be tried again after busy, and take another key after a replay", async () => {
    const { open, run, runIn, kept } = await onPg();
    await run("known");
    await open(async (other) => {
      await open(async (tx) => {
        await runIn(tx, "taken");
        expect((await runIn(other, "taken")).kind).toBe("busy");
      });
      expect((await runIn(other, "taken")).kind).toBe("replayed");
      expect((await runIn(other, "known")).kind).toBe("replayed");
      expect((await runIn(other, "fresh")).kind).toBe("completed");
    });
    expect(await kept("fresh")).toEqual([1, 1, 1]);
  });

  it("keeps its settings, and takes none of ours", async () => {
    const { open, runIn } = await onPg();
    const NAMES = ["lock_timeout", "idle_in_transaction_session_timeout", "statement_timeout", "synchronous_commit"];
    const settings = async (tx: PoolClient) =>
      (await tx.query("SELECT name, setting, source FROM pg_settings WHERE name = ANY($1) ORDER BY name", [NAMES]))
        .rows;
    await open(async (tx) => {
      await tx.query("SET LOCAL lock_timeout = '7s'; SET LOCAL synchronous_commit = off");
      const before = await settings(tx);
      await runIn(tx, "settings");
      expect(await settings(tx)).toEqual(before);
    });
  });

  it("uses no other connection: as many as the pool has can be held by callers", async () => {
    const { pool, once, bookings, request } = await onPg();
    const clients = await Promise.all(Array.from({ length: pool.options.max ?? 0 }, () => pool.connect()));
    const results = await Promise.all(
      clients.map(async (client, index) => {
        await client.query("BEGIN");
        const transaction = fromTransaction(client);
        const result = await once.run(bookings, { ...request(`held${index}`), transaction });
        await client.query("COMMIT");
        client.release();
        return result.kind;
      }),
    );
    expect(new Set(results)).toEqual(new Set(["completed"]));
  });
});

describe("what an operation may do in it", () => {
  it.each(["COMMIT", "ROLLBACK", "COMMIT AND CHAIN"])("is told so where it ends it by %s", async (ending) => {
    const { open, runIn, hooks, count, statement } = await onPg();
    hooks.set("ends", (tx) => statement(tx, ending));
    const ended = open(async (tx) => {
      await expect(runIn(tx, "ends")).rejects.toMatchObject({ code: "oncekey_transaction_lost" });
    });
    await ended.catch(() => {});
    expect(await count("oncekey.entry WHERE key = 'ends'")).toBe(0);
  });

  it("is told so where it swallowed an SQL error, and the caller goes on", async () => {
    const { open, runIn, hooks, statement, kept } = await onPg();
    hooks.set("swallows", (tx) => statement(tx, "SELECT 1 / 0").catch(() => {}));
    await open(async (tx) => {
      await expect(runIn(tx, "swallows")).rejects.toMatchObject({ code: "oncekey_transaction_aborted" });
      await statement(tx, "INSERT INTO booking VALUES ('on')");
    });
    expect([await kept("swallows"), await kept("on")]).toEqual([
      [0, 0, 0],
      [1, 0, 0],
    ]);
  });

  it("its own unique violation stays its own, and the caller goes on", async () => {
    const { url, open, runIn, hooks, statement, kept } = await onPg();
    await query(url, "CREATE UNIQUE INDEX ON booking (id)", "INSERT INTO booking VALUES ('twice')");
    await open(async (tx) => {
      await expect(runIn(tx, "twice")).rejects.toMatchObject({ code: "23505", constraint: "booking_id_idx" });
      await statement(tx, "INSERT INTO booking VALUES ('on')");
    });
    expect(hooks.size).toBe(0);
    expect([await kept("twice"), await kept("on")]).toEqual([
      [1, 0, 0],
      [1, 0, 0],
    ]);
  });

  it("is not given up when its time is over: the signal aborts, and its end counts", async () => {
    const { open, once: _, url, statement } = await onPg();
    const pool = testPool(url);
    const once = createOncekey({ store: postgresStore(fromPg(pool)), onError: () => {} });
    const slow = once.transaction({
      name: "slow",
      version: 1,
      maxDurationMs: 20,
      async run({ tx, signal }) {
        await new Promise((aborted) => signal.addEventListener("abort", aborted));
        await statement(tx, "INSERT INTO booking VALUES ('slow')");
        return ok({});
      },
    });
    await once.start();
    const result = await open((tx) => once.run(slow, { scope: SCOPE, key: "slow", transaction: fromTransaction(tx) }));
    expect(result.kind).toBe("completed");
  });

  it("a lost connection is a result, and nothing is kept", async () => {
    const { url, open, runIn, hooks, statement, kept } = await onPg();
    hooks.set("cut", async (tx) => {
      const { rows } = await tx.query("SELECT pg_backend_pid() AS pid");
      await query(url, `SELECT pg_terminate_backend(${rows[0].pid}, 5000)`);
      await statement(tx, "INSERT INTO booking VALUES ('never')");
    });
    const cut = open(async (tx) => {
      tx.on("error", () => {});
      expect((await runIn(tx, "cut")).kind).toBe("store_unavailable");
      throw new Error("roll back");
    });
    await expect(cut).rejects.toThrow();
    expect([await kept("cut"), await kept("never")]).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });
});

describe.each(["read committed", "repeatable read", "serializable"] as const)("at %s", (isolation) => {
  /** Puts a finished entry of the key in the table, past every lock. */
  async function slippingIn() {
    const here = await onPg({ isolation });
    const { url, run, hooks } = here;
    await run("key");
    const [entry] = await query(url, "CREATE TABLE other AS SELECT * FROM oncekey.entry", "SELECT key FROM other");
    expect(entry).toEqual({ key: "key" });
    await query(url, "DELETE FROM oncekey.outbox", "DELETE FROM oncekey.entry", "DELETE FROM booking");
    hooks.set("key", async () => void (await query(url, "INSERT INTO oncekey.entry SELECT * FROM other")));
    return here;
  }

  it("somebody who slipped in is replayed, or a new transaction is asked for; never is anything done twice", async () => {
    const { open, run, runIn, kept } = await slippingIn();
    const result = await open((tx) => runIn(tx, "key")).catch((error: Error) => error);
    if (isolation === "read committed") expect(result).toMatchObject({ kind: "replayed" });
    else expect(result).toMatchObject({ kind: "contention" });
    expect(await kept("key")).toEqual([0, 1, 0]);
    expect((await run("key")).kind).toBe("replayed");
    expect((await open((tx) => runIn(tx, "key"))).kind).toBe("replayed");
  });

  it("an older snapshot than the entry asks for a new transaction, or replays", async () => {
    const { open, run, runIn, statement, kept } = await onPg({ isolation });
    const result = await open(async (tx) => {
      await statement(tx, "SELECT 1 FROM booking");
      await run("old");
      return await runIn(tx, "old");
    });
    expect(result.kind).toBe(isolation === "read committed" ? "replayed" : "contention");
    expect(await kept("old")).toEqual([1, 1, 1]);
  });

  it("gives sixty claims of four keys, in transactions of their callers and in ours, one owner each", async () => {
    const { pool, run, runIn, open, kept } = await onPg({ isolation });
    const keys = ["a", "b", "c", "d"];
    expect(pool.options.max).toBe(10);
    const until = async (key: string, index: number): Promise<string> => {
      // Under SERIALIZABLE the caller's own COMMIT can fail, and is the caller's to try again.
      const raced = (error: { code?: string }) =>
        error.code === "40001" ? { kind: "contention" } : Promise.reject(error);
      const result = await (index % 2 === 0 ? run(key) : open((tx) => runIn(tx, key)).catch(raced));
      return ["busy", "contention"].includes(result.kind) ? until(key, index) : result.kind;
    };
    const calls = Array.from({ length: 60 }, (_, index) => until(keys[index % 4] ?? "", Math.floor(index / 4)));
    const kinds = await Promise.all(calls);
    expect(kinds.filter((kind) => kind === "completed")).toHaveLength(4);
    expect(kinds.filter((kind) => kind === "replayed")).toHaveLength(56);
    for (const key of keys) expect(await kept(key)).toEqual([1, 1, 1]);
  });
});
