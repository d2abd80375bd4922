/** An operation that writes through Kysely, run twice with one key: `DATABASE_URL=postgres://… tsx examples/drivers/kysely.ts`. */
import { randomUUID } from "node:crypto";
import { type Generated, Kysely, PostgresDialect, sql } from "kysely";
import { created, createOncekey } from "oncekey";
import { fromKysely } from "oncekey/drivers/kysely";
import { migrate, postgresStore } from "oncekey/postgres";
import pg from "pg";
import { exampleDatabase } from "./database.ts";

interface Tables {
  kysely_invoice: { id: Generated<number>; amount: number };
}

const database = await exampleDatabase();
const pool = new pg.Pool({ connectionString: database.url });
const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
await sql`CREATE TABLE IF NOT EXISTS kysely_invoice (id serial PRIMARY KEY, amount int NOT NULL)`.execute(db);

const driver = fromKysely(db, { pool });
await migrate(driver);
const once = createOncekey({ store: postgresStore(driver) });

const createInvoice = once.transaction({
  name: "invoices.create",
  version: 1,
  // tx: a Transaction<Tables>. What is written with it commits with the stored answer, or not at all.
  async run({ tx }) {
    const insert = tx.insertInto("kysely_invoice").values({ amount: 5 }).returningAll();
    const invoice = await insert.executeTakeFirstOrThrow();
    return created(`/invoices/${invoice.id}`, invoice);
  },
});
await once.start();

const request = { scope: { tenant: "acme", client: null }, key: randomUUID() };
for (let attempt = 0; attempt < 2; attempt += 1) {
  const result = await once.run(createInvoice, request);
  const body = "outcome" in result ? new TextDecoder().decode(result.outcome.body) : null;
  const invoices = (await db.selectFrom("kysely_invoice").select("id").execute()).length;
  console.log(JSON.stringify({ kind: result.kind, body, invoices }));
}

await once.close();
await db.destroy();
database.stop();
