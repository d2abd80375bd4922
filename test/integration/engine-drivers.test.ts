import { PGlite, type Transaction } from "@electric-sql/pglite";
import { created, createOncekey, ok, reject } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { fromPGlite } from "oncekey/drivers/pglite";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import { type Driver, migrate, postgresStore, type SqlRow } from "oncekey/postgres";
import type { PoolClient } from "pg";
import postgres, { type TransactionSql } from "postgres";
import { describe, expect, expectTypeOf, it } from "vitest";
import { atEnd, testPool } from "../support/postgres.ts";
import { answerOf, EFFECT_TABLE, type Hook, orders, RUN_KINDS } from "./support/orders.ts";
import { ordersDatabase } from "./support/rows.ts";

const SCOPE = { tenant: "acme", client: null };

/** Made by the first test that asks, kept for the others. */
function kept<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

const pgDriver = kept(async () => fromPg(testPool(await ordersDatabase())));

const postgresJsDriver = kept(async () => {
  const sql = postgres(await ordersDatabase(), { max: 10, onnotice: () => {} });
  atEnd(() => sql.end());
  return fromPostgresJs(sql);
});

const pgliteDriver = kept(async () => {
  const db = await PGlite.create();
  atEnd(() => db.close());
  await migrate(fromPGlite(db));
  await db.exec(EFFECT_TABLE);
  return fromPGlite(db);
});

const DRIVERS: Readonly<Record<string, () => Promise<Driver<unknown>>>> = {
  pg: pgDriver as () => Promise<Driver<unknown>>,
  "postgres-js": postgresJsDriver as () => Promise<Driver<unknown>>,
  pglite: pgliteDriver as () => Promise<Driver<unknown>>,
};

const keyed = (driver: Driver<unknown>, table: string, key: string): Promise<readonly SqlRow[]> =>
  driver.run(`SELECT * FROM ${table} WHERE key = $1::text`, [key]);

const messagesOf = (driver: Driver<unknown>, key: string): Promise<readonly SqlRow[]> =>
  driver.run("SELECT id, topic, payload FROM oncekey.outbox WHERE payload::jsonb ->> 'order' = $1::text", [key]);

const AGAIN = "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$";

/** Where each kind's transactions are. */
const PLACES = [
  ["transaction", "transaction"],
  ["phases", "phase"],
  ["phases", "complete"],
] as const;

describe.each(Object.entries(DRIVERS))("the engine on %s", (_name, make) => {
  async function world(at?: Hook<unknown>) {
    const driver = await make();
    const { run } = await orders({ driver, ...(at === undefined ? {} : { at }) });
    return { driver, run };
  }

  it.each(RUN_KINDS)("runs a %s operation once, replays it, and refuses another payload", async (kind) => {
    const { driver, run } = await world();
    const key = `${kind}-smoke`;
    const first = await run(kind, key);
    expect(first.kind).toBe("completed");
    const replay = await run(kind, key);
    expect(replay.kind).toBe("replayed");
    expect(answerOf(replay)).toBe(answerOf(first));
    expect((await run(kind, key, { amount: 6 })).kind).toBe("mismatch");
    expect(await keyed(driver, "effect", key)).toHaveLength(kind === "phases" ? 2 : 1);
    expect(await keyed(driver, "oncekey.entry", key)).toMatchObject([{ state: "succeeded", run_kind: kind }]);
  });

  it.each(RUN_KINDS)("gives ten concurrent duplicates of a %s request one execution", async (kind) => {
    const { driver, run } = await world();
    const key = `${kind}-together`;
    const results = await Promise.all(Array.from({ length: 10 }, () => run(kind, key)));
    expect(results.filter((result) => result.kind === "completed")).toHaveLength(1);
    expect(new Set(results.map(answerOf)).size).toBe(1);
    expect(await keyed(driver, "effect", key)).toHaveLength(kind === "phases" ? 2 : 1);
  });

  it.each(PLACES)("a throw in a %s operation (%s) takes its rows and messages with it", async (kind, place) => {
    let failures = 1;
    const { driver, run } = await world((reached) => {
      if (reached === place && failures-- > 0) throw new Error("boom");
    });
    const key = `${kind}-${place}-throws`;
    await expect(run(kind, key)).rejects.toThrow("boom");
    expect(await messagesOf(driver, key)).toHaveLength(0);
    expect(await keyed(driver, "effect", key)).toHaveLength(place === "complete" ? 1 : 0);
    expect((await run(kind, key)).kind).toBe("completed");
    expect(await messagesOf(driver, key)).toHaveLength(1);
    expect(await keyed(driver, "effect", key)).toHaveLength(kind === "phases" ? 2 : 1);
  });

  it.each(["transaction", "complete"] as const)("a message keeps its id when %s runs again", async (place) => {
    const ids: unknown[] = [];
    const { driver, run } = await world(async (reached, { order }, tx) => {
      if (reached !== place) return;
      const [sent] = await driver.run(
        "SELECT id FROM oncekey.outbox WHERE payload::jsonb ->> 'order' = $1::text",
        [order],
        tx,
      );
      ids.push(sent?.id);
      if (ids.length < 3) await driver.run(AGAIN, [], tx);
    });
    const key = `${place}-message`;
    const kind = place === "transaction" ? "transaction" : "phases";
    expect((await run(kind, key)).kind).toBe("completed");
    expect(ids).toHaveLength(3);
    expect(new Set(ids).size).toBe(1);
    expect(await messagesOf(driver, key)).toMatchObject([{ id: ids[0] }]);
  });

  it.each(PLACES)("a swallowed SQL error in a %s operation (%s) is a clear error (V21)", async (kind, place) => {
    let swallowed = 1;
    const { driver, run } = await world(async (reached, _order, tx) => {
      if (reached === place && swallowed-- > 0) await driver.run("SELECT 1 / 0", [], tx).catch(() => {});
    });
    const key = `${kind}-${place}-swallows`;
    await expect(run(kind, key)).rejects.toMatchObject({ code: "oncekey_transaction_aborted" });
    expect(await messagesOf(driver, key)).toHaveLength(0);
    expect(await keyed(driver, "effect", key)).toHaveLength(place === "complete" ? 1 : 0);
    expect((await keyed(driver, "oncekey.entry", key)).map(({ state }) => state)).not.toContain("succeeded");
    expect((await run(kind, key)).kind).toBe("completed");
    expect(await keyed(driver, "effect", key)).toHaveLength(kind === "phases" ? 2 : 1);
  });

  const endings = ["COMMIT", "ROLLBACK", "COMMIT AND CHAIN"] as const;
  const ended = PLACES.flatMap(([kind, place]) => endings.map((ending) => [ending, kind, place] as const));

  it.each(ended)("%s by the code of a %s operation (%s) is a clear error (V22)", async (ending, kind, place) => {
    const { driver, run } = await world(async (reached, _order, tx) => {
      if (reached === place) await driver.run(ending, [], tx);
    });
    const key = `${kind}-${place}-${ending.replaceAll(/\W/g, "")}`;
    await expect(run(kind, key)).rejects.toMatchObject({ code: "oncekey_transaction_lost" });
    const stored = await keyed(driver, "oncekey.entry", key);
    expect(stored.map(({ state }) => state)).not.toContain("succeeded");
    expect(stored.map(({ recovery_point }) => recovery_point)).toEqual(place === "complete" ? ["placed"] : []);
  });

  it("a rejection leaves its refusal and none of its rows", async () => {
    const driver = await make();
    const once = createOncekey({ store: postgresStore(driver), onError: () => {} });
    const key = "rejected";
    const operation = once.transaction({
      name: "orders.reject",
      version: 1,
      async run({ tx, send }) {
        await driver.run("INSERT INTO effect VALUES ('reject', $1::text, 1, 1)", [key], tx);
        await send("order.placed", { order: key });
        return reject(422, { code: "limit_reached" });
      },
    });
    await once.start();
    const run = () => once.run(operation, { scope: SCOPE, key, input: {} });
    expect(await run()).toMatchObject({ kind: "completed", outcome: { status: 422 } });
    expect(await run()).toMatchObject({ kind: "replayed", outcome: { status: 422 } });
    expect(await keyed(driver, "effect", key)).toHaveLength(0);
    expect(await messagesOf(driver, key)).toHaveLength(0);
    expect(await keyed(driver, "oncekey.entry", key)).toMatchObject([{ state: "failed", status: 422 }]);
  });
});

describe("the transaction that business code gets is the driver's own", () => {
  const request = (key: string) => ({ scope: SCOPE, key, input: {} });

  it("pg: a PoolClient", async () => {
    const once = createOncekey({ store: postgresStore(await pgDriver()) });
    const operation = once.transaction({
      name: "native",
      version: 1,
      async run({ tx }) {
        expectTypeOf(tx).toEqualTypeOf<PoolClient>();
        const { rows } = await tx.query<{ two: number }>("SELECT 1 + $1::int AS two", [1]);
        return ok(rows[0]);
      },
    });
    const phases = once.phases({
      name: "native.phases",
      version: 1,
      async run(op) {
        const two = await op.phase("read", async ({ tx }) => {
          expectTypeOf(tx).toEqualTypeOf<PoolClient>();
          return (await tx.query<{ two: number }>("SELECT 2 AS two")).rows[0]?.two ?? 0;
        });
        expectTypeOf(two).toEqualTypeOf<number>();
        return op.complete(async () => ok({ two }));
      },
    });
    await once.start();
    for (const one of [operation, phases]) {
      expect(answerOf(await once.run(one, request("native")))).toContain('{"two":2}');
    }
  });

  it("postgres-js: a TransactionSql, template strings and all", async () => {
    const once = createOncekey({ store: postgresStore(await postgresJsDriver()) });
    const operation = once.transaction({
      name: "native",
      version: 1,
      async run({ tx }) {
        expectTypeOf(tx).toEqualTypeOf<TransactionSql>();
        const [row] = await tx<{ two: number }[]>`SELECT 1 + ${1}::int AS two`;
        return created("/native/1", row ?? {});
      },
    });
    await once.start();
    expect(answerOf(await once.run(operation, request("native")))).toContain('{"two":2}');
  });

  it("PGlite: its Transaction", async () => {
    const once = createOncekey({ store: postgresStore(await pgliteDriver()) });
    const operation = once.transaction({
      name: "native",
      version: 1,
      async run({ tx }) {
        expectTypeOf(tx).toEqualTypeOf<Transaction>();
        const { rows } = await tx.query<{ two: number }>("SELECT 1 + $1::int AS two", [1]);
        return ok(rows[0]);
      },
    });
    await once.start();
    expect(answerOf(await once.run(operation, request("native")))).toContain('{"two":2}');
  });
});
