import { type Store, StoreFailure } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { expect, it } from "vitest";
import { passTime, query, testPool } from "../support/postgres.ts";
import { AT_WORK_TABLE, atWork } from "./support/at-work.ts";
import { answerOf, orders, tally } from "./support/orders.ts";
import { effects, ordersDatabase } from "./support/rows.ts";
import { startSweeper } from "./support/sweepers.ts";

const ENTRIES = 1_000;
const keys = Array.from({ length: ENTRIES }, (_, n) => `order-${n}`);

/** A store that claims, and then dies: what its instance claims is left in progress. */
function dyingAfterClaims(store: Store<pg.PoolClient>): Store<pg.PoolClient> {
  return { ...store, transaction: () => Promise.reject(new StoreFailure("unavailable", "it died")) };
}

async function leaveLapsed(url: string): Promise<void> {
  const driver = fromPg(testPool(url, { max: 8 }));
  const { run } = await orders({ driver, store: dyingAfterClaims(postgresStore(driver)), kinds: ["phases"] });
  const results = await Promise.all(keys.map((key) => run("phases", key)));
  expect(tally(results)).toEqual({ store_unavailable: ENTRIES });
  await passTime(url, 60_000);
}

it("2 sweepers and 10 retries on 1,000 lapsed entries: each is resumed once, under its own fence, without a deadlock", async () => {
  const url = await ordersDatabase();
  await query(url, AT_WORK_TABLE);
  await leaveLapsed(url);
  const sweepers = await Promise.all([startSweeper(url), startSweeper(url)]);
  const retry = async () => {
    const { run } = await orders({ driver: fromPg(testPool(url, { max: 3 })), kinds: ["phases"], at: atWork });
    const results = [];
    for (const key of keys.toSorted(() => Math.random() - 0.5)) results.push(await run("phases", key));
    return results;
  };
  const results = (await Promise.all(Array.from({ length: 10 }, retry))).flat();
  expect(await Promise.all(sweepers.map(({ stop }) => stop()))).toEqual([[], []]);

  expect(Object.keys(tally(results)).sort()).toEqual(["completed", "replayed"]);
  expect(new Set(results.map(answerOf)).size).toBe(ENTRIES);
  expect(await query(url, "SELECT FROM at_work")).toEqual([]);
  const made = await effects(url);
  expect([made.length, new Set(made.map(({ key }) => key)).size]).toEqual([ENTRIES, ENTRIES]);
  // The retries' and both sweepers'.
  expect(new Set(made.map(({ pid }) => pid)).size).toBe(3);
  // The first owner, and one that went on: nobody else ever took it.
  const [attempts] = await query(
    url,
    "SELECT min(attempt), max(attempt), count(DISTINCT fence)::int AS fences FROM oncekey.entry",
  );
  expect(attempts).toEqual({ min: 2, max: 2, fences: ENTRIES });
  const deadlocks = "SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()";
  expect(await query(url, deadlocks)).toEqual([{ n: 0 }]);
}, 180_000);
