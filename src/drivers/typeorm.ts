import type { Driver } from "../stores/postgres/driver-port.ts";
import { noTransaction, runBeneath } from "./_pg-client.ts";
import { typeOrmTransaction } from "./_typeorm-transaction.ts";

/** What is used of a TypeORM data source. */
export interface TypeOrmDataSource {
  readonly manager: object;
  readonly options: object;
  readonly driver: object;
  createQueryRunner(mode?: any): any;
}

/** The transaction type of a data source: its entity manager. */
export type TransactionOf<Source> = Source extends { manager: infer Manager } ? Manager : never;

/**
 * Drives PostgreSQL through a TypeORM data source (type `postgres`; 0.3 and 1.x). Transactions are its `EntityManager`,
 * bound to one query runner. Initialize the data source before `once.start()`.
 */
export function fromTypeOrm<Source extends TypeOrmDataSource>(dataSource: Source): Driver<TransactionOf<Source>> {
  const { poolSize, extra } = dataSource.options as { poolSize?: number; extra?: { max?: number } };
  return {
    name: "typeorm",
    connections: extra?.max ?? poolSize ?? 10,
    abandons: true,
    async run(sql, parameters, tx) {
      if (tx !== undefined) return runBeneath(await clientOf(tx), sql, parameters);
      return runBeneath((dataSource.driver as any).master, sql, parameters);
    },
    transaction: (body) =>
      typeOrmTransaction(dataSource.createQueryRunner("master"), body as (tx: any) => Promise<any>),
  };
}

async function clientOf({ queryRunner }: any): Promise<any> {
  if (!queryRunner?.isTransactionActive || queryRunner.isReleased) throw noTransaction("The EntityManager");
  return queryRunner.connect();
}
