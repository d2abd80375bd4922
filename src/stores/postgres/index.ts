export {
  type Driver,
  type SqlParameter,
  type SqlRow,
  TransactionAbandoned,
  TransactionAborted,
} from "./driver-port.ts";
export { type GrantRoles, printGrants } from "./grants.ts";
export { type InspectedEntry, type InspectQuery, inspectEntries } from "./inspect.ts";
export { type MigrateResult, migrate, printMigrations, type SchemaOptions } from "./migrate.ts";
export { type StoreStatus, storeStatus } from "./status.ts";
export { type PostgresStoreOptions, postgresStore } from "./store.ts";
