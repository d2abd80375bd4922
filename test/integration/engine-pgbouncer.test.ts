import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { fromPg } from "oncekey/drivers/pg";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import { type Driver, postgresStore } from "oncekey/postgres";
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

function closedPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  closings.push(() => pool.end());
  return pool;
}

function throughPg(url: string): Driver<unknown> {
  return fromPg(closedPool(url)) as Driver<unknown>;
}

/** From 1.21 on PgBouncer can keep prepared statements, and from 1.24 on does so unasked. */
function keepsPrepared(program: string): boolean {
  const [, minor] = /PgBouncer 1\.(\d+)/.exec(execFileSync(program, ["--version"], { encoding: "utf8" })) ?? [];
  return Number(minor) >= 24;
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

    it("shows why statements must have no names there: where pg names them all the same, the error says what to do", async () => {
      if (keepsPrepared(binary)) return;
      const { url, through } = await pooled();
      const named = () => fromPg(closedPool(through), { named: true });
      const stores = [1, 2, 3, 4].map(() => postgresStore(named()));
      const looks = Array.from({ length: 40 }, (_, index) => stores[index % 4]?.read(randomBytes(32)));
      const answers = await Promise.allSettled(looks);
      const refused = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []));
      expect(refused.length).toBeGreaterThan(0);
      for (const error of refused) {
        expect(error).toMatchObject({
          code: "oncekey_config_invalid",
          message: expect.stringMatching(/pooler.*`named`/),
        });
      }
      // Not what was stored or locked: the statement did nothing.
      expect(await postgresStore(throughPg(url)).read(randomBytes(32))).toBeNull();
    });
  });
}
