/** An operation that writes through MikroORM, run twice with one key: `DATABASE_URL=postgres://… tsx examples/drivers/mikro-orm.ts`. */
import { randomUUID } from "node:crypto";
import { EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import { created, createOncekey } from "oncekey";
import { fromMikroOrm } from "oncekey/drivers/mikro-orm";
import { migrate, postgresStore } from "oncekey/postgres";
import { exampleDatabase } from "./database.ts";

const Invoice = new EntitySchema<{ id: string; amount: number }>({
  name: "mikro_orm_invoice",
  properties: { id: { type: "uuid", primary: true }, amount: { type: "number" } },
});

const database = await exampleDatabase();
const orm = await MikroORM.init({ clientUrl: database.url, entities: [Invoice] });
await orm.em.execute("CREATE TABLE IF NOT EXISTS mikro_orm_invoice (id uuid PRIMARY KEY, amount int NOT NULL)");

const driver = fromMikroOrm(orm);
await migrate(driver);
const once = createOncekey({ store: postgresStore(driver) });

const createInvoice = once.transaction({
  name: "invoices.create",
  version: 1,
  // tx: an EntityManager. What is persisted is flushed before the answer is stored, and commits with it.
  async run({ tx }) {
    const invoice = tx.create(Invoice, { id: randomUUID(), amount: 5 });
    tx.persist(invoice);
    return created(`/invoices/${invoice.id}`, { id: invoice.id, amount: invoice.amount });
  },
});
await once.start();

const request = { scope: { tenant: "acme", client: null }, key: randomUUID() };
for (let attempt = 0; attempt < 2; attempt += 1) {
  const result = await once.run(createInvoice, request);
  const body = "outcome" in result ? new TextDecoder().decode(result.outcome.body) : null;
  console.log(JSON.stringify({ kind: result.kind, body, invoices: await orm.em.fork().count(Invoice) }));
}

await once.close();
await orm.close();
database.stop();
