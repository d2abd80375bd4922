import { OncekeyError } from "../../core/errors.ts";
import { sameDigest } from "../../core/fingerprint.ts";
import type { Store, StoreTraits } from "../../core/store.ts";
import { arrivalStatements } from "./arrivals.ts";
import { bodyList } from "./bodies.ts";
import { committing, lockWait, matched, type Part, type Run } from "./committing.ts";
import type { Driver } from "./driver-port.ts";
import { ownFailure, sqlState, violates } from "./errors.ts";
import {
  type GroupedStatements,
  type GroupOptions,
  groupLimits,
  groupStatements,
  singleStatements,
} from "./group-statements.ts";
import { nothingSeen } from "./layout-seen.ts";
import { identityLockKey } from "./lock-keys.ts";
import { maintainLayout } from "./maintain.ts";
import { outboxStore } from "./outbox.ts";
import { resolver } from "./resolve.ts";
import { firstEntry, storedIntent, storedJournal } from "./rows.ts";
import { checkSchema } from "./schema-check.ts";
import { positionTaken, sendInside } from "./session.ts";
import { DEFAULT_SCHEMA, statementRunner } from "./statements.ts";
import { sweepStatements } from "./sweep.ts";
import { transactionRunner } from "./transaction.ts";
import { during, type TakeTurn, turns } from "./turns.ts";
import { withinRunner } from "./within.ts";

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /** Schema that the tables live in: lower case letters, digits, underscores. Default `oncekey`. */
  readonly schema?: string;
  /**
   * A second, small pool for lease renewals, which business transactions cannot starve. Demanded where the size of the
   * main pool is unknown.
   */
  readonly control?: Driver<unknown>;
  /**
   * Whether claims, look-ups and completions that come while another of their kind is under way are merged into one
   * statement and one commit. A lone one is never delayed. Default `true`, where the driver can.
   */
  readonly groups?: boolean | GroupOptions;
}

/**
 * Keeps entries in PostgreSQL 13 or later, through the caller's own client: `postgresStore(fromPg(pool))`. `Tx` is that
 * client's transaction type. Needs the schema of `migrate()`; never creates anything itself. Where the pool's size is
 * known and there is no `control`, transactions are held to one fewer than its connections, so that look-ups and lease
 * renewals always find one. Raises `oncekey_config_invalid` for a bad schema name or bad limits of groups.
 */
export function postgresStore<Tx>(driver: Driver<Tx>, options: PostgresStoreOptions = {}): Store<Tx> {
  checkDriver(driver);
  const schema = options.schema ?? DEFAULT_SCHEMA;
  const runOn = statementRunner(driver, schema);
  const takeConnection = connectionTurns(driver);
  const run = committing(runOn, takeConnection);
  const alone = options.control === undefined;
  const seen = nothingSeen();
  const transaction = transactionRunner({ driver, schema, run: runOn, seen, alone, takeConnection });
  const limits = groupLimits(driver, options.groups);
  const single = singleStatements(run, seen);
  const once: Run = (name, parameters) => during(takeConnection, () => runOn(name, parameters));
  const statements = limits === null ? single : groupStatements(single, once, limits, seen);
  const renew = options.control === undefined ? run : committing(statementRunner(options.control, schema));
  return {
    name: "postgres",
    traits: traitsOf(driver, options.control),
    start: () => checkSchema(run),
    clockMs: async () => Number((await run("clock", []))[0]?.clock_ms),
    running: async (id) => (await run("running", [identityLockKey(schema, id)]))[0]?.running === true,
    complete: statements.complete,
    ...claimStatements(run, statements),
    ...leaseStatements(run, renew),
    ...endStatements(run),
    ...recordStatements(run),
    ...sweepStatements(run),
    ...arrivalStatements(run),
    maintain: (signal) => maintainStore(driver, schema, signal),
    outbox: outboxStore(run),
    // A body is noted while a business transaction is open, which must not have to wait for another one's connection.
    bodies: bodyList(renew),
    resolve: resolver({ run: runOn, transaction }),
    transaction,
    within: withinRunner({ schema, run: runOn, seen }),
    send: (tx, message) => sendInside({ tx, schema, run: runOn }, message),
    async owns(tx, id, fence) {
      const rows = await runOn("owns", [id, fence], tx).catch(raiseOwn);
      return matched(rows);
    },
  };
}

/** Upkeep of the layout; a role that does not own the tables leaves it to one that does. */
async function maintainStore<Tx>(driver: Driver<Tx>, schema: string, signal?: AbortSignal): Promise<boolean> {
  const said = await maintainLayout(driver, { schema, ...(signal && { signal }) });
  return said.kind === "maintained" && said.created + said.dropped > 0;
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
 * Never more at once than there are connections. A pool would make them wait just as well, but Postgres.js sends them
 * one behind the other on a busy connection, and a BEGIN that is the last to fit is never noticed as one (its issue 1189).
 */
function connectionTurns<Tx>({ connections }: Driver<Tx>): TakeTurn {
  return turns(connections ?? Infinity);
}

function claimStatements(
  run: Run,
  { read, insertClaim }: GroupedStatements,
): Part<never, "read" | "claim" | "takeOver"> {
  /** The first answer may have been lost: a row that carries this attempt's own fence is ours. */
  const ownRow = async (id: Uint8Array, fence: Uint8Array) => {
    const entry = await read(id);
    return entry?.state === "in_progress" && sameDigest(entry.fence, fence) ? entry : null;
  };
  return {
    read,
    async claim(entry, leaseMs, commit = "synchronous") {
      return (await insertClaim(entry, leaseMs, commit)) ?? (await ownRow(entry.id, entry.fence));
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

function endStatements(run: Run): Part<never, "forgetExpired" | "release" | "markUnknown"> {
  return {
    forgetExpired: async (id) => matched(await run("forget_expired", [id])),
    async release(id, fence, keep) {
      if (!keep && (await releasedFresh(run, id, fence))) return true;
      return matched(await run("release_recorded", [id, fence, lockWait(), false, 0]));
    },
    async markUnknown(id, fence, { reason, provisional, sweepInMs, quietMs }) {
      const stored = [provisional?.status ?? null, provisional?.content ?? null];
      return matched(await run("mark_unknown", [id, fence, reason, ...stored, lockWait(), sweepInMs, quietMs]));
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
    async openIntent(id, fence, { call, generation, derivedKey, requestDigest, form, settlesWithinMs }) {
      const sent = [call, generation, derivedKey, requestDigest, lockWait(), form, settlesWithinMs];
      const [row] = await run("open_intent", [id, fence, ...sent]);
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

function raiseOwn(error: unknown): never {
  throw ownFailure(error);
}
