import type { OncekeyEvent, RunEvent } from "../engine/event.ts";

/** What this process saw of one entry. */
export interface TrailItem {
  readonly atMs: number;
  readonly event: RunEvent;
}

/** Requests of one tenant's operation that brought a known key with another payload, as this process saw them. */
export interface SeenMismatches {
  readonly tenant: string;
  readonly operation: string;
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** The last few of the entries that they met, in hex. */
  readonly entryIds: readonly string[];
}

/** What this process saw of entries, as long as it remembers. */
export interface Trail {
  /** Quick, and never raises. */
  note(event: OncekeyEvent): void;
  /** Oldest first. `tenant`: only where it is this one's; `null`: anybody's. */
  of(entryId: string, tenant: string | null): readonly TrailItem[];
  mismatches(tenant: string | null): readonly SeenMismatches[];
}

const MOST_ENTRIES = 5_000;
const MOST_ITEMS = 200;
const MOST_GROUPS = 1_000;
const MOST_IDS = 5;

type Group = { -readonly [K in keyof SeenMismatches]: SeenMismatches[K] };

/** Remembers what happened to the entries that were touched last. `now`: milliseconds since 1970. */
export function createTrail(now: () => number = Date.now): Trail {
  const entries = new Map<string, TrailItem[]>();
  const groups = new Map<string, Group>();
  return {
    note(event) {
      if (!("entryId" in event) || event.entryId === null || event.kind === "began") return;
      const items = entries.get(event.entryId) ?? [];
      // Taken out and put back: the map's order is that of the last touch.
      entries.delete(event.entryId);
      entries.set(event.entryId, items);
      if (items.length >= MOST_ITEMS) items.shift();
      items.push({ atMs: now(), event });
      if (entries.size > MOST_ENTRIES) forgetFirst(entries);
      if (event.kind === "mismatch" && event.tenant !== null) noteMismatch(groups, event, now());
    },
    of(entryId, tenant) {
      const items = entries.get(entryId) ?? [];
      return tenant === null ? [...items] : items.filter(({ event }) => event.tenant === tenant);
    },
    mismatches(tenant) {
      const shown = [...groups.values()].filter((group) => tenant === null || group.tenant === tenant);
      return shown.map((group) => ({ ...group })).sort((a, b) => b.count - a.count);
    },
  };
}

function noteMismatch(groups: Map<string, Group>, { tenant, operation, entryId }: RunEvent, atMs: number): void {
  if (tenant === null || entryId === null) return;
  const name = JSON.stringify([tenant, operation]);
  const at = new Date(atMs);
  const group = groups.get(name) ?? { tenant, operation, count: 0, firstAt: at, lastAt: at, entryIds: [] };
  group.count += 1;
  group.lastAt = at;
  group.entryIds = [entryId, ...group.entryIds.filter((id) => id !== entryId)].slice(0, MOST_IDS);
  groups.delete(name);
  groups.set(name, group);
  if (groups.size > MOST_GROUPS) forgetFirst(groups);
}

function forgetFirst(map: Map<string, unknown>): void {
  for (const [first] of map) {
    map.delete(first);
    return;
  }
}
