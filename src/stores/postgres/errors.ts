import { OncekeyError } from "../../core/errors.ts";
import { StoreFailure, type StoreFailureKind } from "../../core/store.ts";
import { TransactionAborted } from "./driver-port.ts";

/** SQLSTATE classes; not every five capitals are one: Node's EPIPE is not. */
const SQLSTATE = /^(?:[0-9][0-9A-Z]|F0|HV|P0|XX)[0-9A-Z]{3}$/;

/** How deep ORMs bury the driver's error. */
const CAUSES = 6;

const SQLSTATE_KINDS: readonly (readonly [RegExp, StoreFailureKind])[] = [
  [/^(?:40001|40P01|55P03)$/, "contention"],
  [/^25P02$/, "aborted"],
  // Cancelled, idle for too long inside a transaction, transaction_timeout, idle session.
  [/^(?:57014|25P03|25P04|57P05)$/, "timeout"],
  // Connection lost, shut down, too many connections or another resource at its end, a standby after a failover.
  [/^(?:08...|57P0[1-4]|53...|25006)$/, "unavailable"],
];

const CONNECTION_CODES =
  /^(?:ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|CONNECTION_\w+|CONNECT_TIMEOUT)$/;

/** node-postgres, PGlite and the pools of ORMs have no codes for these. */
const CONNECTION_MESSAGES =
  /Connection terminated|connection error and is not queryable|was closed and is not queryable|timeout exceeded when trying to connect|Timeout acquiring a connection|Operation timeout|Cannot use a pool after calling end|Query read timeout|PGlite is closed/i;

const MESSAGES: Record<StoreFailureKind, string> = {
  unavailable: "The database cannot be reached, or the connection was lost before an answer. Retry with the same key.",
  contention: "Concurrent transactions touched the same rows. Everything was rolled back; it may be run again.",
  conflict: "The identity has an entry already: somebody else finished first. Everything was rolled back; read it.",
  aborted: "A statement in the transaction failed and its error was swallowed. Everything was rolled back.",
  transaction_lost: "The transaction is not the one that began: the handler ended it. No outcome was stored.",
  commit_unknown: "The connection was lost after COMMIT was sent. It is not known whether it took effect; ask by key.",
  timeout: "The server ended the statement or transaction: it ran or idled for too long. Everything was rolled back.",
};

/** A failure of that kind, in the words of this store. */
export function storeFailure(kind: StoreFailureKind, cause?: unknown): StoreFailure {
  return new StoreFailure(kind, MESSAGES[kind], { cause });
}

/** The SQLSTATE of an error or of what it wraps; `null` where the server did not answer. */
export function sqlState(error: unknown): string | null {
  const coded = causes(error).find(({ code }) => typeof code === "string" && SQLSTATE.test(code));
  return coded === undefined ? null : (coded.code as string);
}

/** Whether a unique violation (23505) names that constraint. */
export function violates(error: unknown, constraint: string): boolean {
  if (sqlState(error) !== "23505") return false;
  // postgres-js spells it constraint_name; an ORM may keep only the message.
  return causes(error).some(
    (cause) =>
      cause.constraint === constraint ||
      cause.constraint_name === constraint ||
      String(cause.message).includes(`"${constraint}"`),
  );
}

/** What the server said, sorted; `null` for everything that is not the store's own business. */
export function serverFailure(error: unknown): StoreFailure | null {
  const state = sqlState(error);
  const kind = state === null ? undefined : SQLSTATE_KINDS.find(([pattern]) => pattern.test(state))?.[1];
  return kind === undefined ? null : storeFailure(kind, error);
}

/** Whether an error looks like a lost connection. Business code talks to others too, so it need not be the database's. */
export function looksDisconnected(error: unknown): boolean {
  return causes(error).some(
    ({ code, message }) =>
      (typeof code === "string" && CONNECTION_CODES.test(code)) ||
      (typeof message === "string" && CONNECTION_MESSAGES.test(message)),
  );
}

/** What a failure of one of our own statements means: a {@link StoreFailure}, or the error as far as it may be shown. */
export function ownFailure(error: unknown): unknown {
  if (error instanceof StoreFailure) return error;
  if (violates(error, "entry_pkey")) return storeFailure("conflict", error);
  if (sqlState(error) === "25001" && isGuard(error)) return isolationRefused(error);
  if (PREPARED_LOST.test(sqlState(error) ?? "")) return preparedLost(error);
  return serverFailure(error) ?? (looksDisconnected(error) ? storeFailure("unavailable", error) : withoutRow(error));
}

/** Of the guard of the partitioned layout (migration 4), not of somebody's own command in the wrong place. */
const isGuard = (error: unknown) =>
  causes(error).some(({ message }) => String(message).includes("needs READ COMMITTED"));

/** What the partitioned layout demands, and what to do. Raises nothing itself: the error is the caller's to throw. */
export function isolationRefused(cause?: unknown): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    'The partitioned layout needs READ COMMITTED: an older snapshot could miss an outcome and run its key again. Nothing was stored. Open transactions at that level (default_transaction_isolation, or your client\'s option), or go back with "oncekey layout plain".',
    { cause },
  );
}

/** A name is taken by somebody else's statement, or belongs to none: the connection is not the one that it seems to be. */
const PREPARED_LOST = /^(?:42P05|26000)$/;

function preparedLost(error: unknown): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    "A prepared statement is not where the driver had left it: a pooler shares connections between clients, or something sent DISCARD or DEALLOCATE. The statement did nothing, its transaction was rolled back. Leave `named` out of the driver's options, or let the pooler keep prepared statements (PgBouncer from 1.21: max_prepared_statements).",
    { cause: error },
  );
}

/** Where a constraint refuses our row, the server's DETAIL shows all of it, key and body included; loggers print that. */
function withoutRow(error: unknown): unknown {
  for (const cause of causes(error)) {
    for (const part of ["detail", "where", "parameters"]) Reflect.deleteProperty(cause, part);
  }
  return error;
}

/** After these the server may have committed, or not: it went away while COMMIT was under way. */
const NO_VERDICT = /^(?:08...|57P0.|40003)$/;

/**
 * Whether a statement that commits by itself has certainly done nothing: the server refused it, and is still there to be
 * asked again.
 */
export function isUndone(error: unknown): boolean {
  const state = sqlState(error);
  // A group asks for as many locks as it has members, in the partitioned layout: more than there may be of them.
  if (state === "53200") return true;
  return state !== null && !NO_VERDICT.test(state) && serverFailure(error)?.kind !== "unavailable";
}

/** Whether the server does not know what the statement asks for: it never will. */
export function isUnsupported(error: unknown): boolean {
  return ["0A000", "42601", "42704", "42883"].includes(sqlState(error) ?? "");
}

/**
 * What a failure after the body had resolved means. Only a verdict of the server says that nothing was committed;
 * silence says nothing, and an absent row proves nothing either while the COMMIT may still be on its way.
 */
export function commitFailure(error: unknown): unknown {
  if (error instanceof TransactionAborted) return storeFailure("aborted", error);
  const state = sqlState(error);
  if (state === null || NO_VERDICT.test(state)) return storeFailure("commit_unknown", error);
  // Our key is not deferred: Postgres.js raises at COMMIT what an earlier statement of the body had met and swallowed.
  if (violates(error, "entry_pkey")) return storeFailure("aborted", error);
  return serverFailure(error) ?? error;
}

type Coded = {
  code?: unknown;
  message?: unknown;
  constraint?: unknown;
  constraint_name?: unknown;
  cause?: unknown;
  original?: unknown;
};

function causes(error: unknown): Coded[] {
  const chain: Coded[] = [];
  let next: unknown = error;
  while (typeof next === "object" && next !== null && chain.length < CAUSES) {
    chain.push(next as Coded);
    // Sequelize has a word of its own for it.
    next = (next as Coded).cause ?? (next as Coded).original;
  }
  return chain;
}
