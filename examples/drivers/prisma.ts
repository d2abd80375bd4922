/** An operation that writes through Prisma, run twice with one key: `DATABASE_URL=postgres://… tsx examples/drivers/prisma.ts`. */
import { randomUUID } from "node:crypto";
import { created, createOncekey } from "oncekey";
import { fromPrisma } from "oncekey/drivers/prisma";
import { migrate, postgresStore } from "oncekey/postgres";
// Where your generated client is: test/peers/prisma7 has a schema of two tables.
import { prismaClient } from "../../test/peers/prisma7/client.ts";
import { exampleDatabase } from "./database.ts";

const database = await exampleDatabase();
const { client, pool } = prismaClient(database.url, 10);
await client.$executeRaw`CREATE TABLE IF NOT EXISTS booking (number serial PRIMARY KEY, id text NOT NULL)`;

const driver = fromPrisma(client, { pool });
await migrate(driver);
const once = createOncekey({ store: postgresStore(driver) });

const createBooking = once.transaction({
  name: "bookings.create",
  version: 1,
  // tx: Prisma.TransactionClient. What is written with it commits with the stored answer, or not at all.
  async run({ tx }) {
    const booking = await tx.booking.create({ data: { id: randomUUID() } });
    return created(`/bookings/${booking.id}`, booking);
  },
});
await once.start();

const request = { scope: { tenant: "acme", client: null }, key: randomUUID() };
for (let attempt = 0; attempt < 2; attempt += 1) {
  const result = await once.run(createBooking, request);
  const body = "outcome" in result ? new TextDecoder().decode(result.outcome.body) : null;
  console.log(JSON.stringify({ kind: result.kind, body, bookings: await client.booking.count() }));
}

await once.close();
await client.$disconnect();
await pool.end();
database.stop();
