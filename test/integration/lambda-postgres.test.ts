import { createOncekey, ok } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { idempotent, type LambdaResult } from "oncekey/lambda";
import { postgresStore } from "oncekey/postgres";
import { describe, expect, it } from "vitest";
import { createDatabase, testPool } from "../support/postgres.ts";

const options = { scope: () => ({ tenant: "acme", client: null }), deadlineMarginMs: 100.5 };
const event = {
  rawPath: "/charges",
  headers: { "idempotency-key": "k" },
  requestContext: { http: { method: "POST" } },
};

/** A function's context: so many milliseconds from now, not whole ones. */
function lasting(functionMs: number) {
  const endsAtMs = performance.now() + functionMs;
  return { getRemainingTimeInMillis: () => endsAtMs - performance.now() };
}

const codeOf = ({ body }: LambdaResult): unknown => (JSON.parse(body) as { code?: unknown }).code;

async function instance() {
  const database = await createDatabase();
  const pool = testPool(database.url);
  // Much longer than this test may take: only a lease that is bound to the function's time lets the retry in.
  return { pool, once: createOncekey({ store: postgresStore(fromPg(pool)), leaseMs: 300_000, onError() {} }) };
}

describe("a function's deadline, on PostgreSQL", () => {
  it("ends a hanging run with 503, and lets a retry after it go on from the recovery point", async () => {
    const { once } = await instance();
    let firsts = 0;
    let hangs = true;
    const operation = once.phases({
      name: "charges.create",
      version: 1,
      maxDurationMs: 600_000,
      async run(op) {
        const value = await op.phase("first", async () => ++firsts);
        if (hangs) await new Promise(() => {});
        return op.complete(async () => ok({ value }));
      },
    });
    await once.start();
    const bound = idempotent(operation, options);
    expect(codeOf(await bound(event, lasting(1_000)))).toBe("idempotency_lease_lost");
    hangs = false;
    let answer = await bound(event, lasting(20_000));
    while (answer.statusCode === 409) answer = await bound(event, lasting(20_000));
    expect([answer.statusCode, answer.body, firsts]).toEqual([200, '{"value":1}', 1]);
  });

  it("ends a hanging transaction with 503, its rows rolled back and its connection given back", async () => {
    const { once, pool } = await instance();
    await pool.query("CREATE TABLE charge (id int)");
    let hangs = true;
    const operation = once.transaction({
      name: "charges.create",
      version: 1,
      maxDurationMs: 600_000,
      async run({ tx }) {
        await tx.query("INSERT INTO charge VALUES (1)");
        if (hangs) await new Promise(() => {});
        return ok({});
      },
    });
    await once.start();
    const bound = idempotent(operation, options);
    expect(codeOf(await bound(event, lasting(1_000)))).toBe("idempotency_lease_lost");
    hangs = false;
    let answer = await bound(event, lasting(20_000));
    while (answer.statusCode === 409) answer = await bound(event, lasting(20_000));
    expect(answer.statusCode).toBe(200);
    expect((await pool.query("SELECT count(*)::int AS rows FROM charge")).rows).toEqual([{ rows: 1 }]);
    expect(pool.waitingCount).toBe(0);
  });
});
