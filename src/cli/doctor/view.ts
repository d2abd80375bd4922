import type { Driver, SqlParameter } from "../../stores/postgres/index.ts";
import type { OpenClient } from "../client.ts";
import { type ConnectionPids, type Given, numberOf, type View } from "./check.ts";

/** No statement of a check may run or wait for longer. */
const LIMITS = `SELECT pg_backend_pid() AS pid, set_config('transaction_read_only', 'on', true),
  set_config('statement_timeout', '5000', true), set_config('lock_timeout', '1000', true)`;

/** What a view is made from. */
export interface ViewOf {
  readonly driver: Driver<unknown>;
  /** A valid name, without quotes. */
  readonly schema: string;
  readonly given: Given;
  /** Opens the same database through another client. */
  open(): OpenClient;
  /** Default: the system's clock. */
  now?(): number;
}

/** A view of a database: every statement in a read-only transaction of its own, so that one that fails spoils no other. */
export function viewOf({ driver, schema, given, open, now = Date.now }: ViewOf): View {
  let pids: ConnectionPids | null = null;
  const sql = (text: string, parameters: readonly SqlParameter[] = []) =>
    driver.transaction(async (tx) => {
      const limits = await driver.run(LIMITS, [], tx);
      pids = { client: promisedPid(tx), server: numberOf(limits[0], "pid") };
      return driver.run(text, parameters, tx);
    });
  return {
    schema: `"${schema}"`,
    given,
    driver,
    now,
    sql,
    pids: () => pids,
    async beside(body) {
      const other = open();
      try {
        return await body(viewOf({ driver: other.driver, schema, given, open, now }));
      } finally {
        await other.close();
      }
    },
  };
}

/** What the client was told when it connected. Only pg keeps it where a transaction can see it. */
function promisedPid(tx: unknown): number | null {
  const pid = (tx as { processID?: unknown } | null)?.processID;
  return typeof pid === "number" ? pid : null;
}
