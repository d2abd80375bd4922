import assert from "node:assert/strict";
import { assertUsable, count, createTable, type DriverCase, gate, stateOf } from "./driver-harness.ts";

/** What the server says, as the port promises to show it. */
export const failing: readonly DriverCase[] = [
  {
    name: "shows 23505 for a unique violation, and 25P02 for what follows it in the transaction",
    async run(harness) {
      const table = await createTable(harness);
      const insert = `INSERT INTO ${table} (id) VALUES (1)`;
      await harness.admin(insert);
      assert.equal(await stateOf(harness.driver.run(insert, [])), "23505");
      const states: unknown[] = [];
      const ended = harness.driver.transaction(async (tx) => {
        states.push(await stateOf(harness.driver.run(insert, [], tx)));
        states.push(await stateOf(harness.driver.run("SELECT 1", [], tx)));
        throw new Error("enough seen");
      });
      await assert.rejects(ended);
      assert.deepEqual(states, ["23505", "25P02"]);
      await assertUsable(harness);
    },
  },
  {
    name: "refuses our last statement after the body swallowed an SQL error",
    async run(harness) {
      const table = await createTable(harness);
      const swallowing = harness.driver.transaction(async (tx) => {
        await harness.driver.run(`INSERT INTO ${table} (id) VALUES (1)`, [], tx);
        await harness.execute(tx, `INSERT INTO ${table} (id) VALUES (1)`).catch(() => {});
        await harness.driver.run(`INSERT INTO ${table} (id) VALUES (2)`, [], tx);
      });
      await assert.rejects(swallowing);
      assert.equal(await count(harness, table), 0);
      await assertUsable(harness);
    },
  },
  {
    name: "rejects where COMMIT was answered with ROLLBACK, although no statement came after the swallowed error",
    async run(harness) {
      const table = await createTable(harness);
      const swallowing = harness.driver.transaction(async (tx) => {
        await harness.driver.run(`INSERT INTO ${table} (id) VALUES (1)`, [], tx);
        await harness.execute(tx, `INSERT INTO ${table} (id) VALUES (1)`).catch(() => {});
      });
      await assert.rejects(swallowing);
      assert.equal(await count(harness, table), 0);
      await assertUsable(harness);
    },
  },
  {
    name: "shows 57014 for a statement that ran into statement_timeout",
    async run({ driver }) {
      const slow = driver.transaction(async (tx) => {
        await driver.run("SELECT set_config('statement_timeout', $1::text, true)", ["30"], tx);
        await driver.run("SELECT pg_sleep(30)::text AS slept", [], tx);
      });
      assert.equal(await stateOf(slow), "57014");
    },
  },
  {
    name: "shows 55P03 for a lock that was not gained in time",
    async run(harness) {
      const { driver } = harness;
      const table = await createTable(harness);
      await driver.transaction(async (holder) => {
        await driver.run(`LOCK TABLE ${table}`, [], holder);
        const waiting = driver.transaction(async (tx) => {
          await driver.run("SELECT set_config('lock_timeout', $1::text, true)", ["30"], tx);
          await driver.run(`LOCK TABLE ${table}`, [], tx);
        });
        assert.equal(await stateOf(waiting), "55P03");
      });
    },
  },
  {
    name: "shows 40001 for a row that changed under REPEATABLE READ",
    async run(harness) {
      const { driver } = harness;
      const table = await createTable(harness);
      await harness.admin(`INSERT INTO ${table} (id) VALUES (1)`);
      const stale = driver.transaction(async (tx) => {
        await driver.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", [], tx);
        await driver.run(`SELECT value FROM ${table}`, [], tx);
        await harness.admin(`UPDATE ${table} SET value = 1`);
        await driver.run(`UPDATE ${table} SET value = 2`, [], tx);
      });
      assert.equal(await stateOf(stale), "40001");
    },
  },
  {
    name: "shows 40P01 to one of two transactions that wait for each other",
    async run(harness) {
      const { driver } = harness;
      const table = await createTable(harness);
      await harness.admin(`INSERT INTO ${table} (id) VALUES (1), (2)`);
      const both = gate();
      let holding = 0;
      const update = (tx: unknown, id: number) => driver.run(`UPDATE ${table} SET value = 1 WHERE id = ${id}`, [], tx);
      const crossing = (first: number, second: number) =>
        driver.transaction(async (tx) => {
          await update(tx, first);
          holding += 1;
          if (holding === 2) both.open();
          await both.opened;
          await update(tx, second);
        });
      const results = await Promise.allSettled([crossing(1, 2), crossing(2, 1)]);
      const lost = results.filter((result) => result.status === "rejected");
      assert.deepEqual(
        lost.map(({ reason }) => reason.code),
        ["40P01"],
      );
    },
  },
];
