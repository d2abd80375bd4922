import { connect, createServer, type Socket } from "node:net";
import { EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import createKnex from "knex";
import { Kysely, PostgresDialect } from "kysely";
import { fromKnex } from "oncekey/drivers/knex";
import { fromKysely } from "oncekey/drivers/kysely";
import { fromMikroOrm } from "oncekey/drivers/mikro-orm";
import { fromSequelize } from "oncekey/drivers/sequelize";
import { fromTypeOrm } from "oncekey/drivers/typeorm";
import type { Driver } from "oncekey/postgres";
import { Sequelize } from "sequelize";
import { DataSource } from "typeorm";
import { describe, expect, it } from "vitest";
import { atEnd, createDatabase, query, sharedServer, testPool } from "../support/postgres.ts";

/** A proxy in front of PostgreSQL that holds the answer to a statement back until it is told to go on. */
async function holdingProxy(serverPort: number) {
  const sockets = new Set<Socket>();
  let pattern: RegExp | undefined;
  let goOn = () => {};
  const server = createServer((client) => {
    const upstream = connect(serverPort, "127.0.0.1");
    let held: Buffer[] | undefined;
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => other.destroy());
      socket.on("close", () => other.destroy());
    }
    client.on("data", (chunk) => {
      if (pattern?.test(chunk.toString("latin1"))) {
        pattern = undefined;
        held = [];
        goOn = () => {
          for (const answer of held ?? []) client.write(answer);
          held = undefined;
        };
      }
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => (held === undefined ? client.write(chunk) : held.push(chunk)));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  const hold = (next: RegExp) => {
    pattern = next;
  };
  return { port: address.port, hold, goOn: () => goOn() };
}

const PATIENCE_MS = 300;
const entities = [new EntitySchema({ name: "nothing", properties: { id: { type: "text", primary: true } } })];

/** Libraries with one connection, whose client gives a statement up after a while. */
const IMPATIENT: readonly (readonly [string, (url: string) => Promise<Driver<unknown>>])[] = [
  [
    "TypeORM",
    async (url) => {
      const extra = { query_timeout: PATIENCE_MS };
      const dataSource = await new DataSource({ type: "postgres", url, poolSize: 1, extra }).initialize();
      atEnd(() => dataSource.destroy());
      return fromTypeOrm(dataSource) as Driver<unknown>;
    },
  ],
  [
    "Sequelize",
    async (url) => {
      const dialectOptions = { query_timeout: PATIENCE_MS };
      const sequelize = new Sequelize(url, { logging: false, pool: { max: 1 }, dialectOptions });
      atEnd(() => sequelize.close());
      return fromSequelize(sequelize) as Driver<unknown>;
    },
  ],
  [
    "MikroORM",
    async (clientUrl) => {
      const driverOptions = { connection: { query_timeout: PATIENCE_MS } };
      const orm = await MikroORM.init({ clientUrl, entities, pool: { min: 0, max: 1 }, driverOptions });
      atEnd(() => orm.close());
      return fromMikroOrm(orm) as Driver<unknown>;
    },
  ],
  [
    "Knex",
    async (connectionString) => {
      const connection = { connectionString, query_timeout: PATIENCE_MS };
      const knex = createKnex({ client: "pg", connection, pool: { min: 0, max: 1 } });
      atEnd(() => knex.destroy());
      return fromKnex(knex) as Driver<unknown>;
    },
  ],
];

describe.each(IMPATIENT)("%s", (_name, make) => {
  it("never uses a connection again whose BEGIN was carried out unheard", async () => {
    const { url } = await createDatabase({ migrated: false });
    await query(url, "CREATE TABLE booking (id text)");
    const { port } = await sharedServer();
    const proxy = await holdingProxy(port);
    const driver = await make(url.replace(`:${port}/`, `:${proxy.port}/`));
    await driver.run("SELECT 1 AS one", []);
    proxy.hold(/begin|start transaction/i);
    const insert = (id: string, tx?: unknown) => driver.run(`INSERT INTO booking VALUES ('${id}')`, [], tx);
    await expect(driver.transaction((tx) => insert("never", tx))).rejects.toThrow();
    proxy.goOn();
    // A commit of its own, whatever was begun on that connection before.
    await insert("alone");
    expect(await query(url, "SELECT id FROM booking")).toEqual([{ id: "alone" }]);
  });
});

it("Kysely: survives a connection older than the driver that breaks inside a transaction", async () => {
  const { url } = await createDatabase({ migrated: false });
  const pool = testPool(url, { max: 1 });
  await pool.query("SELECT 1");
  const driver = fromKysely(new Kysely<object>({ dialect: new PostgresDialect({ pool }) }), { pool });
  const broken = driver.transaction(async (tx) => {
    const [server] = await driver.run("SELECT pg_backend_pid()::int AS pid", [], tx);
    await query(url, `SELECT pg_terminate_backend(${server?.pid}, 5000)`);
    await driver.run("SELECT 1 AS one", [], tx);
  });
  await expect(broken).rejects.toThrow();
  // Vitest reports an error event that nobody listens to.
  expect(await driver.run("SELECT 1 AS one", [])).toEqual([{ one: 1 }]);
});

it("Knex: refuses a transaction that is over, whoever has its connection now", async () => {
  const { url } = await createDatabase({ migrated: false });
  const knex = createKnex({ client: "pg", connection: url, pool: { min: 0, max: 1 } });
  atEnd(() => knex.destroy());
  const driver = fromKnex(knex);
  const over = await knex.transaction();
  await over.commit();
  await driver.transaction(async () => {
    await expect(driver.run("SELECT 1 AS one", [], over)).rejects.toMatchObject({ code: "25P01" });
  });
});
