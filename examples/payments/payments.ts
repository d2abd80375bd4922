import { readFileSync } from "node:fs";
import { createOncekey, type Observer } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { migrate, postgresStore } from "oncekey/postgres";
import pg from "pg";
import type { Step } from "./lab.ts";
import { createCharge } from "./operations/charges.ts";
import { createInvoice } from "./operations/invoices.ts";
import { createRefund } from "./operations/refunds.ts";
import { describeError } from "./problem.ts";
import { createPspClients, type PspClients } from "./psp-client.ts";
import type { PspRecover, Settings } from "./settings.ts";

/** A pool or a transaction: whatever runs SQL. */
export type Queryable = Pick<pg.ClientBase, "query">;

/** The Oncekey instance of this example. */
export type Once = ReturnType<typeof openOncekey>;

/** What an operation is made of. */
export interface OperationParts {
  readonly once: Once;
  /** For operations that look up their own tables outside of any transaction. */
  readonly pool: pg.Pool;
  readonly psp: PspClients;
  readonly pspRecover: PspRecover;
  /** Runs a business step; in the lab it can be slowed down or killed. */
  readonly step: Step;
  readonly maxDurationMs: number;
  /** Of the code that is deployed. */
  readonly version: number;
}

/** The business of this example: its operations, ready to be bound to routes or resumed by a worker. */
export interface Payments {
  readonly once: Once;
  readonly pool: pg.Pool;
  readonly operations: {
    readonly createInvoice: ReturnType<typeof createInvoice>;
    readonly createCharge: ReturnType<typeof createCharge>;
    readonly createRefund: ReturnType<typeof createRefund>;
  };
  /** Closes the connections. */
  end(): Promise<void>;
}

/** Where the example stands, and what the lab hooks in. */
export interface PaymentsOptions {
  readonly settings: Settings;
  readonly databaseUrl: string;
  readonly pspUrl: string;
  readonly step: Step;
  readonly onPoint: (point: string) => Promise<void>;
  /** Told of everything that happens; default: nobody is. */
  readonly observe?: Observer;
}

const LONGEST_RUN_MS = 60_000;
const POOL_SIZE = 12;
const CONTROL_POOL_SIZE = 2;

/** Makes the tables where they are missing, defines the operations and starts Oncekey. */
export async function openPayments({
  settings,
  databaseUrl,
  pspUrl,
  step,
  onPoint,
  observe,
}: PaymentsOptions): Promise<Payments> {
  const pool = openPool(databaseUrl, POOL_SIZE);
  const control = openPool(databaseUrl, CONTROL_POOL_SIZE);
  const end = async () => void (await Promise.all([pool.end(), control.end()]));
  try {
    const once = openOncekey({ pool, control, settings, onPoint, observe });
    const maxDurationMs = Math.min(LONGEST_RUN_MS, Math.floor((settings.retentionMs ?? Infinity) / 2));
    const psp = createPspClients(pspUrl);
    const { pspRecover, operationVersion: version } = settings;
    const parts: OperationParts = { once, pool, psp, pspRecover, step, maxDurationMs, version };
    const operations = {
      createInvoice: createInvoice(parts),
      createCharge: createCharge(parts),
      createRefund: createRefund(parts),
    };
    await createTables(pool);
    await once.start();
    return { once, pool, operations, end };
  } catch (error) {
    await end();
    throw error;
  }
}

function openPool(connectionString: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString, max, connectionTimeoutMillis: 5_000 });
  // Without listeners, a connection that breaks would end the process: while idle (the pool's own event), and while a
  // handler holds it between two statements (the next one rejects).
  pool.on("error", (error) => console.error(`database connection lost: ${describeError(error)}`));
  pool.on("connect", (client) => void client.on("error", () => undefined));
  return pool;
}

interface OncekeyParts extends Pick<PaymentsOptions, "settings" | "onPoint"> {
  readonly pool: pg.Pool;
  readonly control: pg.Pool;
  readonly observe: Observer | undefined;
}

function openOncekey({ pool, control, settings, onPoint, observe }: OncekeyParts) {
  return createOncekey({
    // Leases are renewed over connections of their own: refunds use the main pool as they like.
    store: postgresStore(fromPg(pool), { control: fromPg(control) }),
    publishRetention: true,
    encryptionKeys: settings.encryptionKeys,
    fingerprintSecrets: settings.fingerprintSecrets,
    onPoint,
    ...(observe !== undefined && { observe }),
    onError: (error, about) => console.error(`oncekey: ${about.operation} at ${about.at}: ${describeError(error)}`),
    ...(settings.profile !== undefined && { profile: settings.profile }),
    ...(settings.leaseMs !== undefined && { leaseMs: settings.leaseMs }),
    ...times(settings),
  });
}

/** A short retention takes the wait and the clients' retry window with it; Oncekey refuses times that do not fit. */
function times({ retentionMs, waitMs }: Settings) {
  if (retentionMs === undefined) return waitMs === undefined ? {} : { waitMs };
  const longestWaitMs = Math.floor(retentionMs / 4);
  return {
    retentionMs,
    waitMs: Math.min(waitMs ?? 5_000, longestWaitMs),
    clientRetryWindowMs: Math.min(12 * 60 * 60 * 1000, Math.floor(retentionMs / 2)),
  };
}

async function createTables(pool: pg.Pool): Promise<void> {
  await migrate(fromPg(pool));
  const client = await pool.connect();
  try {
    // Several APIs may start at once, and "if not exists" alone is no protection against that.
    const schema = readFileSync(new URL("./schema.sql", import.meta.url), "utf8");
    await client.query(`begin; select pg_advisory_xact_lock(hashtext('oncekey payments example')); ${schema}; commit`);
    client.release();
  } catch (error) {
    client.release(true);
    throw error;
  }
}
