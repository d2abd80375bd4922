export {
  CONSOLE_INDEXES,
  type ConsoleIndexName,
  type ConsoleIndexOptions,
  createConsoleIndexes,
  dropConsoleIndexes,
} from "../stores/postgres/operator/indexes.ts";
export { type Console, type ConsoleOptions, createConsole } from "./console.ts";
export type { ConsoleRequest } from "./exchange.ts";
export type { Next } from "./node.ts";
export type { Operator } from "./operator.ts";
export { type ConsoleUser, hashPassword } from "./passwords.ts";
export type { SessionLimits } from "./sessions.ts";
