/** An operation that writes through Knex, run twice with one key: `DATABASE_URL=postgres://… tsx examples/drivers/knex.ts`. */
import { randomUUID } from "node:crypto";
import createKnex from "knex";
import { created, createOncekey } from "oncekey";
import { fromKnex } from "oncekey/drivers/knex";
import { migrate, postgresStore } from "oncekey/postgres";
import { exampleDatabase } from "./database.ts";

interface Invoice {
  readonly id: number;
  readonly amount: number;
}

const database = await exampleDatabase();
const knex = createKnex({ client: "pg", connection: database.url });
await knex.raw("CREATE TABLE IF NOT EXISTS knex_invoice (id serial PRIMARY KEY, amount int NOT NULL)");

const driver = fromKnex(knex);
await migrate(driver);
const once = createOncekey({ store: postgresStore(driver) });

const createInvoice = once.transaction({
  name: "invoices.create",
  version: 1,
  // tx: a Knex.Transaction. What is written with it commits with the stored answer, or not at all.
  async run({ tx }) {
    const [invoice] = await tx<Invoice>("knex_invoice").insert({ amount: 5 }).returning("*");
    return created(`/invoices/${invoice?.id}`, { ...invoice });
  },
});
await once.start();

const request = { scope: { tenant: "acme", client: null }, key: randomUUID() };
for (let attempt = 0; attempt < 2; attempt += 1) {
  const result = await once.run(createInvoice, request);
  const body = "outcome" in result ? new TextDecoder().decode(result.outcome.body) : null;
  const invoices = (await knex("knex_invoice").select("id")).length;
  console.log(JSON.stringify({ kind: result.kind, body, invoices }));
}

await once.close();
await knex.destroy();
database.stop();
