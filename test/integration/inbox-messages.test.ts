import { assertOwned, createOncekey, ok, sendInside } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { createDatabase, passTime, testPool } from "../support/postgres.ts";

const DAY_MS = 86_400_000;
const scope = { tenant: "acme", client: "app" };
const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

let url: string;
let pool: pg.Pool;

beforeAll(async () => {
  url = (await createDatabase()).url;
  pool = testPool(url);
  await pool.query("CREATE TABLE invoice (reference text PRIMARY KEY, amount int NOT NULL)");
});

const instance = () => createOncekey({ store: postgresStore(fromPg(pool)), onError: () => {} });
const outbox = async (topic: string) =>
  (await pool.query("SELECT * FROM oncekey.outbox WHERE topic = $1 ORDER BY seq", [topic])).rows;

describe("the messages of an operation and of a delivery", () => {
  it("carry who, why and in whose context, digits and all", async () => {
    const once = instance();
    const operation = once.transaction({
      name: "a",
      version: 1,
      async run({ send }) {
        await send("a.done", { n: 9007199254740993n }, { orderBy: "o", key: "k" });
        return ok({});
      },
    });
    await once.start();
    await once.run(operation, { scope, key: "k", correlation: TRACE, context: { account: "acct_1" } });
    const [row] = await outbox("a.done");
    expect(row).toMatchObject({ tenant: "acme", client: "app", correlation: TRACE, order_by: "o", key: "k" });
    expect(row.payload).toBe('{"n":9007199254740993}');
    expect(Buffer.from(row.context).toString("latin1")).toContain("acct_1");
    const stored = await pool.query("SELECT correlation FROM oncekey.entry WHERE id = $1", [row.entry_id]);
    expect(stored.rows).toEqual([{ correlation: TRACE }]);
  });

  it("of a delivery exist once, whatever comes again, and belong to no entry", async () => {
    const once = instance();
    await once.start();
    const delivery = { tenant: "acme", source: "payments", id: "evt_1", correlation: TRACE };
    const consume = () => once.consume(delivery, ({ send }) => send("paid", { n: 1 }));
    expect([await consume(), await consume()]).toMatchObject([{ kind: "done" }, { kind: "duplicate" }]);
    expect(await outbox("paid")).toMatchObject([{ entry_id: null, client: null, correlation: TRACE, context: null }]);
    // Forgotten, it is taken in anew, beside the message of the first time.
    await passTime(url, 8 * DAY_MS);
    expect((await consume()).kind).toBe("done");
    expect(await outbox("paid")).toHaveLength(2);
  });

  it("of a captured handler go with its own transaction", async () => {
    const once = instance();
    const operation = once.capture({
      name: "refunds.create",
      version: 1,
      reconcile: async () => ({ kind: "not_done" }),
    });
    await once.start();
    const client = await pool.connect();
    const handler = async () => {
      for (const [n, end] of ["ROLLBACK", "COMMIT"].entries()) {
        await client.query("BEGIN");
        await sendInside(client, "refund.created", { n });
        await assertOwned(client);
        await client.query(end);
      }
      return { status: 201, headers: [], body: new Uint8Array() };
    };
    const { kind } = await runCaptured(operation, { handler }).finally(() => client.release());
    expect(kind).toBe("completed");
    expect(await outbox("refund.created")).toMatchObject([{ payload: '{"n":1}', tenant: "acme" }]);
  });
});

it("a reference survives the purge: a very late retry meets its own row, another payload does not", async () => {
  const once = instance();
  const invoices = once.transaction({
    name: "invoices.create",
    version: 1,
    compare: "input",
    async run({ tx, reference, input }) {
      const { amount } = (input as unknown as { body: { amount: number } }).body;
      const made = await tx.query("INSERT INTO invoice VALUES ($1, $2) ON CONFLICT (reference) DO NOTHING", [
        reference,
        amount,
      ]);
      return ok({ made: made.rowCount === 1 });
    },
  });
  await once.start();
  const run = async (amount: number) => {
    const result = await once.run(invoices, { scope, key: "late", input: { body: { amount } } });
    return result.kind === "completed" ? new TextDecoder().decode(result.outcome.body) : result.kind;
  };
  expect(await run(5)).toBe('{"made":true}');
  expect(await run(5)).toBe("replayed");
  await passTime(url, 2 * DAY_MS);
  await once.internals.context.store.purge(1_000);
  expect(await run(5)).toBe('{"made":false}');
  await passTime(url, 2 * DAY_MS);
  await once.internals.context.store.purge(1_000);
  expect(await run(6)).toBe('{"made":true}');
});
