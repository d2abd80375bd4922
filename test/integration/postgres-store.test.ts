import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import { expect, it } from "vitest";
import { createDatabase, testPool } from "../support/postgres.ts";
it("smoke", async () => {
  const db = await createDatabase();
  const store = postgresStore(fromPg(testPool(db.url)));
  await store.start();
  expect(await store.read(new Uint8Array(32))).toBe(null);
});
