import { fromPg } from "oncekey/drivers/pg";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import type { Driver } from "oncekey/postgres";
import { type StoreHarness, storeSuite } from "oncekey/testing";
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedServer } from "../support/postgres.ts";
import { type PgBouncer, pgbouncerBinary, startPgBouncer } from "./support/pgbouncer.ts";
import { raceSuite } from "./support/race-suite.ts";
import { ordersDatabase } from "./support/rows.ts";
import { storeHarness } from "./support/store-harness.ts";

const binary = pgbouncerBinary();

let bouncer: PgBouncer;
const closings: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  if (binary !== null) bouncer = await startPgBouncer(binary, (await sharedServer()).port);
});

afterAll(async () => {
  await Promise.all(closings.splice(0).map((close) => close()));
  await bouncer?.close();
});

/** A migrated database, seen directly and through the pooler. */
async function pooled(): Promise<{ url: string; through: string }> {
  const url = await ordersDatabase();
  return { url, through: bouncer.urlOf(new URL(url).pathname.slice(1)) };
}

function throughPg(url: string): Driver<unknown> {
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  closings.push(() => pool.end());
  return fromPg(pool) as Driver<unknown>;
}

function throughPostgresJs(url: string): Driver<unknown> {
  const sql = postgres(url, { max: 5, prepare: false, onnotice: () => {} });
  closings.push(() => sql.end());
  return fromPostgresJs(sql) as Driver<unknown>;
}

if (binary === null) {
  it("through PgBouncer in transaction mode", (context) => {
    const missing = "PgBouncer is not installed (Debian: apt-get install pgbouncer)";
    if (process.env.CI === "true") throw new Error(`${missing}. CI must not skip this.`);
    context.skip(missing);
  });
} else {
  const poolers = { pg: throughPg, "postgres-js without named statements": throughPostgresJs };
  for (const [name, through] of Object.entries(poolers)) {
    raceSuite(`through PgBouncer in transaction mode, with ${name}`, async () => {
      const database = await pooled();
      return { url: database.url, driver: () => through(database.through) };
    });

    let harness: Promise<() => Promise<StoreHarness>> | undefined;
    storeSuite({ describe, it }, `postgres through PgBouncer and ${name}`, async () => {
      harness ??= pooled().then((database) => storeHarness(database.url, through(database.through)));
      return (await harness)();
    });
  }

  describe("the pooler of these tests", () => {
    it("really shares connections between transactions: a session setting leaks to another client", async () => {
      const { through } = await pooled();
      const one = throughPg(through);
      const other = throughPg(through);
      await one.run("SET application_name = 'leaked'", []);
      expect(await other.run("SHOW application_name", [])).toEqual([{ application_name: "leaked" }]);
    });
  });
}
