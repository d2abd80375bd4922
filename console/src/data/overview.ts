import { ask, pathWith } from "./request.ts";

/** A count that stops at a bound: with `more` there are at least so many. */
export interface Bounded {
  readonly count: number;
  readonly more: boolean;
  readonly oldestAt: string | null;
}

/** A table as it lies on disk. */
export interface TableSize {
  readonly name: string;
  readonly bytes: number;
  readonly rows: number;
}

/** What waits at this moment. */
export interface Overview {
  readonly now: string;
  readonly schema: { readonly name: string; readonly version: number; readonly layout: string };
  readonly unresolved: Bounded;
  readonly inProgress: Bounded;
  readonly lapsed: Bounded;
  readonly outbox: { readonly pending: Bounded; readonly dead: Bounded };
  readonly purgeDue: Bounded;
  /** None for those who see one tenant only. */
  readonly tables: readonly TableSize[];
}

/** What happened in one step of the series. */
export interface Point {
  /** The beginning of the step. */
  readonly at: string;
  readonly completed: number;
  readonly failed: number;
  readonly replayed: number;
  readonly waited: number;
  readonly busy: number;
  readonly mismatch: number;
  readonly unknown: number;
  readonly refused: number;
  readonly errors: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly unresolved: number | null;
  readonly bytes: number | null;
}

/** The last hour. */
export interface Series {
  /** Where the figures come from; `none`: nowhere, there are no points. */
  readonly source: "process" | "metrics" | "none";
  readonly stepMs: number;
  readonly points: readonly Point[];
}

/** Raises `RequestError`. */
export const overview = () => ask<Overview>("overview", { quiet: true });

/** The steps after that instant. Raises `RequestError`. */
export const series = (after: string | null) => ask<Series>(pathWith("series", { after }), { quiet: true });
