import type { MikroORM } from "@mikro-orm/postgresql";
import { createOncekey, ok } from "oncekey";
import { fromMikroOrm, type TransactionOf as MikroOrmTransactionOf } from "oncekey/drivers/mikro-orm";
import { fromSequelize, type TransactionOf as SequelizeTransactionOf } from "oncekey/drivers/sequelize";
import { fromTypeOrm, type TransactionOf as TypeOrmTransactionOf } from "oncekey/drivers/typeorm";
import { type Driver, fromTransaction, postgresStore } from "oncekey/postgres";
import type { PoolClient } from "pg";
import type { Sequelize, Transaction } from "sequelize";
import type { DataSource, EntityManager } from "typeorm";
import { expectTypeOf, it } from "vitest";

// Checked by the compiler: the real libraries fit the structural types, and hand out their own transaction type.
it("a TypeORM data source fits, and its transactions are EntityManagers", () => {
  expectTypeOf<TypeOrmTransactionOf<DataSource>>().toEqualTypeOf<EntityManager>();
  expectTypeOf(fromTypeOrm<DataSource>).returns.toEqualTypeOf<Driver<EntityManager>>();
});

it("Sequelize fits, and its transactions are Transactions", () => {
  expectTypeOf<SequelizeTransactionOf<Sequelize>>().toEqualTypeOf<Transaction>();
  expectTypeOf(fromSequelize<Sequelize>).returns.toEqualTypeOf<Driver<Transaction>>();
});

it("MikroORM fits, and its transactions are its own EntityManagers", () => {
  expectTypeOf<MikroOrmTransactionOf<MikroORM>>().toEqualTypeOf<MikroORM["em"]>();
  expectTypeOf(fromMikroOrm<MikroORM>).returns.toEqualTypeOf<Driver<MikroORM["em"]>>();
});

it("an operation's tx is the driver's, and a handed-in transaction must be of that type", () => {
  const use = (dataSource: DataSource, sequelize: Sequelize, orm: MikroORM, client: PoolClient) => {
    const typeOrm = createOncekey({ store: postgresStore(fromTypeOrm(dataSource)) });
    const operation = typeOrm.transaction({
      name: "typed",
      version: 1,
      async run({ tx }) {
        expectTypeOf(tx).toEqualTypeOf<EntityManager>();
        return ok({});
      },
    });
    const request = { scope: { tenant: "acme", client: null }, key: "k" };
    void typeOrm.run(operation, { ...request, transaction: fromTransaction(dataSource.manager) });
    // @ts-expect-error a client of another library
    void typeOrm.run(operation, { ...request, transaction: fromTransaction(client) });
    createOncekey({ store: postgresStore(fromSequelize(sequelize)) }).transaction({
      name: "typed",
      version: 1,
      async run({ tx }) {
        expectTypeOf(tx).toEqualTypeOf<Transaction>();
        return ok({});
      },
    });
    createOncekey({ store: postgresStore(fromMikroOrm(orm)) }).transaction({
      name: "typed",
      version: 1,
      async run({ tx }) {
        expectTypeOf(tx).toEqualTypeOf<MikroORM["em"]>();
        return ok({});
      },
    });
  };
  expectTypeOf(use).returns.toBeVoid();
});

it("an object without what a driver needs is refused", () => {
  const refuse = () => {
    // @ts-expect-error no query runners
    fromTypeOrm({ manager: {}, options: {}, driver: {} });
    // @ts-expect-error no transaction
    fromSequelize({ query: async () => [] });
    // @ts-expect-error no entity manager
    fromMikroOrm({});
  };
  expectTypeOf(refuse).returns.toBeVoid();
});
