import type { Bounded, TableSize } from "./overview.ts";
import { type Asking, ask } from "./request.ts";

/** A partition of the outcomes, by the time in which they expire. */
export interface Partition {
  readonly name: string;
  readonly fromAt: string | null;
  readonly toAt: string | null;
  readonly bytes: number;
  readonly state?: string;
}

/** What keeps the store small and up to date. */
export interface Upkeep {
  readonly layout: { readonly name: string; readonly behind: boolean; readonly aheadUntil: string | null };
  readonly partitions: readonly Partition[];
  readonly purge: Bounded;
  readonly sweepers: readonly {
    readonly operation: string;
    readonly runKind: string | null;
    readonly version: number;
    readonly seenAt: string | null;
  }[];
  readonly tables: readonly TableSize[];
  readonly migrations: readonly { readonly number: number; readonly name: string; readonly appliedAt: string | null }[];
}

/** Raises `RequestError`: 403 for those who see one tenant only. */
export const upkeep = (asking: Asking) => ask<Upkeep>("upkeep", asking);
