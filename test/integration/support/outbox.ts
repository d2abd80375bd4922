import { createOncekey, type Oncekey, type OncekeyOptions, ok, type RunResult, type TransactionStep } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { createDatabase, query, testPool } from "../../support/postgres.ts";

type Work = (step: TransactionStep<pg.PoolClient, unknown>) => Promise<void>;

/** A database with an instance whose one operation runs what the test gives it. */
export interface OutboxWorld {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly once: Oncekey<pg.PoolClient>;
  readonly told: unknown[];
  /** Runs the work in a transaction of an operation, under a key of its own. */
  transaction(work: Work, of?: { readonly tenant?: string; readonly context?: unknown }): Promise<RunResult>;
  /** An empty outbox for the next test. */
  clear(): Promise<void>;
}

/** Starts one on the shared server. */
export async function outboxWorld(options: Partial<OncekeyOptions<pg.PoolClient>> = {}): Promise<OutboxWorld> {
  const { url } = await createDatabase();
  const pool = testPool(url);
  const told: unknown[] = [];
  const once = createOncekey({ store: postgresStore(fromPg(pool)), onError: (error) => told.push(error), ...options });
  const works = new Map<string, Work>();
  const operation = once.transaction({
    name: "outbox.send",
    version: 1,
    async run(step) {
      await works.get(step.key)?.(step);
      return ok({});
    },
  });
  await once.start();
  return {
    url,
    pool,
    once,
    told,
    transaction(work, { tenant = "acme", context } = {}) {
      const key = `work-${works.size}`;
      works.set(key, work);
      return once.run(operation, { scope: { tenant, client: null }, key, context });
    },
    clear: async () => void (await query(url, "DELETE FROM oncekey.outbox")),
  };
}
