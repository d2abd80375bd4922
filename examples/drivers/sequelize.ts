/** An operation that writes through Sequelize, run twice with one key: `DATABASE_URL=postgres://… tsx examples/drivers/sequelize.ts`. */
import { randomUUID } from "node:crypto";
import { created, createOncekey } from "oncekey";
import { fromSequelize } from "oncekey/drivers/sequelize";
import { migrate, postgresStore } from "oncekey/postgres";
import { DataTypes, Sequelize } from "sequelize";
import { exampleDatabase } from "./database.ts";

const database = await exampleDatabase();
const sequelize = new Sequelize(database.url, { logging: false });
const Invoice = sequelize.define("sequelize_invoice", { amount: DataTypes.INTEGER }, { timestamps: false });
await Invoice.sync();

const driver = fromSequelize(sequelize);
await migrate(driver);
const once = createOncekey({ store: postgresStore(driver) });

const createInvoice = once.transaction({
  name: "invoices.create",
  version: 1,
  // tx: a Transaction. What is written with it commits with the stored answer, or not at all.
  async run({ tx }) {
    const invoice = await Invoice.create({ amount: 5 }, { transaction: tx });
    return created(`/invoices/${invoice.get("id")}`, invoice.toJSON());
  },
});
await once.start();

const request = { scope: { tenant: "acme", client: null }, key: randomUUID() };
for (let attempt = 0; attempt < 2; attempt += 1) {
  const result = await once.run(createInvoice, request);
  const body = "outcome" in result ? new TextDecoder().decode(result.outcome.body) : null;
  console.log(JSON.stringify({ kind: result.kind, body, invoices: await Invoice.count() }));
}

await once.close();
await sequelize.close();
database.stop();
