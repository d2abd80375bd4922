import { connectionLoss } from "./driver-connections.ts";
import { failing } from "./driver-errors.ts";
import type { DriverCase, DriverHarness } from "./driver-harness.ts";
import { committing } from "./driver-transactions.ts";
import { values } from "./driver-values.ts";
import { defineSuite } from "./suite.ts";

export type { DriverHarness } from "./driver-harness.ts";

const grouped = (group: string, cases: readonly DriverCase[]): DriverCase[] =>
  cases.map((entry) => ({ ...entry, group }));

/**
 * The contract of a `Driver`: values survive the way there and back, a transaction commits whole or not at all, the
 * server's SQLSTATE is visible, and a lost connection is an error that leaves the pool usable.
 */
export const driverSuite = defineSuite<DriverHarness>("driver", [
  ...grouped("values", values),
  ...grouped("transactions", committing),
  ...grouped("errors", failing),
  ...grouped("lost connections", connectionLoss),
]);
