import { AssertionError } from "node:assert/strict";
import { crashPoints, type PointsShape } from "../engine/points.ts";
import { type AnyStore, mortalStore } from "./crash-store.ts";

/**
 * The death of a process, in memory. Not an error: an error unwinds, and `catch` and `finally` would write. From the point
 * on this process gets no answer and reaches no store, open transactions are rolled back, and nothing of it ever returns.
 */
export interface Crash {
  /** Where it dies. */
  readonly point: string;
  /** Whether it has died. */
  readonly isDead: boolean;
  /** Resolves at the moment of death. */
  readonly died: Promise<void>;
  /**
   * For `createOncekey({ onPoint })`, and for points of your own: `await crash.onPoint("invoice:inserted")`. Never returns
   * from the point on.
   */
  readonly onPoint: (point: string) => Promise<void>;
  /** The store as the dying process sees it; the process after it gets the store itself. */
  store<S extends AnyStore>(store: S): S;
  /**
   * Runs what the process does, until it dies of it. Raises an `AssertionError` where it ended alive: its point was never
   * passed. An error of the action before that is raised as it is.
   */
  during(action: () => Promise<unknown>): Promise<void>;
}

/**
 * Creates the crash of one process at a point: one of `crashPoints(shape)`, or a name of your own that your code hands to
 * `onPoint`. The `nth` time the point is passed counts, the first by default. A process's own code between two points runs
 * on to the next one, and transactions that it opened past the store are not rolled back: for these, kill a real process.
 */
export function crashingAt(point: string, nth = 1): Crash {
  const passed: string[] = [];
  let dead = false;
  let die = () => {};
  const died = new Promise<void>((resolve) => {
    die = () => {
      dead = true;
      resolve();
    };
  });
  return {
    point,
    died,
    get isDead() {
      return dead;
    },
    async onPoint(name) {
      if (!dead) passed.push(name);
      if (!dead && name === point && passed.filter((other) => other === point).length === nth) die();
      if (dead) await new Promise<never>(() => {});
    },
    store: (store) => mortalStore(store, { died, isDead: () => dead }),
    async during(action) {
      const ended = Promise.resolve().then(action);
      await Promise.race([ended, died]);
      // What becomes of a dead process's promises, nobody hears.
      ended.catch(() => {});
      if (!dead) throw neverReached(point, nth, passed);
    },
  };
}

/**
 * Runs a test once for each point: of an operation's shape, or of a list of your own. One after the other, so that each has
 * the machine for itself. Raises an `AssertionError` that names the point, also where a run ended without dying there.
 */
export async function forEachCrashPoint(
  points: PointsShape | readonly string[],
  run: (crash: Crash) => Promise<void>,
): Promise<void> {
  const names = isList(points) ? points : crashPoints(points);
  if (names.length === 0) throw new AssertionError({ message: "There is no crash point to try.", operator: OPERATOR });
  for (const point of names) {
    const crash = crashingAt(point);
    try {
      await run(crash);
    } catch (error) {
      throw atPoint(point, error);
    }
    if (!crash.isDead) throw atPoint(point, neverReached(point, 1, []));
  }
}

const OPERATOR = "forEachCrashPoint";

const isList = (points: PointsShape | readonly string[]): points is readonly string[] => Array.isArray(points);

function neverReached(point: string, nth: number, passed: readonly string[]): AssertionError {
  const times = nth === 1 ? "" : ` ${nth} times`;
  return new AssertionError({
    message: [
      `The process never came to the crash point "${point}"${times}, so nothing was tested.`,
      `Points passed: ${passed.length === 0 ? "none" : passed.join(", ")}.`,
      "Hand `crash.onPoint` to createOncekey({ onPoint }), or call it in your own code; and name a point of this operation.",
    ].join("\n"),
    actual: [...passed],
    expected: point,
    operator: "crashingAt",
  });
}

function atPoint(point: string, error: unknown): AssertionError {
  const { message = String(error) } = (error ?? {}) as { readonly message?: string };
  const { actual, expected } = error instanceof AssertionError ? error : { actual: undefined, expected: undefined };
  const failed = new AssertionError({
    message: `Crash point "${point}": ${message}`,
    actual,
    expected,
    operator: OPERATOR,
  });
  failed.cause = error;
  return failed;
}
