/** An operation that writes through TypeORM, run twice with one key: `DATABASE_URL=postgres://… tsx examples/drivers/typeorm.ts`. */
import { randomUUID } from "node:crypto";
import { created, createOncekey } from "oncekey";
import { fromTypeOrm } from "oncekey/drivers/typeorm";
import { migrate, postgresStore } from "oncekey/postgres";
import { DataSource, EntitySchema } from "typeorm";
import { exampleDatabase } from "./database.ts";

const Invoice = new EntitySchema<{ id?: number; amount: number }>({
  name: "typeorm_invoice",
  columns: { id: { type: "int", primary: true, generated: "increment" }, amount: { type: "int" } },
});

const database = await exampleDatabase();
const dataSource = new DataSource({ type: "postgres", url: database.url, entities: [Invoice], synchronize: true });
await dataSource.initialize();

const driver = fromTypeOrm(dataSource);
await migrate(driver);
const once = createOncekey({ store: postgresStore(driver) });

const createInvoice = once.transaction({
  name: "invoices.create",
  version: 1,
  // tx: an EntityManager. What it writes commits with the stored answer, or not at all.
  async run({ tx }) {
    const invoice = await tx.save(Invoice, { amount: 5 });
    return created(`/invoices/${invoice.id}`, invoice);
  },
});
await once.start();

const request = { scope: { tenant: "acme", client: null }, key: randomUUID() };
for (let attempt = 0; attempt < 2; attempt += 1) {
  const result = await once.run(createInvoice, request);
  const body = "outcome" in result ? new TextDecoder().decode(result.outcome.body) : null;
  console.log(JSON.stringify({ kind: result.kind, body, invoices: await dataSource.manager.count(Invoice) }));
}

await once.close();
await dataSource.destroy();
database.stop();
