import { OncekeyError } from "./errors.ts";

/**
 * Where bodies lie that are too long for a row of the database: a directory, a bucket. What is put is whole or absent; a
 * pointer is put once and never changed. Pointers are `<64 hex digits>/<32 hex digits>`: the entry's id and a random part.
 */
export interface BodyStore {
  readonly name: string;
  /** Keeps `length` bytes under the pointer, durably when it resolves. Raises what went wrong; then nothing may be readable. */
  put(pointer: string, content: AsyncIterable<Uint8Array>, length: number): Promise<void>;
  /**
   * The bytes under a pointer in chunks; `null`: there are none. Whoever leaves them early calls their iterator's `return`,
   * also before the first chunk: what they hold open is then closed. Raises where it cannot be reached.
   */
  get(pointer: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** Removes what is under the pointer, or nothing. */
  remove(pointer: string): Promise<void>;
}

/** A body that may have no entry any more. */
export interface LooseBody {
  readonly pointer: string;
  /** An entry's outcome points at it: it stays. */
  readonly inUse: boolean;
}

/**
 * The store's list of bodies that may have to be removed: written before a body is put (its owner may die before the
 * outcome is committed) and when an entry that points at one is purged or erased. Time is the store's clock.
 */
export interface BodyList {
  /** Notes a body before it is put, to be looked at after `checkInMs`. In a commit of its own. */
  note(pointer: string, entryId: Uint8Array, checkInMs: number): Promise<void>;
  /** At most `limit` bodies whose time to be looked at has come, each put off by `againInMs`: another sweeper leaves them alone. */
  due(limit: number, againInMs: number): Promise<LooseBody[]>;
  /**
   * Strikes bodies from the list, whose time to be looked at is yet to come. One that was noted anew since it was handed
   * out (its entry was purged meanwhile) is due and stays.
   */
  strike(pointers: readonly string[]): Promise<void>;
}

const POINTER = /^[0-9a-f]{64}\/[0-9a-f]{32}$/;

/** The pointer of a new body of the entry. `random`: 16 bytes. */
export function newPointer(entryId: Uint8Array, random: Uint8Array): string {
  return `${Buffer.from(entryId).toString("hex")}/${Buffer.from(random).toString("hex")}`;
}

/**
 * The pointer, if it is one. It becomes a path or a key, and comes out of the database: raises `oncekey_store_broken` for
 * anything else.
 */
export function checkPointer(pointer: string): string {
  if (POINTER.test(pointer)) return pointer;
  throw new OncekeyError(
    "oncekey_store_broken",
    "The pointer to a stored body is malformed: it was changed. Nothing was read or written; restore the row from a backup.",
  );
}
