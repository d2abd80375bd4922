import assert from "node:assert/strict";
import { type Session, type Store, StoreFailure } from "../core/store.ts";

/** Why {@link rolledBack} ended its transaction. */
class RollBack extends Error {
  override readonly name = "RollBack";
}

/** Runs the body in a transaction that is then rolled back, and gives what the body gave. */
export async function rolledBack<R>(store: Store, body: (session: Session<unknown>) => Promise<R>): Promise<R> {
  const results: R[] = [];
  const marker = new RollBack("rolled back by the suite");
  const ended = store.transaction(async (session) => {
    results.push(await body(session));
    throw marker;
  });
  await assert.rejects(ended, (error) => error === marker);
  return results[0] as R;
}

/** More than any store should need under the few racers of this suite. */
const MOST_TRIES = 50;

/**
 * Runs the body in a transaction as the engine does: again where the store rolled it back for contention (at
 * SERIALIZABLE any transaction may be refused so), and `null` where somebody else finished the entry first.
 */
export async function settledRace<R>(store: Store, body: (session: Session<unknown>) => Promise<R>): Promise<R | null> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await store.transaction(body);
    } catch (error) {
      const kind = error instanceof StoreFailure ? error.kind : null;
      if (kind === "conflict") return null;
      if (kind !== "contention" || tried === MOST_TRIES) throw error;
    }
  }
}

/** A transaction whose first part has run and that stays open until told. */
export interface OpenTransaction<R> {
  readonly result: R;
  readonly session: Session<unknown>;
  commit(): Promise<void>;
  rollBack(): Promise<void>;
}

/**
 * Runs the body in a transaction and then, while that is open, `during`. Rolled back at the end unless it was committed:
 * a case that fails must not leave a transaction that everything else waits for.
 */
export async function whileOpen<R>(
  store: Store,
  body: (session: Session<unknown>) => Promise<R>,
  during: (open: OpenTransaction<R>) => Promise<void>,
): Promise<void> {
  const decision = settled<boolean>();
  const started = settled<{ result: R; session: Session<unknown> }>();
  const ended = store.transaction(async (session) => {
    started.settle({ result: await body(session), session });
    if (!(await decision.promise)) throw new RollBack("rolled back by the suite");
  });
  const end = async (commit: boolean) => {
    decision.settle(commit);
    await ended.catch((error: unknown) => {
      if (!(error instanceof RollBack)) throw error;
    });
  };
  const endedEarly = ended.then((): never => assert.fail("the transaction ended before it was told to"));
  const open = await Promise.race([started.promise, endedEarly]);
  endedEarly.catch(() => {});
  try {
    await during({ ...open, commit: () => end(true), rollBack: () => end(false) });
  } finally {
    await end(false);
  }
}

function settled<T>(): { promise: Promise<T>; settle: (value: T) => void } {
  let settle: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, settle };
}
