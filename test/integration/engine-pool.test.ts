import type { RunKind } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import type { Driver } from "oncekey/postgres";
import postgres from "postgres";
import { describe, expect, it, vi } from "vitest";
import { gate } from "../support/gate.ts";
import { atEnd, testPool } from "../support/postgres.ts";
import { answerOf, type Order, orders, type Place, RUN_KINDS, tally } from "./support/orders.ts";
import { effects, entries, ordersDatabase } from "./support/rows.ts";

/** Short, but longer than a busy machine may keep a renewal waiting. */
const LEASE_MS = 1_500;
const WAIT = { timeout: 30_000, interval: 25 };

const DRIVERS: Readonly<Record<string, (url: string, max: number) => Driver<unknown>>> = {
  pg: (url, max) => fromPg(testPool(url, { max })) as Driver<unknown>,
  "postgres-js": (url, max) => {
    const sql = postgres(url, { max, onnotice: () => {} });
    atEnd(() => sql.end());
    return fromPostgresJs(sql) as Driver<unknown>;
  },
};

/** Resolves once every entry of the kind has outlived `leases` leases, all of them still held by their first attempt. */
async function outlived(url: string, kind: RunKind, count: number, leases: number): Promise<void> {
  await vi.waitUntil(async () => {
    const held = (await entries(url)).filter((entry) => entry.run_kind === kind);
    return held.length === count && held.every((entry) => Number(entry.leased_for_ms) > leases * LEASE_MS);
  }, WAIT);
}

/** Blocks the runs of a key inside their business code. */
function slowAt(key: string) {
  const entered = gate();
  const finish = gate();
  const at = async (_place: Place, { order }: Order) => {
    if (order !== key) return;
    entered.open();
    await finish.promise;
  };
  return { entered, finish, at };
}

describe.each(Object.entries(DRIVERS))("a pool of two connections of %s", (_name, driver) => {
  it.each(RUN_KINDS)("serves 50 duplicates of one slow %s request, and renews its lease meanwhile", async (kind) => {
    const url = await ordersDatabase();
    const { entered, finish, at } = slowAt("slow");
    const { run } = await orders({ driver: driver(url, 2), at, once: { leaseMs: LEASE_MS } });
    const first = run(kind, "slow");
    await entered.promise;
    const duplicates = Array.from({ length: 49 }, () => run(kind, "slow"));
    if (kind !== "transaction") await outlived(url, kind, 1, 2);
    // Neither the slow one nor its duplicates fill the pool: somebody else's request gets through.
    expect((await run("capture", "other")).kind).toBe("completed");
    finish.open();
    const results = await Promise.all([first, ...duplicates]);
    expect(tally(results)).toEqual({ completed: 1, replayed: 49 });
    expect(new Set(results.map(answerOf)).size).toBe(1);
    expect(await effects(url, "slow")).toHaveLength(1);
  });

  it.each(RUN_KINDS)("lets %s duplicates of another process wait without holding one of them", async (kind) => {
    const url = await ordersDatabase();
    const { entered, finish, at } = slowAt("slow");
    const elsewhere = await orders({ driver: driver(url, 2), at });
    const here = await orders({ driver: driver(url, 2) });
    const first = elsewhere.run(kind, "slow");
    await entered.promise;
    const duplicates = Array.from({ length: 50 }, () => here.run(kind, "slow"));
    for (const other of RUN_KINDS) expect((await here.run(other, "other")).kind).toBe("completed");
    finish.open();
    expect(tally(await Promise.all(duplicates))).toEqual({ replayed: 50 });
    expect(new Set([await first, ...(await Promise.all(duplicates))].map(answerOf)).size).toBe(1);
    expect(await effects(url, "slow")).toHaveLength(1);
  });
});

describe("leases while business holds connections (Q6)", () => {
  it("are kept when phases hold every connection that they may have, and more phases queue for one", async () => {
    const url = await ordersDatabase();
    const finish = gate();
    const at = (place: Place) => (place === "phase" ? finish.promise : undefined);
    const pool = testPool(url, { max: 3 });
    const { run } = await orders({ driver: fromPg(pool), at, once: { leaseMs: LEASE_MS } });
    const running = Array.from({ length: 6 }, (_, index) => run("phases", `queued-${index}`));
    await outlived(url, "phases", 6, 2);
    finish.open();
    expect(tally(await Promise.all(running))).toEqual({ completed: 6 });
    for (const entry of await entries(url)) expect(entry).toMatchObject({ state: "succeeded", attempt: 1 });
    expect(await effects(url)).toHaveLength(6);
  });

  it.each(["phases", "capture"] as const)(
    "are kept over the control connection when business takes the whole pool from under a %s run",
    async (kind) => {
      const url = await ordersDatabase();
      const place = kind === "phases" ? "between" : "capture";
      const entered = gate();
      const finish = gate();
      const at = async (reached: Place) => {
        if (reached !== place) return;
        entered.open();
        await finish.promise;
      };
      const pool = testPool(url, { max: 2 });
      const control = fromPg(testPool(url, { max: 1 }));
      const { run } = await orders({ driver: fromPg(pool), control, at, once: { leaseMs: LEASE_MS } });
      const running = run(kind, "starved");
      await entered.promise;
      const taken = [await pool.connect(), await pool.connect()];
      await outlived(url, kind, 1, 2);
      for (const client of taken) client.release();
      finish.open();
      expect((await running).kind).toBe("completed");
      expect(await entries(url)).toMatchObject([{ state: "succeeded", attempt: 1 }]);
      expect(await effects(url)).toHaveLength(1);
    },
  );
});
