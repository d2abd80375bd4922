import type { Driver } from "oncekey/postgres";
import { postgresStore } from "oncekey/postgres";
import type { StoreHarness } from "oncekey/testing";
import { testPool } from "../../support/postgres.ts";
import { beside, SUITE_ROW } from "../../support/store-beside.ts";

/** Makes harnesses for the store suite over one driver; the database itself is looked at directly, past any pooler. */
export async function storeHarness(url: string, driver: Driver<unknown>): Promise<() => Promise<StoreHarness>> {
  const direct = testPool(url, { max: 2 });
  await direct.query(SUITE_ROW);
  const store = postgresStore(driver);
  const insertRow = async (tx: unknown, value: string) =>
    void (await driver.run("INSERT INTO suite_row VALUES ($1::text)", [value], tx));
  return async () => ({
    store,
    insertRow,
    ...(await beside((sql, parameters) => direct.query(sql, parameters))),
  });
}
