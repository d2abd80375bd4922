import type { Driver, SqlRow } from "./driver-port.ts";
import { ownFailure } from "./errors.ts";
import type { SchemaOptions } from "./migrate.ts";
import { addPartitions, changing, dropPartition, missingSpans } from "./partitions.ts";
import { boolean, text } from "./rows.ts";
import { DEFAULT_SCHEMA, inSchema, type RunStatement, statementRunner } from "./statements.ts";

/** Options of {@link maintainLayout}. */
export interface MaintainOptions extends SchemaOptions {
  /** Ends the wait for transactions that may still read a partition which is to be dropped. */
  readonly signal?: AbortSignal;
}

/**
 * What one round did. `idle`: the layout is plain, and nothing is left of another. `not_owner`: this role may not change the
 * tables. `busy`: another maintainer is at it.
 */
export type Maintained =
  | { readonly kind: "idle" | "not_owner" | "busy" }
  | { readonly kind: "maintained"; readonly created: number; readonly dropped: number };

/** How long another maintainer leaves the work to one that says nothing more, in milliseconds. */
const LEASE_MS = 60_000;

/**
 * One round of upkeep of the partitioned layout, beside traffic: drops partitions that are past, makes those to come, and
 * after the change back takes the guard away with the last of them. Each step is a commit of its own that the next round
 * goes on from; any number of maintainers may run, one works. Raises `StoreFailure`.
 */
export async function maintainLayout<Tx>(driver: Driver<Tx>, options: MaintainOptions = {}): Promise<Maintained> {
  const schema = options.schema ?? DEFAULT_SCHEMA;
  const run = statementRunner(driver, schema);
  const rows = await run("layout_state", []).catch(raiseOwn);
  const [first = {}] = rows;
  if (!isDue(rows)) return boolean(first, "guarded") ? done(0, 0) : { kind: "idle" };
  if (!boolean(first, "owned")) return { kind: "not_owner" };
  const lease = await run("layout_lease", [LEASE_MS]).catch(raiseOwn);
  if (lease.length === 0) return { kind: "busy" };
  try {
    return await maintain(driver, schema, run, options.signal);
  } finally {
    await run("layout_lease", [0]).catch(() => {});
  }
}

const done = (created: number, dropped: number): Maintained => ({ kind: "maintained", created, dropped });

/** Whether there is anything to do: most rounds are one statement. */
function isDue(rows: readonly SqlRow[]): boolean {
  const [first = {}] = rows;
  if (rows.some(isPast)) return true;
  if (text(first, "name") === "partitioned") return missingSpans(rows).length > 0;
  return boolean(first, "guarded") && first.partition === null;
}

const isPast = (row: SqlRow) => row.partition !== null && boolean(row, "expired");

async function maintain<Tx>(
  driver: Driver<Tx>,
  schema: string,
  run: RunStatement<Tx>,
  signal: AbortSignal | undefined,
): Promise<Maintained> {
  let created = 0;
  let dropped = 0;
  // What is missing comes first: dropping may have to wait for long transactions.
  await changing(driver, schema, async (change) => {
    const rows = await change.run("layout_state", []);
    created = text(rows[0] ?? {}, "name") === "partitioned" ? await addPartitions(change, schema, rows) : 0;
  });
  for (const row of (await run("layout_state", []).catch(raiseOwn)).filter(isPast)) {
    if (signal?.aborted === true) break;
    if (await dropPartition(driver, schema, row, signal)) dropped += 1;
  }
  await changing(driver, schema, async (change) => {
    if ((await change.run("layout_unguard", [])).length === 0) return;
    await change.run("layout_readers", [1]);
    await change.ddl(inSchema("ALTER TABLE oncekey.entry DISABLE TRIGGER entry_one", schema));
  });
  return done(created, dropped);
}

function raiseOwn(error: unknown): never {
  throw ownFailure(error);
}
