/** An operation that writes through Drizzle, run twice with one key: `DATABASE_URL=postgres://… tsx examples/drivers/drizzle.ts`. */
import { randomUUID } from "node:crypto";
import { drizzle } from "drizzle-orm/node-postgres";
import { integer, pgTable, serial } from "drizzle-orm/pg-core";
import { created, createOncekey } from "oncekey";
import { fromDrizzle } from "oncekey/drivers/drizzle";
import { migrate, postgresStore } from "oncekey/postgres";
import pg from "pg";
import { exampleDatabase } from "./database.ts";

const invoices = pgTable("drizzle_invoice", { id: serial().primaryKey(), amount: integer().notNull() });

const database = await exampleDatabase();
const pool = new pg.Pool({ connectionString: database.url });
const db = drizzle(pool, { schema: { invoices } });
await db.execute("CREATE TABLE IF NOT EXISTS drizzle_invoice (id serial PRIMARY KEY, amount int NOT NULL)");

const driver = fromDrizzle(db);
await migrate(driver);
const once = createOncekey({ store: postgresStore(driver) });

const createInvoice = once.transaction({
  name: "invoices.create",
  version: 1,
  // tx: Drizzle's transaction, which knows the schema. What is written with it commits with the stored answer, or not.
  async run({ tx }) {
    const [invoice] = await tx.insert(invoices).values({ amount: 5 }).returning();
    return created(`/invoices/${invoice?.id}`, { ...invoice });
  },
});
await once.start();

const request = { scope: { tenant: "acme", client: null }, key: randomUUID() };
for (let attempt = 0; attempt < 2; attempt += 1) {
  const result = await once.run(createInvoice, request);
  const body = "outcome" in result ? new TextDecoder().decode(result.outcome.body) : null;
  console.log(JSON.stringify({ kind: result.kind, body, invoices: await db.$count(invoices) }));
}

await once.close();
await pool.end();
database.stop();
