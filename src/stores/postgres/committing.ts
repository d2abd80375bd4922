import type { Store } from "../../core/store.ts";
import type { SqlParameter, SqlRow } from "./driver-port.ts";
import { ownFailure, sqlState } from "./errors.ts";
import { milliseconds } from "./limits.ts";
import type { RunStatement, StatementName } from "./statements.ts";
import { during, type TakeTurn, turns } from "./turns.ts";

/** Runs a statement of ours that commits by itself. */
export type Run = (name: StatementName, parameters: readonly SqlParameter[]) => Promise<readonly SqlRow[]>;

/** Some methods of a store. */
export type Part<Tx, Name extends keyof Store> = Pick<Store<Tx>, Name>;

/** How long a statement of ours waits for a row that somebody else holds, in milliseconds. */
export const LOCK_WAIT_MS = 2_000;

/** How often work that commits on its own is done again after 40001 or 40P01. */
const TRIES = 6;

/**
 * Runs statements that commit on their own. Under REPEATABLE READ or SERIALIZABLE as the database's default, a race that
 * READ COMMITTED would settle quietly is refused with 40001: nothing was done, and a new snapshot settles it.
 */
export function committing<Tx>(run: RunStatement<Tx>, takeConnection: TakeTurn = turns(Infinity)): Run {
  const isRace = (error: unknown) => ["40001", "40P01"].includes(sqlState(error) ?? "");
  return (name, parameters) => untilSettled(() => during(takeConnection, () => run(name, parameters)), isRace);
}

/** Does work again, a few times and after a growing pause, where it lost a race. Raises what {@link ownFailure} makes of the rest. */
export async function untilSettled<R>(work: () => Promise<R>, isRace: (error: unknown) => boolean): Promise<R> {
  for (let tried = 1; ; tried++) {
    try {
      return await work();
    } catch (error) {
      if (!isRace(error) || tried === TRIES) throw ownFailure(error);
    }
    await pause(5 * 2 ** tried);
  }
}

/** A wait well under the lease: a lease that was computed before a long wait would be dead at birth. */
export function lockWait(leaseMs = Infinity, mostMs = LOCK_WAIT_MS): string {
  return milliseconds(Math.min(mostMs, leaseMs / 4));
}

/** Whether a fenced statement met its row. */
export const matched = (rows: readonly SqlRow[]): boolean => rows[0]?.matched === true;

/** Waits up to `ms`, at random, so that racers do not meet again. */
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.random() * ms));
