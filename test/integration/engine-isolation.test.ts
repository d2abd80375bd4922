import { fromPg } from "oncekey/drivers/pg";
import type { Driver } from "oncekey/postgres";
import type { PoolClient } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { query, testPool } from "../support/postgres.ts";
import { type Hook, orders, type Place } from "./support/orders.ts";
import { raceSuite } from "./support/race-suite.ts";
import { effects, entries, ordersDatabase } from "./support/rows.ts";

const LEVELS = ["read committed", "repeatable read", "serializable"] as const;

for (const isolation of LEVELS) {
  raceSuite(`with ${isolation.toUpperCase()} as the database's default`, async () => {
    const url = await ordersDatabase({ isolation });
    return { url, isolation, driver: () => fromPg(testPool(url, { max: 5 })) as Driver<unknown> };
  });
}

/** Fails the named place with a serialisation failure, as the server raises it, the first `times` times. */
function failing(at: Place, times: number) {
  const failures = { left: times, met: 0 };
  const hook: Hook<PoolClient> = async (place, _order, tx) => {
    if (place !== at || failures.left-- <= 0) return;
    failures.met++;
    await tx?.query("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$");
  };
  return { failures, hook };
}

describe.each(LEVELS)("a serialisation failure under %s", (isolation) => {
  let url: string;

  beforeAll(async () => {
    url = await ordersDatabase({ isolation });
  });

  const cases = [
    ["transaction", "transaction"],
    ["phases", "phase"],
    ["phases", "complete"],
  ] as const;

  it.each(cases)("is run again, with nothing left of the failed try (%s, in %s)", async (kind, place) => {
    const key = `${kind}-${place}-again`;
    const { failures, hook } = failing(place, 2);
    const { run } = await orders({ driver: fromPg(testPool(url)), at: hook });
    expect((await run(kind, key)).kind).toBe("completed");
    expect(failures.met).toBe(2);
    expect(await effects(url, key)).toHaveLength(1);
    expect((await run(kind, key)).kind).toBe("replayed");
  });

  it.each(cases)("that never ends is contention, and a retry can still succeed (%s, in %s)", async (kind, place) => {
    const key = `${kind}-${place}-endless`;
    const { failures, hook } = failing(place, Infinity);
    const { run } = await orders({ driver: fromPg(testPool(url)), at: hook });
    expect(await run(kind, key)).toMatchObject({ kind: "contention", retryAfterMs: expect.any(Number) });
    const left = place === "complete" ? [{ recovery_point: "placed", lapsed: true }] : [];
    expect((await entries(url)).filter((entry) => entry.key === key)).toMatchObject(left);
    expect(await effects(url, key)).toHaveLength(left.length);
    expect(await messages(url, key)).toHaveLength(0);
    failures.left = 0;
    expect((await run(kind, key)).kind).toBe("completed");
    expect(await effects(url, key)).toHaveLength(1);
    expect(await messages(url, key)).toHaveLength(1);
  });
});

const messages = (url: string, key: string) =>
  query(url, `SELECT id FROM oncekey.outbox WHERE payload::jsonb ->> 'order' = '${key}'`);
