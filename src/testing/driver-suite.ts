import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { SqlRow } from "../stores/postgres/driver-port.ts";
import { type Driver, TransactionAbandoned } from "../stores/postgres/driver-port.ts";
import { defineSuite, type SuiteCase, type SuiteHarness } from "./suite.ts";

/** What a driver brings to its contract suite: itself, on a database that it may create tables in. */
export interface DriverHarness extends SuiteHarness {
  readonly driver: Driver<unknown>;
  /** Runs SQL on the transaction the way business code would: by the client's own methods. */
  execute(tx: unknown, sql: string): Promise<void>;
  /** Runs SQL on another connection, in a commit of its own. */
  admin(sql: string): Promise<readonly SqlRow[]>;
  /** Arms the network: the next COMMIT is carried out and its answer lost, with the connection. */
  loseNextCommitAnswer(): void;
}

type DriverCase = SuiteCase<DriverHarness>;

const PID = "SELECT pg_backend_pid()::int AS pid";

async function createTable({ admin }: DriverHarness): Promise<string> {
  const table = `suite_${randomBytes(6).toString("hex")}`;
  await admin(`CREATE TABLE ${table} (id int PRIMARY KEY, value int NOT NULL DEFAULT 0)`);
  return table;
}

async function count({ admin }: DriverHarness, table: string): Promise<number> {
  return Number((await admin(`SELECT count(*)::int AS rows FROM ${table}`))[0]?.rows);
}

/** The SQLSTATE where the port promises it. */
async function stateOf(failing: Promise<unknown>): Promise<unknown> {
  const error = await failing.then(
    () => assert.fail("it must reject"),
    (raised: unknown) => raised,
  );
  return (error as { code?: unknown }).code;
}

async function pidOf({ driver }: DriverHarness, tx: unknown): Promise<number> {
  return Number((await driver.run(PID, [], tx))[0]?.pid);
}

/**
 * Every connection of the pool, and one more turn, still works. A connection that the server has just ended may be handed
 * out once more before its client has noticed; each may fail so once, and no more.
 */
async function assertUsable(harness: DriverHarness): Promise<void> {
  const rounds = (harness.driver.connections ?? 1) + 1;
  for (let round = 1; ; round += 1) {
    try {
      return await useAll(harness.driver, rounds);
    } catch (error) {
      if (round === rounds) throw error;
    }
  }
}

async function useAll(driver: Driver<unknown>, turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) {
    assert.equal(await driver.transaction(async () => "usable"), "usable");
  }
  await Promise.all(Array.from({ length: turns }, () => driver.run(PID, [])));
}

function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

const values: readonly DriverCase[] = [
  {
    name: "carries bytes, text, numbers, booleans and null to the server and back",
    async run({ driver }) {
      const bytes = new Uint8Array([0, 1, 127, 128, 255, 92, 39]);
      const text = 'quote \' backslash \\ emoji 🧾 "double"';
      const [row] = await driver.run(
        "SELECT $1::bytea AS bytes, $2::text AS text, $3::int AS int, $4::float8 AS float, $5::boolean AS yes, $6::text AS none",
        [bytes, text, 42, 1.5, true, null],
      );
      assert.ok(row?.bytes instanceof Uint8Array);
      assert.deepEqual([...row.bytes], [...bytes]);
      assert.deepEqual([row.text, row.int, row.float, row.yes, row.none], [text, 42, 1.5, true, null]);
    },
  },
  {
    name: "keeps empty bytes, empty text and null apart",
    async run({ driver }) {
      const sql = "SELECT $1::bytea AS bytes, $2::text AS text, $3::bytea AS none, $4::boolean AS no";
      const [row] = await driver.run(sql, [new Uint8Array(), "", null, false]);
      assert.ok(row?.bytes instanceof Uint8Array);
      assert.deepEqual([row.bytes.length, row.text, row.none, row.no], [0, "", null, false]);
    },
  },
  {
    name: "carries bigint as text, without losing a digit",
    async run({ driver }) {
      const sql = "SELECT ($1::bigint + 0)::text AS big, (-9223372036854775808)::text AS least";
      const [row] = await driver.run(sql, ["9007199254740993"]);
      assert.deepEqual([row?.big, row?.least], ["9007199254740993", "-9223372036854775808"]);
    },
  },
  {
    name: "returns column names as the statement spells them, rows in their order, and no rows as none",
    async run({ driver }) {
      const rows = await driver.run("SELECT n AS row_number_of FROM generate_series(1, $1::int) AS n ORDER BY n", [3]);
      assert.deepEqual(
        rows.map((row) => row.row_number_of),
        [1, 2, 3],
      );
      assert.equal((await driver.run("SELECT 1 WHERE $1::boolean", [false])).length, 0);
    },
  },
  {
    name: "carries a megabyte of bytes",
    async run({ driver }) {
      const bytes = new Uint8Array(randomBytes(1_048_576));
      const [row] = await driver.run("SELECT $1::bytea AS bytes", [bytes]);
      assert.equal(Buffer.compare(row?.bytes as Uint8Array, bytes), 0);
    },
  },
];

const committing: readonly DriverCase[] = [
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

const failing: readonly DriverCase[] = [
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

const connectionLoss: readonly DriverCase[] = [
  {
    name: "rejects when the connection is lost inside the body, with nothing committed and the pool usable",
    async run(harness) {
      const { driver } = harness;
      const table = await createTable(harness);
      const cut = driver.transaction(async (tx) => {
        await driver.run(`INSERT INTO ${table} (id) VALUES (1)`, [], tx);
        await harness.admin(`SELECT pg_terminate_backend(${await pidOf(harness, tx)}) AS done`);
        await driver.run(`INSERT INTO ${table} (id) VALUES (2)`, [], tx);
      });
      await assert.rejects(cut);
      assert.equal(await count(harness, table), 0);
      await assertUsable(harness);
    },
  },
  {
    name: "rejects when the connection is lost between the body and COMMIT, with nothing committed and the pool usable",
    async run(harness) {
      const { driver } = harness;
      const table = await createTable(harness);
      const cut = driver.transaction(async (tx) => {
        await driver.run(`INSERT INTO ${table} (id) VALUES (1)`, [], tx);
        await harness.admin(`SELECT pg_terminate_backend(${await pidOf(harness, tx)}) AS done`);
      });
      await assert.rejects(cut);
      assert.equal(await count(harness, table), 0);
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

const grouped = (group: string, cases: readonly DriverCase[]): DriverCase[] =>
  cases.map((entry) => ({ ...entry, group }));

/**
 * The contract of a `Driver`: values survive the way there and back, a transaction commits whole or not at all, the
 * server's SQLSTATE is visible, and a lost connection is an error that leaves the pool usable.
 */
export const driverSuite = defineSuite<DriverHarness>("driver", [
  ...grouped("values", values),
  ...grouped("transactions", committing),
  ...grouped("errors", failing),
  ...grouped("lost connections", connectionLoss),
]);
