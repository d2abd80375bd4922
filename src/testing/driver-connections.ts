import assert from "node:assert/strict";
import { TransactionAbandoned } from "../stores/postgres/driver-port.ts";
import {
  assertUsable,
  count,
  createTable,
  type DriverCase,
  type DriverHarness,
  gate,
  pidOf,
  stateOf,
} from "./driver-harness.ts";

async function lostInsideBody(harness: DriverHarness): Promise<void> {
  const { driver } = harness;
  const table = await createTable(harness);
  const cut = driver.transaction(async (tx) => {
    await driver.run(`INSERT INTO ${table} (id) VALUES (1)`, [], tx);
    await harness.admin(`SELECT pg_terminate_backend(${await pidOf(harness, tx)}) AS done`);
    await driver.run(`INSERT INTO ${table} (id) VALUES (2)`, [], tx);
  });
  await assert.rejects(cut);
  assert.equal(await count(harness, table), 0);
}

async function lostBeforeCommit(harness: DriverHarness): Promise<void> {
  const { driver } = harness;
  const table = await createTable(harness);
  const cut = driver.transaction(async (tx) => {
    await driver.run(`INSERT INTO ${table} (id) VALUES (1)`, [], tx);
    await harness.admin(`SELECT pg_terminate_backend(${await pidOf(harness, tx)}) AS done`);
  });
  await assert.rejects(cut);
  assert.equal(await count(harness, table), 0);
}

/** Connections that break, and bodies that are given up. */
export const connectionLoss: readonly DriverCase[] = [
  {
    name: "rejects when the connection is lost inside the body, with nothing committed",
    run: async (harness) => void (await lostInsideBody(harness)),
  },
  {
    name: "rejects when the connection is lost between the body and COMMIT, with nothing committed",
    run: async (harness) => void (await lostBeforeCommit(harness)),
  },
  {
    name: "keeps the pool usable after a connection was lost while a statement was on its way",
    async run(harness) {
      await lostInsideBody(harness);
      await assertUsable(harness);
      await lostBeforeCommit(harness);
      await assertUsable(harness);
    },
  },
  {
    name: "rejects without a verdict of the server when the answer to COMMIT is lost, and keeps the pool usable",
    async run(harness) {
      const { driver } = harness;
      const table = await createTable(harness);
      const cut = driver.transaction(async (tx) => {
        await driver.run(`INSERT INTO ${table} (id) VALUES (1)`, [], tx);
        harness.loseNextCommitAnswer();
      });
      assert.doesNotMatch(String(await stateOf(cut)), /^(?:2|4)[0-9A-Z]{4}$/);
      assert.equal(await count(harness, table), 1);
      await assertUsable(harness);
    },
  },
  {
    name: "does not end the process when an idle connection breaks",
    async run(harness) {
      const pid = await pidOf(harness, undefined);
      await harness.admin(`SELECT pg_terminate_backend(${pid}) AS done`);
      const alive = async () =>
        Number((await harness.admin(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE pid = ${pid}`))[0]?.n);
      while ((await alive()) > 0);
      await assertUsable(harness);
    },
  },
  {
    name: "rolls back a body that is given up, and never hands its connection to anybody else",
    async run(harness) {
      const { driver } = harness;
      const table = await createTable(harness);
      const resumed = gate();
      let late: Promise<unknown> = Promise.resolve();
      const abandoned = driver.transaction(async (tx) => {
        await driver.run(`INSERT INTO ${table} (id) VALUES (1)`, [], tx);
        late = resumed.opened.then(() => driver.run(`INSERT INTO ${table} (id) VALUES (2)`, [], tx));
        late.catch(() => {});
        throw new TransactionAbandoned("given up");
      });
      await assert.rejects(abandoned, TransactionAbandoned);
      await driver.transaction(async (tx) => {
        await driver.run(`INSERT INTO ${table} (id) VALUES (3)`, [], tx);
        resumed.open();
        await assert.rejects(late);
      });
      assert.deepEqual(await harness.admin(`SELECT id FROM ${table}`), [{ id: 3 }]);
      await assertUsable(harness);
    },
  },
];
