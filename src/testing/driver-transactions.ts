import assert from "node:assert/strict";
import { assertUsable, count, createTable, type DriverCase, gate } from "./driver-harness.ts";

/** BEGIN, COMMIT, ROLLBACK, and the pool behind them. */
export const committing: readonly DriverCase[] = [
  {
    name: "commits a statement that runs without a transaction",
    async run(harness) {
      const table = await createTable(harness);
      await harness.driver.run(`INSERT INTO ${table} (id) VALUES ($1::int)`, [1]);
      assert.equal(await count(harness, table), 1);
    },
  },
  {
    name: "commits what the body wrote, by our statements and its own, and returns its value",
    async run(harness) {
      const table = await createTable(harness);
      const value = await harness.driver.transaction(async (tx) => {
        await harness.driver.run(`INSERT INTO ${table} (id) VALUES ($1::int)`, [1], tx);
        await harness.execute(tx, `INSERT INTO ${table} (id) VALUES (2)`);
        return [Promise.resolve("kept as it is"), undefined];
      });
      assert.equal(await count(harness, table), 2);
      assert.equal(Array.isArray(value) && value[0] instanceof Promise, true);
    },
  },
  {
    name: "shows nothing of a transaction to others before its commit",
    async run(harness) {
      const table = await createTable(harness);
      await harness.driver.transaction(async (tx) => {
        await harness.driver.run(`INSERT INTO ${table} (id) VALUES ($1::int)`, [1], tx);
        assert.equal(await count(harness, table), 0);
      });
      assert.equal(await count(harness, table), 1);
    },
  },
  {
    name: "rolls back when the body rejects and raises its error as it is",
    async run(harness) {
      const table = await createTable(harness);
      const thrown = Object.assign(new Error("of the business"), { code: "not_sql" });
      const failing = harness.driver.transaction(async (tx) => {
        await harness.driver.run(`INSERT INTO ${table} (id) VALUES ($1::int)`, [1], tx);
        throw thrown;
      });
      await assert.rejects(failing, (error) => error === thrown);
      assert.equal(await count(harness, table), 0);
      await assertUsable(harness);
    },
  },
  {
    name: "runs transactions at the same time",
    async run({ driver }) {
      const both = gate();
      let inside = 0;
      const meet = async () => {
        inside += 1;
        if (inside === 2) both.open();
        await both.opened;
      };
      await Promise.all([driver.transaction(meet), driver.transaction(meet)]);
      assert.equal(inside, 2);
    },
  },
  {
    name: "gives every connection back, whether transactions commit or fail",
    async run(harness) {
      const { driver } = harness;
      const runs = Array.from({ length: 3 * (driver.connections ?? 4) }, (_, index) =>
        driver.transaction(async (tx) => {
          await driver.run("SELECT 1 / $1::int AS one", [index % 2], tx);
        }),
      );
      const results = await Promise.allSettled(runs);
      assert.deepEqual(
        results.map(({ status }) => status),
        runs.map((_, index) => (index % 2 === 0 ? "rejected" : "fulfilled")),
      );
      await assertUsable(harness);
    },
  },
];
