import { fromPg } from "oncekey/drivers/pg";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { gate } from "../support/gate.ts";
import { query, sharedServer, testPool } from "../support/postgres.ts";
import { lossyProxy } from "./support/lossy-proxy.ts";
import { answerOf, orders, tally } from "./support/orders.ts";
import { effects, ordersDatabase } from "./support/rows.ts";
import { startWorkers, type Worker } from "./support/workers.ts";

const WAIT = { timeout: 30_000, interval: 20 };
const LEASE_MS = 500;

let url: string;

beforeAll(async () => {
  url = await ordersDatabase();
});

const instance = () => orders({ driver: fromPg(testPool(url)) });

describe("a process that is stopped past its lease and continued after another took over", () => {
  const MAX_DURATION_MS = 2_000;
  let zombies: Worker[];
  const living: Worker[] = [];

  beforeAll(async () => {
    zombies = await startWorkers(PLACES.length, { url, leaseMs: LEASE_MS, maxDurationMs: MAX_DURATION_MS });
    living.push(...zombies);
  });

  afterAll(() => Promise.all(living.map((worker) => worker.kill())));

  const PLACES = [
    ["phases", "phase"],
    ["phases", "record_phase:placed:before"],
    // Here it holds the entry's row: only the server's idle time-out lets anybody else in.
    ["phases", "record_phase:placed:after"],
    ["phases", "between"],
    ["phases", "complete"],
    ["phases", "complete:after"],
    ["transaction", "transaction"],
    ["transaction", "insert_finished:after"],
  ] as const;

  it.each(PLACES.map((place, index) => [...place, index] as const))(
    "commits nothing (%s, at %s)",
    async (kind, place, index) => {
      const zombie = zombies[index] as Worker;
      const { run } = await instance();
      const { key, first } = await heldAt(zombie, kind, place);
      zombie.freeze();
      const taken = await vi.waitUntil(async () => {
        const result = await run(kind, key);
        return result.kind === "completed" ? result : undefined;
      }, WAIT);
      zombie.thaw();
      zombie.go();
      const late = await first;
      // It may find out what became of its key, but it did not do it.
      expect(late.kind).not.toBe("completed");
      if (late.kind === "replayed") expect(late.answer).toBe(answerOf(taken));
      const rows = await effects(url, key);
      const recorded = kind === "phases" && ["between", "complete", "complete:after"].includes(place);
      expect(rows).toMatchObject([{ pid: recorded ? zombie.pid : process.pid }]);
      expect(answerOf(await run(kind, key))).toBe(answerOf(taken));
      expect(await query(url, `SELECT FROM effect WHERE key = '${key}' AND kind = 'settled'`)).toHaveLength(
        kind === "phases" ? 1 : 0,
      );
    },
  );
});

const MOST_TRIES = 10;

/** A run that holds at the place. On a busy machine its short lease may be over before it gets there: then a new key. */
async function heldAt(zombie: Worker, kind: "phases" | "transaction", place: string) {
  for (let tried = 1; ; tried++) {
    const key = `stopped-${kind}-${place}-${tried}`;
    const first = zombie.run({ kind, key, holdAt: place });
    const early = await Promise.race([zombie.held(), first]);
    if (early === undefined) return { key, first };
    if (tried === MOST_TRIES) throw new Error(`The run ended before it came to ${place}: ${early.kind}`);
  }
}

describe("a host that is gone without a word (Q5)", () => {
  it.each(["transaction", "phases"] as const)(
    "keeps its %s transaction no longer than maxDurationMs; then a retry runs",
    async (kind) => {
      const key = `silent-${kind}`;
      const proxy = await lossyProxy((await sharedServer()).port);
      const pool = new pg.Pool({ connectionString: proxy.urlOf(url), max: 4 });
      const entered = gate();
      const at = (place: string) => {
        if (place !== "transaction" && place !== "complete") return;
        entered.open();
        return new Promise<void>(() => {});
      };
      const gone = await orders({ driver: fromPg(pool), at, maxDurationMs: 1_000, once: { leaseMs: 3 * LEASE_MS } });
      const first = gone.run(kind, key);
      await entered.promise;
      proxy.goSilent();
      const { run } = await instance();
      expect((await run(kind, key, { waitMs: 0 })).kind).toBe("busy");
      const results = await Promise.all([run(kind, key), run(kind, key)]);
      expect(tally(results)).toEqual({ completed: 1, replayed: 1 });
      expect(await effects(url, key)).toHaveLength(1);
      // Its own client has long been answered: the local deadline needs no network.
      expect((await first).kind).toBe("lease_lost");
      await proxy.close();
      await pool.end();
    },
  );
});
