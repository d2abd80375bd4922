import type { Run } from "./committing.ts";
import type { Driver, SqlRow } from "./driver-port.ts";
import { ownFailure, sqlState, storeFailure } from "./errors.ts";
import { milliseconds } from "./limits.ts";
import { boolean, number, text, textOrNull } from "./rows.ts";
import { inSchema, statementRunner } from "./statements.ts";

/** Most partitions that are made ahead: every look-up would read them. */
export const PARTITIONS_AHEAD_MOST = 100;

/** How long a change of tables waits for a lock, in milliseconds: whoever comes behind it waits as long. */
const DDL_WAIT_MS = 50;

/** How often a change is tried again where it did not get its locks, and the pause between, in milliseconds. */
const CHANGE_TRIES = 100;
const CHANGE_PAUSE_MS = 100;

/** Statements of one open transaction. */
export interface InTransaction {
  readonly run: Run;
  /** A command without parameters. */
  ddl(sql: string): Promise<unknown>;
}

/**
 * A transaction that changes tables, done again as often as it does not get its locks at once: it gives way, so that
 * traffic waits {@link DDL_WAIT_MS} at most. Raises `StoreFailure` (`contention`) where it never gets them.
 */
export async function changing<Tx>(
  driver: Driver<Tx>,
  schema: string,
  work: (change: InTransaction) => Promise<void>,
  tries = CHANGE_TRIES,
): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      return await changeOnce(driver, schema, work);
    } catch (error) {
      if (!["55P03", "40P01"].includes(sqlState(error) ?? "")) throw ownFailure(error);
      if (tried >= tries) throw storeFailure("contention", error);
    }
    await new Promise((resolve) => setTimeout(resolve, CHANGE_PAUSE_MS * (0.5 + Math.random())));
  }
}

function changeOnce<Tx>(
  driver: Driver<Tx>,
  schema: string,
  work: (change: InTransaction) => Promise<void>,
): Promise<void> {
  const runOn = statementRunner(driver, schema);
  return driver.transaction(async (tx) => {
    const change: InTransaction = {
      run: (name, parameters) => runOn(name, parameters, tx),
      ddl: (sql) => driver.run(sql, [], tx),
    };
    await change.run("layout_lock", [milliseconds(DDL_WAIT_MS)]);
    await work(change);
  });
}

/** A partition that is still to be made, in seconds since 1970. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The spans that rows of layout_state.sql lack: without a gap, up to the longest retention and one width more. */
export function missingSpans(rows: readonly SqlRow[]): Span[] {
  const [first = {}] = rows;
  const width = number(first, "width_s");
  const now = number(first, "now") / 1_000;
  const known = rows.filter(({ partition }) => partition !== null);
  const last = Math.max(0, ...known.map((row) => number(row, "to_at") / 1_000));
  const spans: Span[] = [];
  const until = now + number(first, "retention_s") + width;
  for (let from = Math.max(last, Math.floor(now / width) * width); from < until; from += width) {
    spans.push({ from, to: from + width });
  }
  return spans;
}

/**
 * Makes what is missing. Each table is made and then attached: that waits for no reader or writer of the others. It belongs
 * to the owner of the table of outcomes, whoever makes it: made by a superuser it could not be dropped by that owner.
 */
export async function addPartitions(change: InTransaction, schema: string, rows: readonly SqlRow[]): Promise<number> {
  const spans = missingSpans(rows);
  const owner = textOrNull(rows[0] ?? {}, "other_owner");
  for (const span of spans) await addPartition(change, schema, span, owner);
  return spans.length;
}

async function addPartition(
  { run, ddl }: InTransaction,
  schema: string,
  { from, to }: Span,
  owner: string | null,
): Promise<void> {
  const name = `outcome_${from}`;
  const added = await run("partition_add", [name, from, to]);
  if (added.length === 0) return;
  const like = "LIKE oncekey.outcome INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES";
  await ddl(inSchema(`CREATE TABLE oncekey.${name} (${like})`, schema));
  // The owner's name is none of ours to put a schema into.
  if (owner !== null) await ddl(`${inSchema(`ALTER TABLE oncekey.${name} OWNER TO`, schema)} ${owner}`);
  const bounds = [from, to].map((at) => `'${new Date(at * 1_000).toISOString()}'`);
  const values = `FOR VALUES FROM (${bounds[0]}) TO (${bounds[1]})`;
  await ddl(inSchema(`ALTER TABLE oncekey.outcome ATTACH PARTITION oncekey.${name} ${values}`, schema));
}

/** In another state than it was seen in, already gone, a lock that was not had, or cancelled: seen anew next time. */
const NOT_NOW = /^(?:55000|42P01|42P17|55P03|40P01|57014)$/;

/**
 * Drops a partition that is past, whatever an earlier maintainer has left of it. Detaching waits for the transactions that
 * may still read it, and holds up nobody meanwhile; where the signal aborts, the server goes on with it alone. `false`: not
 * dropped yet, somebody holds it.
 */
export async function dropPartition<Tx>(
  driver: Driver<Tx>,
  schema: string,
  row: SqlRow,
  signal?: AbortSignal,
): Promise<boolean> {
  const name = text(row, "partition");
  const state = text(row, "state");
  if (!boolean(row, "expired")) return false;
  const detach = inSchema(`ALTER TABLE oncekey.outcome DETACH PARTITION oncekey.${name}`, schema);
  if (state === "attached" && !(await detached(driver.run(`${detach} CONCURRENTLY`, []), signal))) return false;
  try {
    // Unlike the detach it waits for the same transactions with the partition locked, and whoever asks for its size waits
    // behind it: it gives way as all changes of tables do.
    if (state === "pending") await changing(driver, schema, ({ ddl }) => ddl(`${detach} FINALIZE`).then(() => {}), 1);
    await changing(driver, schema, (change) => removeTable(change, schema, name), 1);
    return true;
  } catch (error) {
    if (NOT_NOW.test(sqlState(error) ?? "")) return false;
    throw error;
  }
}

async function removeTable({ run, ddl }: InTransaction, schema: string, name: string): Promise<void> {
  await ddl(inSchema(`DROP TABLE IF EXISTS oncekey.${name}`, schema));
  await run("partition_remove", [name]);
}

/** `false`: another maintainer is at it, the server could not do it now, or nobody waits any longer. */
async function detached(detaching: Promise<unknown>, signal: AbortSignal | undefined): Promise<boolean> {
  const done = detaching.then(
    () => true,
    (error: unknown) => {
      if (NOT_NOW.test(sqlState(error) ?? "")) return false;
      throw ownFailure(error);
    },
  );
  if (signal === undefined) return done;
  if (signal.aborted) {
    done.catch(() => {});
    return false;
  }
  let stop = () => {};
  const stopped = new Promise<false>((resolve) => {
    stop = () => resolve(false);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([done, stopped]);
  } finally {
    signal.removeEventListener("abort", stop);
    done.catch(() => {});
  }
}
