export { fromTransaction, type OpenedTransaction } from "../../core/opened-transaction.ts";
export {
  type Driver,
  type SqlParameter,
  type SqlRow,
  TransactionAbandoned,
  TransactionAborted,
} from "./driver-port.ts";
export {
  type EraseLeft,
  type EraseOptions,
  type EraseReport,
  type EraseResult,
  type EraseSelection,
  eraseContent,
} from "./erase.ts";
export { type GrantRoles, printGrants } from "./grants.ts";
export type { GroupOptions } from "./group-statements.ts";
export { entriesById, type InspectedEntry, type InspectQuery, inspectEntries } from "./inspect.ts";
export {
  changeLayout,
  type LayoutName,
  type LayoutOptions,
  type OutcomePartition,
  type StoreLayout,
  storeLayout,
} from "./layout.ts";
export { type Maintained, type MaintainOptions, maintainLayout } from "./maintain.ts";
export {
  discardMessages,
  type ListedMessage,
  listMessages,
  type MessageQuery,
  type MessageSelection,
  retryMessages,
} from "./messages.ts";
export { type MigrateResult, migrate, printMigrations, type SchemaOptions } from "./migrate.ts";
export { entryResolutions, type RecordedSummary, type ResolutionRecord, recordedSummary } from "./recorded.ts";
export {
  type RotateOptions,
  type RotateResult,
  rotateStored,
  type SealedCount,
  type UnreadableValue,
} from "./rotate.ts";
export { type OrphanedGroup, type RecoveryGroup, type StoreStatus, storeStatus } from "./status.ts";
export { type PostgresStoreOptions, postgresStore } from "./store.ts";
