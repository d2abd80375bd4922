import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Driver, SqlRow } from "../stores/postgres/driver-port.ts";
import type { SuiteCase, SuiteHarness } from "./suite.ts";

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

/** A case of the driver suite. */
export type DriverCase = SuiteCase<DriverHarness>;

/** Which server process a connection leads to. */
const PID = "SELECT pg_backend_pid()::int AS pid";

/** A table of the case's own. */
export async function createTable({ admin }: DriverHarness): Promise<string> {
  const table = `suite_${randomBytes(6).toString("hex")}`;
  await admin(`CREATE TABLE ${table} (id int PRIMARY KEY, value int NOT NULL DEFAULT 0)`);
  return table;
}

/** Its committed rows. */
export async function count({ admin }: DriverHarness, table: string): Promise<number> {
  return Number((await admin(`SELECT count(*)::int AS rows FROM ${table}`))[0]?.rows);
}

/** The SQLSTATE where the port promises it. */
export async function stateOf(failing: Promise<unknown>): Promise<unknown> {
  const error = await failing.then(
    () => assert.fail("it must reject"),
    (raised: unknown) => raised,
  );
  return (error as { code?: unknown }).code;
}

/** The server process behind a transaction. */
export async function pidOf({ driver }: DriverHarness, tx: unknown): Promise<number> {
  return Number((await driver.run(PID, [], tx))[0]?.pid);
}

/**
 * Every connection of the pool, and one more turn, still works. A connection that the server has just ended may be handed
 * out once more before its client has noticed; each may fail so once, and no more.
 */
export async function assertUsable(harness: DriverHarness): Promise<void> {
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

/** A promise that the case opens. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
