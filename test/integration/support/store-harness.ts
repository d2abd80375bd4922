import type { Driver } from "oncekey/postgres";
import { postgresStore } from "oncekey/postgres";
import type { StoreHarness } from "oncekey/testing";
import { passTime, query, testPool } from "../../support/postgres.ts";

const TABLES = ["oncekey.intent", "oncekey.phase", "oncekey.entry", "oncekey.outbox", "suite_row"];

/** Makes harnesses for the store suite over one driver; the database itself is looked at directly, past any pooler. */
export async function storeHarness(url: string, driver: Driver<unknown>): Promise<() => Promise<StoreHarness>> {
  await query(url, "CREATE TABLE suite_row (value text NOT NULL)");
  const direct = testPool(url, { max: 2 });
  const store = postgresStore(driver);
  return async () => {
    for (const table of TABLES) await direct.query(`DELETE FROM ${table}`);
    return {
      store,
      insertRow: async (tx, value) => void (await driver.run("INSERT INTO suite_row VALUES ($1::text)", [value], tx)),
      countRows: async (value) => (await direct.query("SELECT FROM suite_row WHERE value = $1", [value])).rowCount ?? 0,
      messageIds: async () =>
        (await direct.query<{ id: string }>("SELECT id FROM oncekey.outbox")).rows.map(({ id }) => id),
      advance: (ms) => passTime(url, ms),
      close: async () => {},
    };
  };
}
