import type { RunKind } from "oncekey";
import type { Driver } from "oncekey/postgres";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { gate } from "../../support/gate.ts";
import { passTime } from "../../support/postgres.ts";
import { answerOf, type Hook, type Orders, type OrdersOptions, orders, RUN_KINDS, tally } from "./orders.ts";
import { effects, entries } from "./rows.ts";

/** Where a suite runs: a database, and a new driver (with a pool of its own) for each instance. */
export interface RaceWorld {
  /** The isolation level that every transaction must turn out to have. */
  readonly isolation?: string;
  /** For looking at the database from outside, past any pooler. */
  readonly url: string;
  driver(): Driver<unknown>;
}

const INSTANCES = 4;
const KEYS = 8;

/** What must hold on every isolation level, through every pooler and driver: instances of one service race on one database. */
export function raceSuite(name: string, makeWorld: () => Promise<RaceWorld>): void {
  describe(name, () => {
    let world: RaceWorld;
    let fleet: Orders<unknown>[];
    const instance = (more: Partial<OrdersOptions<unknown>> = {}) => orders({ driver: world.driver(), ...more });
    const held = (place: string) => holding(place, instance);

    beforeAll(async () => {
      world = await makeWorld();
      fleet = await Promise.all(Array.from({ length: INSTANCES }, () => instance()));
    });

    it("runs on the isolation level that it says", async () => {
      const [row] = await world.driver().run("SHOW transaction_isolation", []);
      expect(row).toEqual({ transaction_isolation: world.isolation ?? "read committed" });
    });

    describe.each(RUN_KINDS)("a %s operation", (kind) => {
      it("runs once a key, with one answer, whoever asks at the same time", async () => {
        for (let round = 0; round < KEYS; round++) {
          const key = `${kind}-race-${round}`;
          const results = await Promise.all([...fleet, ...fleet].map(({ run }) => run(kind, key)));
          expect(tally(results)).toEqual({ completed: 1, replayed: 2 * INSTANCES - 1 });
          expect(new Set(results.map(answerOf)).size).toBe(1);
          expect(await effects(world.url, key)).toHaveLength(1);
        }
      });

      it("never runs a second payload under a key", async () => {
        for (let round = 0; round < KEYS; round++) {
          const key = `${kind}-mixed-${round}`;
          const amount = (index: number) => (index === round % INSTANCES ? 6 : 5);
          const results = await Promise.all(fleet.map(({ run }, index) => run(kind, key, { amount: amount(index) })));
          const rows = await effects(world.url, key);
          expect(rows).toHaveLength(1);
          for (const [index, result] of results.entries()) {
            expect(result.kind === "mismatch").toBe(amount(index) !== rows[0]?.amount);
          }
        }
      });

      it("refuses another payload at once while the first runs elsewhere, and an exact duplicate waits", async () => {
        const key = `${kind}-running`;
        const [here] = fleet as [Orders<unknown>];
        const elsewhere = await held({ transaction: "transaction", phases: "between", capture: "capture" }[kind]);
        const first = elsewhere.run(kind, key);
        await elsewhere.entered;
        expect((await here.run(kind, key, { amount: 6 })).kind).toBe("mismatch");
        expect((await here.run(kind, key, { waitMs: 30 })).kind).toBe("busy");
        const duplicate = here.run(kind, key);
        elsewhere.finish();
        expect((await first).kind).toBe("completed");
        expect(answerOf(await duplicate)).toBe(answerOf(await first));
        expect(await effects(world.url, key)).toHaveLength(1);
      });

      it("keeps the same key of another tenant or client apart", async () => {
        const key = `${kind}-shared`;
        const [here] = fleet as [Orders<unknown>];
        const scopes = [
          { tenant: "acme", client: "app" },
          { tenant: "acme", client: "batch" },
          { tenant: "globex", client: "app" },
          { tenant: "globex", client: null },
        ];
        const results = await Promise.all(
          scopes.map((scope, index) => here.run(kind, key, { scope, amount: index + 1 })),
        );
        expect(tally(results)).toEqual({ completed: scopes.length });
        expect(await effects(world.url, key)).toHaveLength(scopes.length);
      });

      it("runs anew, once, after retention", async () => {
        const key = `${kind}-expired`;
        const [here] = fleet as [Orders<unknown>];
        await here.run(kind, key);
        await passTime(world.url, 25 * 3_600_000);
        const results = await Promise.all(fleet.map(({ run }) => run(kind, key, { amount: 7 })));
        expect(tally(results)).toEqual({ completed: 1, replayed: INSTANCES - 1 });
        expect((await effects(world.url, key)).map(({ amount }) => amount).sort()).toEqual([5, 7]);
      });
    });

    it("a lapsed phases entry is resumed by one of the racers, from its recovery point", async () => {
      const key = "phases-lapsed";
      const dying = await held("between");
      const abandoned = dying.run("phases", key);
      await dying.entered;
      await passTime(world.url, 60_000);
      const results = await Promise.all(fleet.map(({ run }) => run("phases", key)));
      expect(tally(results)).toEqual({ completed: 1, replayed: INSTANCES - 1 });
      expect(new Set(results.map(answerOf)).size).toBe(1);
      expect(await effects(world.url, key)).toHaveLength(1);
      dying.finish();
      // The old owner commits nothing more; whether it hears of that from the fence or from a renewal is all one.
      expect((await abandoned).kind).toBe("lease_lost");
      expect(await effects(world.url, key)).toHaveLength(1);
      const [entry] = (await entries(world.url)).filter((one) => one.key === key);
      expect(entry).toMatchObject({ state: "succeeded", attempt: 2 });
    });

    it("different keys that write the same rows are serialised, not refused: each counts once", async () => {
      const counting: Hook<unknown> = async (place, _order, tx) => {
        if (tx === undefined || place === "phase") return;
        await driver.run("UPDATE counter SET value = value + 1", [], tx);
      };
      const driver = world.driver();
      await driver.run("CREATE TABLE IF NOT EXISTS counter (value int NOT NULL)", []);
      await driver.run("INSERT INTO counter (value) VALUES (0)", []);
      const counters = await Promise.all(Array.from({ length: INSTANCES }, () => orders({ driver, at: counting })));
      for (const kind of ["transaction", "phases"] as const) await insist(counters, kind);
      const [row] = await driver.run("SELECT value FROM counter", []);
      expect(row).toEqual({ value: 2 * INSTANCES });
    });
  });
}

/** Contention may outlast the engine's own tries; then the client retries with the same key, as it is told. */
async function insist(counters: readonly Orders<unknown>[], kind: RunKind): Promise<void> {
  await Promise.all(
    counters.map(({ run }, index) =>
      vi.waitUntil(async () => (await run(kind, `${kind}-count-${index}`)).kind !== "contention", {
        timeout: 30_000,
        interval: 10,
      }),
    ),
  );
}

/** An instance that blocks the first time it comes to the place. */
async function holding(place: string, instance: (more: Partial<OrdersOptions<unknown>>) => Promise<Orders<unknown>>) {
  const entered = gate();
  const finish = gate();
  const at: Hook<unknown> = async (reached) => {
    if (reached !== place) return;
    entered.open();
    await finish.promise;
  };
  const { run } = await instance({ at });
  return { run, entered: entered.promise, finish: finish.open };
}
