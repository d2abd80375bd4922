import { randomUUID } from "node:crypto";
import { type Store, StoreFailure } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import { type Driver, postgresStore } from "oncekey/postgres";
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { passTime, query, sharedServer, testPool } from "../support/postgres.ts";
import { COMMIT, type HowLost, type LossyProxy, lossyProxy } from "./support/lossy-proxy.ts";
import { answerOf, type Orders, type OrdersOptions, orders } from "./support/orders.ts";
import { effects, entries, ordersDatabase } from "./support/rows.ts";

const WAIT = { timeout: 20_000, interval: 20 };
const LEASE_MS = 1_000;
/** While a run finds out what became of its COMMIT its lease may run out: nobody knows, either way. */
const UNKNOWN = ["commit_unknown", "lease_lost"];
const HOW: readonly HowLost[] = ["answer", "message", "in_flight"];

const CLAIM = /INSERT INTO oncekey\.entry [\s\S]* ON CONFLICT \(id\) DO NOTHING/;
const COMPLETE = /UPDATE oncekey\.entry\s+SET\s+state = \$3::text,\s+status/;

let url: string;
let proxy: LossyProxy;
const closings: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  url = await ordersDatabase();
  proxy = await lossyProxy((await sharedServer()).port);
});

afterAll(async () => {
  await Promise.all(closings.map((close) => close()));
  await proxy.close();
});

const DRIVERS: Readonly<Record<string, () => Driver<unknown>>> = {
  pg: () => {
    const pool = new pg.Pool({ connectionString: proxy.urlOf(url), max: 4 });
    closings.push(() => pool.end());
    return fromPg(pool) as Driver<unknown>;
  },
  "postgres-js": () => {
    // Without named statements, so that every COMMIT travels as a word that the proxy can read.
    const sql = postgres(proxy.urlOf(url), { max: 4, prepare: false, onnotice: () => {} });
    closings.push(() => sql.end({ timeout: 1 }));
    return fromPostgresJs(sql) as Driver<unknown>;
  },
};

/** The instance whose network loses things, and another one on a good network, to which the client turns next. */
async function pair(driver: () => Driver<unknown>, more: Partial<OrdersOptions<unknown>> = {}) {
  const options = { once: { leaseMs: LEASE_MS }, ...more };
  const losing = await orders({ driver: driver(), ...options });
  const other = await orders({ driver: fromPg(testPool(url)) as Driver<unknown> });
  return { losing, other };
}

const entryOf = async (key: string) => (await entries(url)).find((entry) => entry.key === key);

/** The client tries again until there is an answer. */
async function answered(other: Orders<unknown>, kind: "transaction" | "phases" | "capture", key: string) {
  return vi.waitUntil(async () => {
    const result = await other.run(kind, key);
    return result.kind === "completed" || result.kind === "replayed" ? result : undefined;
  }, WAIT);
}

describe.each(Object.entries(DRIVERS))("when the connection of %s is lost", (name, driver) => {
  describe("at the COMMIT of a transaction (V16)", () => {
    it("an answer that was lost is found out by the row: one effect, one answer", async () => {
      const key = `${name}-tx-answer`;
      const { losing, other } = await pair(driver);
      proxy.loseNext(COMMIT, "answer");
      const result = await losing.run("transaction", key);
      // The look-up after the loss may itself fail; then nothing is claimed.
      expect(["completed", "commit_unknown"]).toContain(result.kind);
      const retry = await other.run("transaction", key);
      expect(retry.kind).toBe("replayed");
      if (result.kind === "completed") expect(answerOf(result)).toBe(answerOf(retry));
      expect(await effects(url, key)).toHaveLength(1);
    });

    it("a COMMIT that never arrived is not called done, and the retry runs", async () => {
      const key = `${name}-tx-message`;
      const { losing, other } = await pair(driver);
      proxy.loseNext(COMMIT, "message");
      expect(await losing.run("transaction", key)).toEqual({
        kind: "commit_unknown",
        retryAfterMs: expect.any(Number),
      });
      const retry = await other.run("transaction", key);
      expect(retry.kind).toBe("completed");
      expect(answerOf(await losing.run("transaction", key))).toBe(answerOf(retry));
      expect(await effects(url, key)).toHaveLength(1);
    });

    it("one that is still on its way keeps its locks: the retry waits and gets its answer", async () => {
      const key = `${name}-tx-in-flight`;
      const { losing, other } = await pair(driver);
      const loss = proxy.loseNext(COMMIT, "in_flight");
      expect((await losing.run("transaction", key)).kind).toBe("commit_unknown");
      expect(await effects(url, key)).toHaveLength(0);
      expect((await other.run("transaction", key, { waitMs: 100 })).kind).toBe("busy");
      expect((await other.run("transaction", key, { amount: 6 })).kind).toBe("mismatch");
      const retry = other.run("transaction", key);
      loss.arrive();
      expect((await retry).kind).toBe("replayed");
      expect(await effects(url, key)).toHaveLength(1);
    });
  });

  describe.each(HOW)("at the claim (%s lost)", (how) => {
    it.each(["phases", "capture"] as const)(
      "a %s run claims again with the same fence, and runs once",
      async (kind) => {
        const key = `${name}-${kind}-claim-${how}`;
        const { losing, other } = await pair(driver, { once: {} });
        const loss = proxy.loseNext(CLAIM, how);
        const result = await losing.run(kind, key);
        expect(result.kind).toBe("completed");
        loss.arrive();
        expect(answerOf(await other.run(kind, key))).toBe(answerOf(result));
        expect(await effects(url, key)).toHaveLength(1);
        expect(await entryOf(key)).toMatchObject({ state: "succeeded", attempt: 1 });
      },
    );
  });

  describe.each(HOW)("at the COMMIT of a phase (%s lost)", (how) => {
    it("nothing is called done; a retry goes on from what is really recorded", async () => {
      const key = `${name}-phase-${how}`;
      const { losing, other } = await pair(driver);
      const loss = proxy.loseNext(COMMIT, how);
      expect(UNKNOWN).toContain((await losing.run("phases", key)).kind);
      await vi.waitUntil(async () => (await entryOf(key))?.lapsed === true, WAIT);
      if (how === "in_flight") expect((await other.run("phases", key, { waitMs: 0 })).kind).toBe("contention");
      loss.arrive();
      expect((await answered(other, "phases", key)).kind).toBe("completed");
      expect(await effects(url, key)).toHaveLength(1);
      expect(await entryOf(key)).toMatchObject({ state: "succeeded", attempt: 2 });
    });
  });

  describe.each(HOW)("at the completing COMMIT of phases (%s lost)", (how) => {
    it("there is one completion and one answer, whoever gives it", async () => {
      const key = `${name}-completing-${how}`;
      const armed = { loss: { arrive() {} } };
      const at: OrdersOptions<unknown>["at"] = (place) => {
        if (place === "between") armed.loss = proxy.loseNext(COMMIT, how);
      };
      const losing = await orders({ driver: driver(), at, once: { leaseMs: LEASE_MS } });
      const { other } = await pair(driver);
      const result = await losing.run("phases", key);
      expect(how === "answer" ? ["completed", ...UNKNOWN] : UNKNOWN).toContain(result.kind);
      await vi.waitUntil(async () => (await entryOf(key))?.lapsed !== false, WAIT);
      armed.loss.arrive();
      const retry = await answered(other, "phases", key);
      if (result.kind === "completed") expect(answerOf(retry)).toBe(answerOf(result));
      expect(answerOf(await losing.run("phases", key))).toBe(answerOf(retry));
      const rows = await query(url, `SELECT kind FROM effect WHERE key = '${key}' ORDER BY kind`);
      expect(rows).toEqual([{ kind: "phases" }, { kind: "settled" }]);
    });
  });

  describe.each(HOW)("at the completion of a captured run (%s lost)", (how) => {
    it("the completion is sent again: the effect is recorded, and the handler runs once", async () => {
      const key = `${name}-captured-${how}`;
      const { losing, other } = await pair(driver, { once: {} });
      const loss = proxy.loseNext(COMPLETE, how);
      const result = await losing.run("capture", key);
      expect(result.kind).toBe("completed");
      loss.arrive();
      expect(answerOf(await other.run("capture", key))).toBe(answerOf(result));
      expect(await effects(url, key)).toHaveLength(1);
    });
  });

  describe.each(["refuse", "run"] as const)(
    "for good, after a captured handler began (onStoreDown: %s)",
    (onStoreDown) => {
      /** The network goes when the handler has had its effect; what it does next is the test's. */
      async function cutInHandler(then: () => void) {
        const key = `${name}-gone-${onStoreDown}-${randomUUID()}`;
        const handled = { times: 0 };
        const at: OrdersOptions<unknown>["at"] = (place) => {
          if (place === "handling") handled.times++;
          if (place !== "capture") return;
          proxy.cut();
          then();
        };
        const losing = await orders({ driver: driver(), at, onStoreDown });
        return { key, handled, losing };
      }

      async function needsRecovery(key: string): Promise<void> {
        await passTime(url, 120_000);
        const { run } = await orders({ driver: fromPg(testPool(url)) });
        expect((await run("capture", key)).kind).toBe("unknown");
        expect(await effects(url, key)).toHaveLength(1);
        expect(await entryOf(key)).toMatchObject({ state: "needs_recovery", attempt: 1 });
      }

      it("an answer that cannot be recorded is not called done, and the handler does not run a second time", async () => {
        const { key, handled, losing } = await cutInHandler(() => {});
        const result = await losing.run("capture", key).finally(() => proxy.mend());
        expect(result.kind).toBe("commit_unknown");
        expect(handled.times).toBe(1);
        await needsRecovery(key);
      });

      it("a throw is raised as it is, and the handler does not run a second time", async () => {
        const { key, handled, losing } = await cutInHandler(() => {
          throw new Error("boom");
        });
        await expect(losing.run("capture", key).finally(() => proxy.mend())).rejects.toThrow("boom");
        expect(handled.times).toBe(1);
        await needsRecovery(key);
      });
    },
  );
});

it("a completion that cannot be confirmed is not taken for a store that was down from the start", async () => {
  const key = "unconfirmed";
  const store: Store<unknown> = Object.create(postgresStore(fromPg(testPool(url)) as Driver<unknown>));
  const lost = () => Promise.reject(new StoreFailure("unavailable", "lost"));
  const complete = store.complete.bind(store);
  let completions = 0;
  // The first answer is lost; the second says "not in progress any more"; then the look-up fails as well.
  store.complete = async (...completion) => {
    const matched = await complete(...completion);
    store.read = lost;
    return ++completions === 1 ? lost() : matched;
  };
  let handled = 0;
  const at: OrdersOptions<unknown>["at"] = (place) => void (place === "handling" && handled++);
  const driver = fromPg(testPool(url)) as Driver<unknown>;
  const { run } = await orders({ driver, store, at, onStoreDown: "run" });
  expect((await run("capture", key)).kind).toBe("commit_unknown");
  expect(handled).toBe(1);
  expect(await effects(url, key)).toHaveLength(1);
});
