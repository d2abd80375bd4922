/** A run in a transaction that the caller opened, twice with one key: `DATABASE_URL=postgres://… tsx examples/drivers/from-transaction.ts`. */
import { randomUUID } from "node:crypto";
import { created, createOncekey, type RunResult } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { fromTransaction, migrate, postgresStore } from "oncekey/postgres";
import pg from "pg";
import { exampleDatabase } from "./database.ts";

const database = await exampleDatabase();
const pool = new pg.Pool({ connectionString: database.url });
await pool.query("CREATE TABLE IF NOT EXISTS own_invoice (id uuid PRIMARY KEY, amount int NOT NULL)");

const driver = fromPg(pool);
await migrate(driver);
const once = createOncekey({ store: postgresStore(driver) });

const createInvoice = once.transaction({
  name: "invoices.create",
  version: 1,
  async run({ tx }) {
    const id = randomUUID();
    await tx.query("INSERT INTO own_invoice VALUES ($1, 5)", [id]);
    return created(`/invoices/${id}`, { id, amount: 5 });
  },
});
await once.start();

/** Stands for a framework that opens one transaction for each request. The run comes before any write in it. */
async function inRequest(key: string): Promise<RunResult> {
  const tx = await pool.connect();
  try {
    await tx.query("BEGIN");
    const scope = { tenant: "acme", client: null };
    const result = await once.run(createInvoice, { scope, key, transaction: fromTransaction(tx) });
    // What the transaction may do besides: other rows of the request.
    const isDone = result.kind === "completed" || result.kind === "replayed";
    await tx.query(isDone ? "COMMIT" : "ROLLBACK");
    return result;
  } finally {
    tx.release();
  }
}

const key = randomUUID();
for (let attempt = 0; attempt < 2; attempt += 1) {
  const result = await inRequest(key);
  const body = "outcome" in result ? new TextDecoder().decode(result.outcome.body) : null;
  const { rows } = await pool.query("SELECT count(*)::int AS invoices FROM own_invoice");
  console.log(JSON.stringify({ kind: result.kind, body, ...rows[0] }));
}

await once.close();
await pool.end();
database.stop();
