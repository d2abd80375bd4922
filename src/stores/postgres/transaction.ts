import { type Session, type Store, StoreFailure } from "../../core/store.ts";
import type { Driver } from "./driver-port.ts";
import { commitFailure, looksDisconnected, ownFailure, serverFailure, storeFailure } from "./errors.ts";
import type { LayoutSeen } from "./layout-seen.ts";
import { openSession } from "./session.ts";
import type { RunStatement } from "./statements.ts";
import { during, type TakeTurn, turns } from "./turns.ts";

/** What transactions need. */
export interface TransactionParts<Tx> {
  readonly driver: Driver<Tx>;
  readonly schema: string;
  readonly run: RunStatement<Tx>;
  readonly seen: LayoutSeen;
  /** No second pool: one connection must stay free of transactions. */
  readonly alone: boolean;
  /** A turn for any connection; taken after the transaction's own. */
  readonly takeConnection: TakeTurn;
}

/** How a body ended, which decides what a failure of its transaction means. */
type BodyEnd =
  | { readonly kind: "running" }
  | { readonly kind: "resolved" }
  | { readonly kind: "rejected"; readonly error: unknown };

/** Makes the store's `transaction`. */
export function transactionRunner<Tx>(parts: TransactionParts<Tx>): Store<Tx>["transaction"] {
  const takeTurn = turnsOf(parts);
  return (body) => during(takeTurn, () => during(parts.takeConnection, () => runOne(parts, body)));
}

function turnsOf<Tx>({ driver, alone }: TransactionParts<Tx>): TakeTurn {
  const limit = alone && driver.connections !== null ? Math.max(1, driver.connections - 1) : Infinity;
  return turns(limit);
}

async function runOne<Tx, R>(parts: TransactionParts<Tx>, body: (session: Session<Tx>) => Promise<R>): Promise<R> {
  const { driver, schema, run, seen } = parts;
  let end: BodyEnd = { kind: "running" };
  let isOver = false;
  try {
    return await driver.transaction(async (tx) => {
      try {
        const result = await body(openSession({ tx, schema, run, seen, isOver: () => isOver }));
        end = { kind: "resolved" };
        return result;
      } catch (error) {
        end = { kind: "rejected", error: await bodyFailure(error, () => run("probe", [], tx)) };
        throw error;
      }
    });
  } catch (error) {
    throw transactionFailure(end, error);
  } finally {
    isOver = true;
  }
}

function transactionFailure(end: BodyEnd, error: unknown): unknown {
  switch (end.kind) {
    // COMMIT is sent only after the body: it did not begin, or the connection was lost on the way.
    case "running":
      return ownFailure(error);
    case "rejected":
      return end.error;
    case "resolved":
      return commitFailure(error);
  }
}

/**
 * What a body's error means. SQLSTATEs of the server are sorted; everything else is the handler's own and passes as it
 * is. "Connection refused" may come from another service that the handler called: only a dead transaction makes it ours.
 */
async function bodyFailure(error: unknown, probe: () => Promise<unknown>): Promise<unknown> {
  if (error instanceof StoreFailure) return error;
  const failure = serverFailure(error);
  if (failure !== null || !looksDisconnected(error)) return failure ?? error;
  try {
    await probe();
    return error;
  } catch (dead) {
    // 25P02 is an answer: the connection lives.
    return serverFailure(dead)?.kind === "aborted" ? error : storeFailure("unavailable", error);
  }
}
