import { OncekeyError } from "../../core/errors.ts";
import { type Session, type Store, StoreFailure, type WithinTransaction } from "../../core/store.ts";
import { ownFailure, serverFailure, sqlState, storeFailure } from "./errors.ts";
import { type LayoutSeen, readEntry } from "./layout-seen.ts";
import { openSession } from "./session.ts";
import type { RunStatement } from "./statements.ts";

/** What the store's `within` needs. */
export interface WithinParts<Tx> {
  readonly schema: string;
  readonly run: RunStatement<Tx>;
  readonly seen: LayoutSeen;
}

/** One run inside a caller's transaction. */
interface Scope<Tx> extends WithinParts<Tx> {
  readonly tx: Tx;
  /** Whether this run had the locks before: then what the transaction has written is its own. */
  hadLocks: boolean;
}

const WHY = {
  none: "no transaction is open there",
  failed: "a statement in it has failed already",
  foreign: "its database has none of Oncekey's tables",
  refused: "its client refuses it",
  late: "it has written already, or has run another key",
  read_only: "it is read only",
  shared: "another run is going on in it",
} as const;

/** Makes the store's `within`. */
export function withinRunner<Tx>(parts: WithinParts<Tx>): Store<Tx>["within"] {
  // Savepoints are a stack: two runs at a time would undo each other's.
  const inUse = new WeakSet<object>();
  return (tx) => {
    if (typeof tx !== "object" && typeof tx !== "function") throw unusable("none");
    if (tx === null) throw unusable("none");
    const scope: Scope<Tx> = { ...parts, tx, hadLocks: false };
    const transaction: WithinTransaction<Tx>["transaction"] = async (body) => {
      if (inUse.has(tx)) throw unusable("shared");
      inUse.add(tx);
      try {
        return await inSavepoint(scope, body);
      } finally {
        inUse.delete(tx);
      }
    };
    return { transaction, read: (id) => readWithin(scope, id) };
  };
}

function readWithin<Tx>({ run, tx, seen }: Scope<Tx>, id: Uint8Array) {
  return readEntry((name, given) => run(name, given, tx).catch((error) => raiseUnusable(error)), seen, id);
}

async function inSavepoint<Tx, R>(scope: Scope<Tx>, body: (session: Session<Tx>) => Promise<R>): Promise<R> {
  const { run, tx, schema, seen } = scope;
  let isOver = false;
  await run("within_begin", [], tx).catch((error) => raiseUnusable(error));
  try {
    const result = await body(openSession({ tx, schema, run: withinRun(scope), seen, isOver: () => isOver }));
    await run("within_end", [], tx);
    return result;
  } catch (error) {
    throw await undone(scope, error);
  } finally {
    isOver = true;
  }
}

/** Runs the session's statements, with the conditions in front of its locks. */
function withinRun<Tx>(scope: Scope<Tx>): RunStatement<Tx> {
  return async (name, parameters, tx) => {
    if (name !== "lock") return scope.run(name, parameters, tx);
    const rows = await scope.run("within_lock", [...parameters.slice(0, 2), scope.hadLocks], tx);
    const result = rows[0]?.result;
    if (result === "late" || result === "read_only") throw unusable(result);
    scope.hadLocks ||= result === "owner";
    return rows;
  };
}

/** What a body's error means, once all that its attempt did is undone and the caller can go on. */
async function undone<Tx>({ run, tx }: Scope<Tx>, error: unknown): Promise<unknown> {
  const failure = error instanceof StoreFailure ? error : (serverFailure(error) ?? error);
  try {
    await run("within_undo", [], tx);
    await run("within_end", [], tx);
    return failure;
  } catch (lost) {
    if (failure instanceof StoreFailure) return failure;
    // Without its savepoint this is not the transaction that was handed in any more.
    return /^(?:25P01|3B001)$/.test(sqlState(lost) ?? "")
      ? storeFailure("transaction_lost", failure)
      : ownFailure(lost);
  }
}

/** Nothing was sent before: an answer that no statement is possible there, or none at all, is about the caller's object. */
function raiseUnusable(error: unknown): never {
  const failure = ownFailure(error);
  const state = sqlState(error);
  // Drivers refuse a transaction that is over in these words, as if the connection were lost.
  const isOver = /transaction is over/i.test(String((error as Error | null)?.message));
  if (state === "25P01" || isOver) throw unusable("none", error);
  if (state === "25P02") throw unusable("failed", error);
  if (state === "42P01" || state === "3F000") throw unusable("foreign", error);
  if (state === null && !(failure instanceof StoreFailure)) throw unusable("refused", error);
  throw failure;
}

function unusable(why: keyof typeof WHY, cause?: unknown): OncekeyError {
  return new OncekeyError(
    "oncekey_transaction_unusable",
    `fromTransaction was given a transaction that cannot be used: ${WHY[why]}. The operation did not run. Open one for this key alone and call once.run() in it before anything else.`,
    { cause },
  );
}
