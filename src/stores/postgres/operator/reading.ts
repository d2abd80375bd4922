import type { Driver, SqlParameter, SqlRow } from "../driver-port.ts";
import { ownFailure } from "../errors.ts";
import { inSchema, type StatementName, statementRunner } from "../statements.ts";
import { during, turns } from "../turns.ts";

/** A statement of an operator's look: ours by name, or one that was put together for it. */
export type Ask = (
  statement: StatementName | { readonly sql: string },
  parameters: readonly SqlParameter[],
) => Promise<readonly SqlRow[]>;

/** A database as operators work with it: every look and every change is one short transaction. */
export interface OperatorDatabase {
  /** The schema's name, without quotes. */
  readonly schema: string;
  /** Read-only, at most 3 seconds a statement. Raises `StoreFailure` (`timeout` where that was not enough), or the client's own error. */
  look<R>(body: (ask: Ask) => Promise<R>): Promise<R>;
  /** The same, and what it changes is committed together or not at all. */
  change<R>(body: (ask: Ask) => Promise<R>): Promise<R>;
}

/** How long one statement may take, in milliseconds. */
const STATEMENT_MS = 3_000;

/** Transactions at once: the pool is mostly that of the service, whose requests must find a connection. */
const AT_ONCE = 2;

/** Opens a database for operators. Raises `oncekey_config_invalid` for a bad schema name. */
export function operatorDatabase<Tx>(driver: Driver<Tx>, schema: string): OperatorDatabase {
  const runOn = statementRunner(driver, schema);
  const takeTurn = turns(AT_ONCE);
  const inside = <R>(readOnly: boolean, body: (ask: Ask) => Promise<R>) =>
    during(takeTurn, () =>
      driver.transaction(async (tx) => {
        await runOn("console_limits", [readOnly, String(STATEMENT_MS)], tx);
        return body((statement, parameters) =>
          typeof statement === "string"
            ? runOn(statement, parameters, tx)
            : driver.run(inSchema(statement.sql, schema), parameters, tx),
        );
      }),
    ).catch((error: unknown) => {
      throw ownFailure(error);
    });
  return { schema, look: (body) => inside(true, body), change: (body) => inside(false, body) };
}
