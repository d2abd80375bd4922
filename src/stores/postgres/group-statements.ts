import type { Completion } from "../../core/completion.ts";
import type { NewEntry, StoredEntry } from "../../core/entry.ts";
import { OncekeyError } from "../../core/errors.ts";
import { sameDigest } from "../../core/fingerprint.ts";
import { type ClaimCommit, StoreFailure } from "../../core/store.ts";
import { lockWait, matched, type Run } from "./committing.ts";
import type { Driver } from "./driver-port.ts";
import { isUndone, isUnsupported, ownFailure, sqlState } from "./errors.ts";
import { type Groupable, type GroupLimits, grouped, type Share } from "./group.ts";
import {
  type ClaimMember,
  type CompleteMember,
  claimRows,
  claimWeight,
  completionRows,
  completionWeight,
  hex,
} from "./group-rows.ts";
import { type LayoutSeen, noteLayout, readEntry } from "./layout-seen.ts";
import { boolean, bytes, completionParameters, entryParameters, firstEntry, number, storedEntry } from "./rows.ts";

/** How concurrent statements of one process are merged. */
export interface GroupOptions {
  /** Most statements in one, 2 to 1,000. Default 100. */
  readonly maxSize?: number;
  /**
   * Longest time that a statement waits for the one before it to be answered, in milliseconds, 0 to 1,000; it never waits
   * where none of its kind is under way. Default 10.
   */
  readonly maxDelayMs?: number;
}

/** Statements that commit by themselves and may be merged with others of their kind. */
export interface GroupedStatements {
  read(id: Uint8Array): Promise<StoredEntry | null>;
  /** The entry that this very statement inserted; `null`: there was one. */
  insertClaim(entry: NewEntry, leaseMs: number, commit: ClaimCommit): Promise<StoredEntry | null>;
  complete(id: Uint8Array, fence: Uint8Array, completion: Completion): Promise<boolean>;
}

const MAX_BYTES = 1_048_576;

/** An entry whose bytes are more is sent to its reader alone: a hundred of them would be one very long answer. */
const LONG_BYTES = 16_384;

/**
 * Longest wait of a group behind a row that somebody else inserts at that moment, in milliseconds. Short, since all members
 * wait: after it each goes on alone, and waits for itself.
 */
const GROUP_LOCK_WAIT_MS = 100;

/** The limits that were asked for; `null`: no groups. Raises `oncekey_config_invalid`. */
export function groupLimits(
  driver: Pick<Driver<never>, "groups">,
  option: boolean | GroupOptions = true,
): GroupLimits | null {
  const { maxSize = 100, maxDelayMs = 10 } = typeof option === "boolean" ? {} : option;
  const isSize = Number.isInteger(maxSize) && maxSize >= 2 && maxSize <= 1_000;
  if (!isSize || !(maxDelayMs >= 0 && maxDelayMs <= 1_000)) {
    throw new OncekeyError(
      "oncekey_config_invalid",
      "postgresStore: groups takes a maxSize from 2 to 1,000 and a maxDelayMs from 0 to 1,000. Nothing was connected; correct them, or give false.",
    );
  }
  return option === false || driver.groups === false ? null : { maxSize, maxDelayMs, maxBytes: MAX_BYTES };
}

/** One statement each, whatever else is under way. */
export function singleStatements(run: Run, seen: LayoutSeen): GroupedStatements {
  return {
    read: (id) => readEntry(run, seen, id),
    async insertClaim(entry, leaseMs, commit) {
      const parameters = [...entryParameters(entry), leaseMs, lockWait(leaseMs), commit];
      return firstEntry(await run("claim", parameters).catch(raiseUnlessTaken));
    },
    async complete(id, fence, completion) {
      const parameters = [id, fence, ...completionParameters(completion), null];
      const rows = seen.apart ? await run("complete_apart", parameters).catch(nullIfRecorded) : null;
      return matched(rows ?? (await run("complete", parameters)));
    },
  };
}

/**
 * `null`: a record of the entry was committed while the statement waited for its row, after it had looked for records. The
 * foreign key keeps the entry from leaving its table; with records it is to stay there anyway.
 */
function nullIfRecorded(error: unknown): null {
  if (sqlState(error) === "23503") return null;
  throw error;
}

/** The insert met no row, but by its end the identity's outcome lay in a partition: the same as a row in its way. */
function raiseUnlessTaken(error: unknown): readonly [] {
  if (error instanceof StoreFailure && error.kind === "conflict") return [];
  throw error;
}

/**
 * The same, merged. `once` runs a statement that is not tried again and raises the client's own error: a group that is
 * refused is not repeated, its members go on alone.
 */
export function groupStatements(
  single: GroupedStatements,
  once: Run,
  limits: GroupLimits,
  seen: LayoutSeen,
): GroupedStatements {
  const read = grouped(readGroup(single, once, seen), limits);
  const insertClaim = grouped(claimGroup(single, once), limits);
  const complete = grouped(completeGroup(single, once, seen), limits);
  return {
    read,
    // One that waits for no disk gains nothing by company, and must not take the wait away from others.
    insertClaim: (entry, leaseMs, commit) =>
      commit === "asynchronous" ? single.insertClaim(entry, leaseMs, commit) : insertClaim({ entry, leaseMs }),
    complete: (id, fence, completion) => complete({ id, fence, completion }),
  };
}

const failing = { isUndone, isImpossible: isUnsupported, failure: ownFailure };

function readGroup(single: GroupedStatements, once: Run, seen: LayoutSeen): Groupable<Uint8Array, StoredEntry | null> {
  return {
    ...failing,
    alone: single.read,
    weigh: (id) => 2 * id.length + 3,
    async together(ids) {
      const isWhole = seen.guarded;
      const rows = await once(isWhole ? "read_group_apart" : "read_group", [JSON.stringify(ids.map(hex)), LONG_BYTES]);
      if (rows[0] !== undefined) noteLayout(seen, rows[0]);
      const byPlace = new Map(rows.map((row) => [number(row, "place"), row]));
      return ids.map((_, index): Share<StoredEntry | null> => {
        const row = byPlace.get(index + 1);
        if (row === undefined || boolean(row, "long")) return "alone";
        // Absent where it was looked for, but there are partitions, which were not asked.
        if (row.id === null && !isWhole && boolean(row, "guarded")) return "alone";
        return () => (row.id === null ? null : storedEntry(row));
      });
    },
  };
}

function claimGroup(single: GroupedStatements, once: Run): Groupable<ClaimMember, StoredEntry | null> {
  return {
    ...failing,
    alone: ({ entry, leaseMs }) => single.insertClaim(entry, leaseMs, "synchronous"),
    weigh: claimWeight,
    async together(members) {
      const wait = lockWait(Math.min(...members.map(({ leaseMs }) => leaseMs)), GROUP_LOCK_WAIT_MS);
      const rows = await once("claim_group", [claimRows(members), wait]);
      const byId = new Map(rows.map((row) => [hex(bytes(row, "id")), row]));
      return members.map(({ entry }) => () => {
        const row = byId.get(hex(entry.id));
        // Another member may have the same id: only the fence tells whose row it is.
        return row !== undefined && sameDigest(bytes(row, "fence"), entry.fence) ? storedEntry(row) : null;
      });
    },
  };
}

function completeGroup(single: GroupedStatements, once: Run, seen: LayoutSeen): Groupable<CompleteMember, boolean> {
  return {
    ...failing,
    alone: ({ id, fence, completion }) => single.complete(id, fence, completion),
    weigh: completionWeight,
    async together(members) {
      const rows = await once(seen.apart ? "complete_group_apart" : "complete_group", [completionRows(members)]);
      const met = new Set(rows.map((row) => number(row, "place")));
      return members.map((_, place): Share<boolean> => (met.has(place) ? () => true : "alone"));
    },
  };
}
