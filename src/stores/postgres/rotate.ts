import { createHash } from "node:crypto";
import { type Cipher, cipherOf, type EncryptionKey, type SealedPart } from "../../core/cipher.ts";
import { pause, systemClock } from "../../core/clock.ts";
import { OncekeyError } from "../../core/errors.ts";
import { StoreFailure } from "../../core/store.ts";
import { committing, type Run } from "./committing.ts";
import type { Driver, SqlRow } from "./driver-port.ts";
import { type RotatedTable, rotatedTables, sealedHead } from "./rotated-tables.ts";
import { number, numberOrNull, text } from "./rows.ts";
import { DEFAULT_SCHEMA, statementRunner } from "./statements.ts";

/** Options of {@link rotateStored}. Durations in milliseconds. */
export interface RotateOptions {
  /** The ring, newest first: what is sealed under another key than the first one is sealed anew under it. */
  readonly encryptionKeys: readonly EncryptionKey[];
  /** Schema that the tables live in. Default `oncekey`. */
  readonly schema?: string;
  /** `true`: also seals what is stored plainly, from before there were keys. Default false. */
  readonly sealPlain?: boolean;
  /** `true`: counts, and changes nothing. Default false. */
  readonly dryRun?: boolean;
  /** Rows that one commit looks at, 1 to 10,000. Default 200. */
  readonly batch?: number;
  /** Rest between two commits. Default 0. */
  readonly pauseMs?: number;
}

/** How many values of one kind there are under one key. */
export interface SealedCount {
  readonly part: SealedPart;
  /** `null`: stored plainly. */
  readonly keyId: number | null;
  readonly count: number;
}

/** A value that no key of the ring opens, and where it is: an entry's or delivery's id in hex, or a message's id. */
export interface UnreadableValue {
  readonly part: SealedPart;
  readonly id: string;
  /** `key_missing`: its key is not in the ring. `broken`: it was changed, belongs to another row, or another key had the id. */
  readonly why: "key_missing" | "broken";
}

/**
 * `rotated`: nothing is left under another key. `partly`: something is, because it was in use or cannot be opened.
 * `planned`: a dry run, nothing was changed.
 */
export interface RotateResult {
  readonly kind: "rotated" | "partly" | "planned";
  /** The key that values are sealed under now. */
  readonly newestKeyId: number;
  /** Values that were sealed anew. */
  readonly resealed: number;
  /** Values under other keys than the newest: 0 means that these can be taken out of the ring. */
  readonly underOtherKeys: number;
  /** Values that are stored plainly. */
  readonly plain: number;
  /** What there is in the end, by kind and key. */
  readonly values: readonly SealedCount[];
  /** A few of the values that could not be opened, at most 10. */
  readonly unreadable: readonly UnreadableValue[];
}

const DEFAULT_BATCH = 200;
const MOST_BATCH = 10_000;
/** Rows that were in use are met again by the next pass. */
const PASSES = 3;
const BETWEEN_PASSES_MS = 500;
/** What a commit holds in memory: values are up to a megabyte each. */
const WINDOW_BYTES = 8 * 1_048_576;
const MOST_UNREADABLE = 10;

/**
 * Seals anew, under the newest key of the ring, what is sealed under an older one: inputs, contexts, outcomes, recorded
 * values, messages, values of deliveries. (Bodies outside of the database have keys of their own, which lie in outcomes.)
 * In batches by primary key, each a commit of its own; a row is changed only where it still holds the bytes that were
 * read, so that it runs beside traffic. Calling it again goes on. Every process must have the newest key first in its
 * ring before, or it goes on writing under an older one. Raises `oncekey_config_invalid` and `StoreFailure`.
 */
export async function rotateStored<Tx>(driver: Driver<Tx>, options: RotateOptions): Promise<RotateResult> {
  const rotation = rotationOf(driver, options);
  const { newestKeyId, dryRun } = rotation;
  const isDue = ({ keyId }: SealedCount) => (keyId === null ? rotation.sealPlain : keyId !== newestKeyId);
  const before = await sealedCounts(rotation.run);
  const isNeeded = !dryRun && before.some(isDue);
  const { resealed, unreadable } = isNeeded ? await rotatePasses(rotation) : NO_PASS;
  const values = isNeeded ? await sealedCounts(rotation.run) : before;
  const kind = values.some(isDue) ? "partly" : "rotated";
  return {
    kind: dryRun ? "planned" : kind,
    newestKeyId,
    resealed,
    underOtherKeys: totalOf(values.filter(({ keyId }) => keyId !== null && keyId !== newestKeyId)),
    plain: totalOf(values.filter(({ keyId }) => keyId === null)),
    values,
    unreadable,
  };
}

const totalOf = (counts: readonly SealedCount[]) => counts.reduce((total, { count }) => total + count, 0);

/** What a rotation works with. */
interface Rotation {
  readonly run: Run;
  readonly cipher: Cipher;
  readonly newestKeyId: number;
  readonly sealPlain: boolean;
  readonly dryRun: boolean;
  readonly batch: number;
  readonly pauseMs: number;
}

function rotationOf<Tx>(driver: Driver<Tx>, options: RotateOptions): Rotation {
  const { encryptionKeys, batch = DEFAULT_BATCH, pauseMs = 0, sealPlain = false, dryRun = false } = options;
  const cipher = cipherOf(encryptionKeys);
  const [newest] = encryptionKeys;
  if (newest === undefined) throw refused("encryptionKeys is empty: there is no key to seal under");
  if (!Number.isInteger(batch) || batch < 1 || batch > MOST_BATCH) throw refused(`batch is 1 to ${MOST_BATCH}`);
  if (!(pauseMs >= 0 && pauseMs < Infinity)) throw refused("pauseMs is a number of milliseconds");
  const run = committing(statementRunner(driver, options.schema ?? DEFAULT_SCHEMA));
  return { run, cipher, newestKeyId: newest.id, sealPlain, dryRun, batch, pauseMs };
}

function refused(why: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `rotateStored: ${why}. Nothing was changed.`);
}

async function sealedCounts(run: Run): Promise<SealedCount[]> {
  const rows = await run("sealed_values", []);
  return rows.map((row) => ({
    part: text(row, "part") as SealedPart,
    keyId: numberOrNull(row, "key_id"),
    count: number(row, "held"),
  }));
}

/** What was done: how many values were sealed anew, and which could not be opened. */
interface Pass {
  readonly resealed: number;
  /** Values of rows that somebody held, or changed in between. */
  readonly missed: number;
  readonly unreadable: readonly UnreadableValue[];
}

const NO_PASS: Pass = { resealed: 0, missed: 0, unreadable: [] };

/** Walks over all tables, and again as long as rows were in use. */
async function rotatePasses(rotation: Rotation): Promise<Pass> {
  let all = await rotateTables(rotation);
  for (let pass = 2; pass <= PASSES && all.missed > 0; pass++) {
    await pause(systemClock, BETWEEN_PASSES_MS);
    const next = await rotateTables(rotation);
    all = { ...next, resealed: all.resealed + next.resealed };
  }
  return all;
}

async function rotateTables(rotation: Rotation): Promise<Pass> {
  let resealed = 0;
  let due = 0;
  const unreadable: UnreadableValue[] = [];
  for (const table of rotatedTables) {
    for await (const rows of windowsOf(rotation, table)) {
      const changes = rows.map((row) => changeOf(rotation, table, row, unreadable)).filter((change) => change !== null);
      unreadable.splice(MOST_UNREADABLE);
      if (changes.length === 0) continue;
      due += changes.reduce((total, { values }) => total + values, 0);
      resealed += await store(rotation, table, changes);
      if (rotation.pauseMs > 0) await pause(systemClock, rotation.pauseMs);
    }
  }
  return { resealed, missed: due - resealed, unreadable };
}

/** The rows of a table, window by window of its primary key. What is inserted behind the walk is the next pass's. */
async function* windowsOf(rotation: Rotation, { due, first, keyOf }: RotatedTable) {
  const { batch, newestKeyId, sealPlain } = rotation;
  const rest = [batch, sealedHead(newestKeyId), sealPlain, WINDOW_BYTES];
  for (let after = first; ; ) {
    const rows = await rotation.run(due, [...after, ...rest]);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = keyOf(last);
  }
}

/** What is put into one row, and how many values of it. */
interface Change {
  readonly row: Readonly<Record<string, string | number>>;
  readonly values: number;
}

/** `null`: nothing of the row is due, or nothing of it can be opened. */
function changeOf(
  { cipher }: Rotation,
  table: RotatedTable,
  row: SqlRow,
  unreadable: UnreadableValue[],
): Change | null {
  const replaced: Record<string, string> = {};
  let values = 0;
  for (const { column, part, reseal } of table.values) {
    const stored = row[column] as string | Uint8Array | null;
    if (stored === null) continue;
    try {
      replaced[column] = reseal(cipher, row);
      replaced[`${column}_was`] = createHash("sha256").update(stored).digest("base64");
      values += 1;
    } catch (error) {
      unreadable.push({ part, id: table.shownId(row), why: whyOf(error) });
    }
  }
  return values === 0 ? null : { row: { ...table.nameOf(row), ...replaced }, values };
}

function whyOf(error: unknown): UnreadableValue["why"] {
  if (error instanceof OncekeyError && error.code === "oncekey_config_invalid") return "key_missing";
  if (error instanceof OncekeyError && error.code === "oncekey_store_broken") return "broken";
  throw error;
}

/** Puts the changes of one window in, in one commit. Returns how many values took: rows in use are the next pass's. */
async function store({ run }: Rotation, { put }: RotatedTable, changes: readonly Change[]): Promise<number> {
  try {
    const [row] = await run(put, [JSON.stringify(changes.map((change) => change.row))]);
    return number(row ?? {}, "resealed");
  } catch (error) {
    if (error instanceof StoreFailure && error.kind === "contention") return 0;
    throw error;
  }
}
