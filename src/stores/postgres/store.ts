import { OncekeyError } from "../../core/errors.ts";
import { sameDigest } from "../../core/fingerprint.ts";
import { encodeOutcome } from "../../core/outcome.ts";
import type { Store, StoreTraits } from "../../core/store.ts";
import type { Driver, SqlParameter, SqlRow } from "./driver-port.ts";
import { ownFailure, sqlState, violates } from "./errors.ts";
import { completionParameters, entryParameters, number, storedEntry, storedIntent, storedJournal } from "./rows.ts";
import { checkSchema } from "./schema-check.ts";
import { milliseconds, positionTaken } from "./session.ts";
import { DEFAULT_SCHEMA, type RunStatement, type StatementName, statementRunner } from "./statements.ts";
import { transactionRunner } from "./transaction.ts";
import { during, type TakeTurn, turns } from "./turns.ts";

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /** Schema that the tables live in: lower case letters, digits, underscores. Default `oncekey`. */
  readonly schema?: string;
  /**
   * A second, small pool for lease renewals, which business transactions cannot starve. Demanded where the size of the
   * main pool is unknown.
   */
  readonly control?: Driver<unknown>;
}

/** How long a statement of ours waits for a row that somebody else holds, in milliseconds. */
const LOCK_WAIT_MS = 2_000;

/** How often a statement in a commit of its own is sent again after 40001 or 40P01. */
const TRIES = 6;

type Run = (name: StatementName, parameters: readonly SqlParameter[]) => Promise<readonly SqlRow[]>;
type Part<Tx, Name extends keyof Store> = Pick<Store<Tx>, Name>;

/**
 * Keeps entries in PostgreSQL 13 or later, through the caller's own client: `postgresStore(fromPg(pool))`. `Tx` is that
 * client's transaction type. Needs the schema of `migrate()`; never creates anything itself. Where the pool's size is
 * known and there is no `control`, transactions are held to one fewer than its connections, so that look-ups and lease
 * renewals always find one. Raises `oncekey_config_invalid` for a bad schema name.
 */
export function postgresStore<Tx>(driver: Driver<Tx>, options: PostgresStoreOptions = {}): Store<Tx> {
  checkDriver(driver);
  const schema = options.schema ?? DEFAULT_SCHEMA;
  const runOn = statementRunner(driver, schema);
  const takeConnection = connectionTurns(driver);
  const run = committing(runOn, takeConnection);
  const renew = options.control === undefined ? run : committing(statementRunner(options.control, schema));
  return {
    name: "postgres",
    traits: traitsOf(driver, options.control),
    start: () => checkSchema(run),
    ...claimStatements(run),
    ...leaseStatements(run, renew),
    ...endStatements(run),
    ...recordStatements(run),
    ...sweepStatements(run),
    transaction: transactionRunner({
      driver,
      schema,
      run: runOn,
      alone: options.control === undefined,
      takeConnection,
    }),
    async owns(tx, id, fence) {
      const rows = await runOn("owns", [id, fence], tx).catch(raiseOwn);
      return matched(rows);
    },
  };
}

function checkDriver(driver: unknown): void {
  if (typeof (driver as Partial<Driver<unknown>> | undefined)?.run === "function") return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    "postgresStore needs a driver around your client: postgresStore(fromPg(pool)). Nothing was connected.",
  );
}

function traitsOf<Tx>(driver: Driver<Tx>, control: Driver<unknown> | undefined): StoreTraits {
  const { connections, abandons } = driver;
  if (control !== undefined) return { connections, abandons, renews: true };
  return { connections, abandons, renews: connections === null ? "unknown" : connections > 1 };
}

/**
 * Runs statements that commit on their own. Under REPEATABLE READ or SERIALIZABLE as the database's default, a race that
 * READ COMMITTED would settle quietly is refused with 40001: nothing was done, and a new snapshot settles it.
 */
function committing<Tx>(run: RunStatement<Tx>, takeConnection: TakeTurn = turns(Infinity)): Run {
  return async (name, parameters) => {
    for (let tried = 1; ; tried++) {
      try {
        return await during(takeConnection, () => run(name, parameters));
      } catch (error) {
        const isRace = ["40001", "40P01"].includes(sqlState(error) ?? "");
        if (!isRace || tried === TRIES) throw ownFailure(error);
      }
      await pause(5 * 2 ** tried);
    }
  };
}

/**
 * Never more at once than there are connections. A pool would make them wait just as well, but Postgres.js sends them
 * one behind the other on a busy connection, and a BEGIN that is the last to fit is never noticed as one (its issue 1189).
 */
function connectionTurns<Tx>({ connections }: Driver<Tx>): TakeTurn {
  return turns(connections ?? Infinity);
}

function claimStatements(run: Run): Part<never, "read" | "claim" | "takeOver"> {
  const read = async (id: Uint8Array) => firstEntry(await run("read", [id]));
  /** The first answer may have been lost: a row that carries this attempt's own fence is ours. */
  const ownRow = async (id: Uint8Array, fence: Uint8Array) => {
    const entry = await read(id);
    return entry?.state === "in_progress" && sameDigest(entry.fence, fence) ? entry : null;
  };
  return {
    read,
    async claim(entry, leaseMs) {
      const rows = await run("claim", [...entryParameters(entry), leaseMs, lockWait(leaseMs)]);
      return firstEntry(rows) ?? (await ownRow(entry.id, entry.fence));
    },
    async takeOver(id, seen, fence, leaseMs) {
      const { attempt, state } = seen;
      const rows = await run("take_over", [id, seen.fence, attempt, state, fence, leaseMs, lockWait(leaseMs)]);
      return firstEntry(rows) ?? (await ownRow(id, fence));
    },
  };
}

function leaseStatements(run: Run, renew: Run): Part<never, "renew" | "suspend"> {
  return {
    renew: async (id, fence, leaseMs) => matched(await renew("renew", [id, fence, leaseMs, lockWait(leaseMs)])),
    suspend: async (id, fence, waitMs) => matched(await run("suspend", [id, fence, waitMs, lockWait()])),
  };
}

function endStatements(run: Run): Part<never, "forgetExpired" | "release" | "markUnknown" | "complete"> {
  return {
    forgetExpired: async (id) => matched(await run("forget_expired", [id])),
    async release(id, fence, keep) {
      if (!keep && (await releasedFresh(run, id, fence))) return true;
      return matched(await run("release_recorded", [id, fence, lockWait()]));
    },
    async markUnknown(id, fence, reason, provisional) {
      const stored = provisional === null ? [null, null] : [provisional.status, encodeOutcome(provisional)];
      return matched(await run("mark_unknown", [id, fence, reason, ...stored, lockWait()]));
    },
    async complete(id, fence, completion) {
      return matched(await run("complete", [id, fence, ...completionParameters(completion), null]));
    },
  };
}

/** Deletes a claim that left nothing behind. A record that was committed meanwhile makes the foreign key refuse (23503). */
async function releasedFresh(run: Run, id: Uint8Array, fence: Uint8Array): Promise<boolean> {
  try {
    return matched(await run("release_fresh", [id, fence, lockWait()]));
  } catch (error) {
    if (sqlState(error) === "23503") return false;
    throw error;
  }
}

function recordStatements(run: Run): Part<never, "journal" | "openIntent" | "cancelIntent" | "recordCall"> {
  const journal = async (id: Uint8Array) => storedJournal(await run("journal", [id]));
  return {
    journal,
    async openIntent(id, fence, { call, generation, derivedKey, requestDigest }) {
      const [row] = await run("open_intent", [id, fence, call, generation, derivedKey, requestDigest, lockWait()]);
      return row === undefined ? null : storedIntent(row);
    },
    async cancelIntent(id, fence, call, generation) {
      return matched(await run("cancel_intent", [id, fence, call, generation, lockWait()]));
    },
    async recordCall(id, fence, record) {
      const { position, kind, name, value } = record;
      try {
        return matched(await run("record_call", [id, fence, position, kind, name, value, lockWait()]));
      } catch (error) {
        if (!violates(error, "phase_pkey")) throw error;
        const known = (await journal(id)).records.find((other) => other.position === position);
        if (known?.kind === kind && known.name === name && sameDigest(known.value, value)) return true;
        throw positionTaken(error);
      }
    },
  };
}

function sweepStatements(run: Run): Part<never, "lapsed" | "purge"> {
  return {
    async lapsed(targets, limit) {
      const entries = [];
      for (const { operation, runKind, operationVersion } of targets) {
        entries.push(...(await run("lapsed", [operation, runKind, operationVersion, limit])).map(storedEntry));
      }
      return entries.sort((a, b) => a.clock.claimableInMs - b.clock.claimableInMs).slice(0, limit);
    },
    async purge(limit) {
      const [row] = await run("purge", [limit]);
      return number(row ?? {}, "purged");
    },
  };
}

/** A wait well under the lease: a lease that was computed before a long wait would be dead at birth. */
function lockWait(leaseMs = Infinity): string {
  return milliseconds(Math.min(LOCK_WAIT_MS, leaseMs / 4));
}

/** Waits up to `ms`, at random, so that racers do not meet again. */
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.random() * ms));

const matched = (rows: readonly SqlRow[]): boolean => rows[0]?.matched === true;

const firstEntry = (rows: readonly SqlRow[]) => (rows[0] === undefined ? null : storedEntry(rows[0]));

function raiseOwn(error: unknown): never {
  throw ownFailure(error);
}
