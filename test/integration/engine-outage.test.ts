import { StoreFailure } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import type { Driver } from "oncekey/postgres";
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { gate } from "../support/gate.ts";
import { passTime, query, startTestServer, type TestServer } from "../support/postgres.ts";
import { answerOf, orders, type Place, RUN_KINDS } from "./support/orders.ts";
import { effects, ordersDatabase } from "./support/rows.ts";

const WAIT = { timeout: 30_000, interval: 50 };
/** Nobody may hang while the database is away. Generous: it bounds, it does not measure. */
const BOUND_MS = 20_000;

let server: TestServer;
let url: string;
const closings: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startTestServer();
  url = await ordersDatabase({ server });
});

afterAll(async () => {
  await Promise.all(closings.map((close) => close()));
  await server.close();
});

const DRIVERS: Readonly<Record<string, () => Driver<unknown>>> = {
  pg: () => {
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    closings.push(() => pool.end());
    return fromPg(pool) as Driver<unknown>;
  },
  "postgres-js": () => {
    const sql = postgres(url, { max: 4, onnotice: () => {} });
    closings.push(() => sql.end({ timeout: 1 }));
    return fromPostgresJs(sql) as Driver<unknown>;
  },
};

async function bounded<T>(running: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const hung = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("It hung while the database was away.")), BOUND_MS);
  });
  return Promise.race([running, hung]).finally(() => clearTimeout(timer));
}

describe.each(Object.entries(DRIVERS))("while the database is stopped, with %s", (name, driver) => {
  it("every kind answers store_unavailable at once, replays included, and serves again when it is back", async () => {
    const { run } = await orders({ driver: driver() });
    const known = new Map<string, string>();
    for (const kind of RUN_KINDS) known.set(kind, answerOf(await run(kind, `${name}-${kind}-known`)));
    await server.stop("immediate");
    for (const kind of RUN_KINDS) {
      for (const key of [`${name}-${kind}-known`, `${name}-${kind}-new`]) {
        const result = await bounded(run(kind, key));
        expect(result).toEqual({ kind: "store_unavailable", retryAfterMs: expect.any(Number) });
      }
    }
    await server.start();
    for (const kind of RUN_KINDS) {
      const served = await vi.waitUntil(async () => {
        const result = await run(kind, `${name}-${kind}-new`);
        return result.kind === "store_unavailable" ? undefined : result;
      }, WAIT);
      expect(served.kind).toBe("completed");
      expect(answerOf(await run(kind, `${name}-${kind}-known`))).toBe(known.get(kind));
      expect(await effects(url, `${name}-${kind}-new`)).toHaveLength(1);
    }
  });

  it("start() says so, and can be called again", async () => {
    await server.stop("immediate");
    const failed = bounded(orders({ driver: driver() }));
    await expect(failed).rejects.toBeInstanceOf(StoreFailure);
    await expect(failed).rejects.toMatchObject({ kind: "unavailable" });
    await server.start();
    const { run } = await orders({ driver: driver() });
    expect((await run("transaction", `${name}-restarted`)).kind).toBe("completed");
  });

  const RUNNING = [
    ["transaction", "transaction", ["store_unavailable"], "completed"],
    ["phases", "phase", ["store_unavailable"], "completed"],
    ["phases", "between", ["store_unavailable"], "completed"],
    ["phases", "complete", ["store_unavailable"], "completed"],
    ["capture", "capture", ["commit_unknown"], "unknown"],
  ] as const;

  it.each(RUNNING)(
    "a %s run that was in its business code (%s) when the server crashed never claims success",
    async (kind, place, answers, retried) => {
      const key = `${name}-${kind}-${place}-running`;
      const entered = gate();
      const finish = gate();
      const at = async (reached: Place) => {
        if (reached !== place) return;
        entered.open();
        await finish.promise;
      };
      const { run } = await orders({ driver: driver(), at });
      const running = run(kind, key);
      await entered.promise;
      await server.stop("immediate");
      finish.open();
      const result = await bounded(running);
      expect(answers).toContain(result.kind);
      await server.start();
      await passTime(url, 10 * 60_000);
      const again = await vi.waitUntil(async () => {
        const retry = await run(kind, key);
        return retry.kind === "store_unavailable" ? undefined : retry;
      }, WAIT);
      expect(again.kind).toBe(retried);
      expect(await effects(url, key)).toHaveLength(1);
      expect(await query(url, `SELECT FROM effect WHERE key = '${key}' AND kind = 'settled'`)).toHaveLength(
        kind === "phases" ? 1 : 0,
      );
    },
  );
});

it("a waiting duplicate is told as well, instead of waiting for an answer that cannot come", async () => {
  const entered = gate();
  const finish = gate();
  const at = async () => {
    entered.open();
    await finish.promise;
  };
  const first = await orders({ driver: DRIVERS.pg?.() as Driver<unknown>, at });
  const other = await orders({ driver: DRIVERS.pg?.() as Driver<unknown> });
  const running = first.run("transaction", "waited-for");
  await entered.promise;
  const waiting = [first.run("transaction", "waited-for"), other.run("transaction", "waited-for")];
  await server.stop("immediate");
  finish.open();
  for (const result of await bounded(Promise.all([running, ...waiting]))) expect(result.kind).toBe("store_unavailable");
  await server.start();
  expect((await other.run("transaction", "waited-for")).kind).toBe("completed");
  expect(await effects(url, "waited-for")).toHaveLength(1);
});
