import { pause, systemClock } from "../../core/clock.ts";
import { OncekeyError } from "../../core/errors.ts";
import { parseKey, storedKey } from "../../core/key.ts";
import { committing, type Run } from "./committing.ts";
import type { Driver, SqlParameter, SqlRow } from "./driver-port.ts";
import { number, text } from "./rows.ts";
import { DEFAULT_SCHEMA, statementRunner } from "./statements.ts";
import { everyWindow, type LookAt, NO_BYTES } from "./windows.ts";

/** Whose stored content is erased: a tenant's, all of it or a part. */
export interface EraseSelection {
  readonly tenant: string;
  /** Only this client's; `null`: only what has no client. */
  readonly client?: string | null;
  /** Only this operation's, by the name that is stored. */
  readonly operation?: string;
  /** Only this key's, as clients send it; found as well where digests are stored. */
  readonly key?: string;
}

/** Options of {@link eraseContent}. Durations in milliseconds. */
export interface EraseOptions {
  /** Schema that the tables live in. Default `oncekey`. */
  readonly schema?: string;
  /** `true`: counts what would be erased, and changes nothing. Default false. */
  readonly dryRun?: boolean;
  /** For how long after retention a late retry is refused, where that is longer than what is stored. Default: no longer. */
  readonly tombstoneMs?: number;
  /** Rows that one commit looks at. Default 1,000. */
  readonly batch?: number;
}

/** What was erased, or would be, and what was left. */
export interface EraseReport {
  /** Finished entries that are without content now. */
  readonly entries: number;
  /** Bodies outside of the database, of these entries: on the list of those that the sweeper removes. */
  readonly bodies: number;
  /** Messages that were deleted. */
  readonly messages: { readonly delivered: number; readonly dead: number };
  /** Remembered deliveries that are without their value now; `null`: the selection is narrower than a tenant. */
  readonly deliveries: number | null;
  readonly left: EraseLeft;
}

/** What was not erased. */
export interface EraseLeft {
  /** Entries that are not finished: what is stored for them is needed to finish them. */
  readonly unfinished: { readonly inProgress: number; readonly needsRecovery: number; readonly released: number };
  /** A few of those that wait for somebody, in hex: what `oncekey resolve` takes. */
  readonly unfinishedIds: readonly string[];
  /** Messages that are still to be delivered. */
  readonly pendingMessages: number;
  /** Rows that somebody else held again and again: the next call gets them. */
  readonly busy: number;
}

/** `absent`: nothing is stored for the selection. `partly`: something was left. `planned`: a dry run, nothing was changed. */
export type EraseResult =
  | { readonly kind: "absent" }
  | ({ readonly kind: "planned" | "erased" | "partly" } & EraseReport);

/**
 * Erases what is stored of a tenant: outcomes, inputs, contexts, recorded values, correlations and raw keys of finished
 * entries, delivered and dead messages, values of deliveries. Identity and fingerprint stay: until its retention (and
 * tombstone) ends, a retry is refused with `idempotency_response_unavailable` and never runs. In batches by primary key,
 * each a commit of its own, beside traffic; calling it again goes on. Reads the tables from end to end. Raises
 * `oncekey_config_invalid` and `StoreFailure`.
 */
export async function eraseContent<Tx>(
  driver: Driver<Tx>,
  selection: EraseSelection,
  options: EraseOptions = {},
): Promise<EraseResult> {
  const erasure = erasureOf(selection, options);
  const run = committing(statementRunner(driver, options.schema ?? DEFAULT_SCHEMA));
  const entries = await eraseEntries(run, erasure);
  const messages = await eraseMessages(run, erasure);
  const deliveries = erasure.isWhole ? await eraseDeliveries(run, erasure) : null;
  const parts = deliveries === null ? [entries, messages] : [entries, messages, deliveries];
  if (parts.every(({ selected }) => selected === 0)) return { kind: "absent" };
  const { inProgress, needsRecovery, released, unfinishedIds } = entries;
  const left: EraseLeft = {
    unfinished: { inProgress, needsRecovery, released },
    unfinishedIds,
    pendingMessages: messages.pending,
    busy: erasure.dryRun ? 0 : parts.reduce((sum, part) => sum + part.busy, 0),
  };
  const report: EraseReport = {
    entries: entries.erased,
    bodies: entries.bodies,
    messages: { delivered: messages.delivered, dead: messages.dead },
    deliveries: deliveries?.erased ?? null,
    left,
  };
  return { kind: kindOf(erasure, left), ...report };
}

function kindOf({ dryRun }: Erasure, { unfinished, pendingMessages, busy }: EraseLeft) {
  if (dryRun) return "planned" as const;
  const { inProgress, needsRecovery, released } = unfinished;
  return inProgress + needsRecovery + released + pendingMessages + busy > 0 ? "partly" : "erased";
}

/** A selection as the statements take it. */
interface Erasure {
  readonly dryRun: boolean;
  readonly isWhole: boolean;
  readonly batch: number;
  readonly tombstoneMs: number;
  /** Tenant, whether any client, client. */
  readonly scope: readonly SqlParameter[];
  readonly operation: string | null;
  readonly keys: readonly string[] | null;
}

const DEFAULT_BATCH = 1_000;
const MOST_BATCH = 100_000;
/** Most ids of unfinished entries that are told. */
const MOST_IDS = 10;
/** A purge and a rotation hold their rows for a moment only. */
const PASSES = 4;

function erasureOf(selection: EraseSelection, options: EraseOptions): Erasure {
  const { tenant, client, operation = null, key } = selection;
  const { dryRun = false, batch = DEFAULT_BATCH, tombstoneMs = 0 } = options;
  // A forgotten variable must neither widen the selection nor look as if there were nothing to erase.
  if (!isText(tenant) || tenant === "") throw refused("the selection needs a tenant");
  if (key === "" || operation === "") throw refused("operation and key are not empty where they are given");
  if (![client ?? "", operation ?? "", key ?? ""].every(isText)) throw refused("client, operation and key are text");
  if (!Number.isInteger(batch) || batch < 1 || batch > MOST_BATCH) throw refused(`batch is 1 to ${MOST_BATCH}`);
  if (!(tombstoneMs >= 0 && tombstoneMs < Infinity)) throw refused("tombstoneMs is a number of milliseconds");
  const isWhole = client === undefined && operation === null && key === undefined;
  const keys = key === undefined ? null : keyForms(key);
  return {
    dryRun,
    isWhole,
    batch,
    tombstoneMs,
    scope: [tenant, client === undefined, client ?? null],
    operation,
    keys,
  };
}

/** A key can be given bare or as the header had it, in quotes, and be stored raw or as a digest. */
function keyForms(given: string): string[] {
  const parsed = parseKey([given], { maxLength: Number.MAX_SAFE_INTEGER });
  const keys = parsed.kind === "key" && parsed.key !== given ? [given, parsed.key] : [given];
  return keys.flatMap((raw) => [raw, storedKey(raw, "digest")]);
}

const isText = (given: unknown) => typeof given === "string" && given.isWellFormed() && !given.includes("\0");

function refused(why: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `eraseContent: ${why}. Nothing was erased.`);
}

const jsonOrNull = (value: unknown) => (value === null ? null : JSON.stringify(value));

/** Entries first: what one completes meanwhile is met in its partition, behind. */
async function eraseEntries(run: Run, erasure: Erasure) {
  const { scope, operation, keys, tombstoneMs, dryRun } = erasure;
  const rest = [...scope, operation, jsonOrNull(keys), tombstoneMs, !dryRun];
  const part = await eraseTable(erasure, NO_BYTES, (after) => run("erase_entries", [after, erasure.batch, ...rest]));
  const apart = await eraseTable(erasure, NO_BYTES, (after) => run("erase_outcomes", [after, erasure.batch, ...rest]));
  const ids = part.last.flatMap((row) => text(row, "unfinished_ids").split(" ")).filter((id) => id !== "");
  return {
    ...part,
    selected: part.selected + apart.selected,
    erased: part.erased + apart.erased,
    busy: part.busy + apart.busy,
    bodies: dryRun ? part.found("held_bodies") : part.done("bodies"),
    inProgress: part.found("in_progress"),
    needsRecovery: part.found("needs_recovery"),
    released: part.found("released"),
    unfinishedIds: ids.slice(0, MOST_IDS),
  };
}

async function eraseMessages(run: Run, erasure: Erasure) {
  const { scope, operation, keys, dryRun } = erasure;
  const ofEntries = operation === null && keys === null ? null : { operation, keys };
  const rest = [...scope, jsonOrNull(ofEntries), !dryRun];
  const part = await eraseTable(erasure, "", (after) => run("erase_messages", [after, erasure.batch, ...rest]));
  return { ...part, delivered: part.done("delivered"), dead: part.done("dead"), pending: part.found("pending") };
}

function eraseDeliveries(run: Run, erasure: Erasure) {
  const [tenant = null] = erasure.scope;
  return eraseTable(erasure, NO_BYTES, (after) =>
    run("erase_deliveries", [after, erasure.batch, tenant, !erasure.dryRun]),
  );
}

/** Erases window by window, from the first row of a table to its last, and again where somebody held some of them. */
async function eraseTable({ dryRun }: Erasure, first: SqlParameter, look: LookAt) {
  const passes: (readonly SqlRow[])[] = [];
  let busy = 0;
  do {
    if (busy > 0) await pause(systemClock, 100 * 2 ** passes.length);
    const windows = await everyWindow(first, look);
    passes.push(windows);
    busy = dryRun ? 0 : sumOf(windows, "holding") - sumOf(windows, "erased");
  } while (busy > 0 && passes.length < PASSES);
  const last = passes.at(-1) ?? [];
  /** Over all passes: what a pass did. */
  const done = (column: string) => sumOf(passes.flat(), column);
  /** In the last pass: what a pass found. */
  const found = (column: string) => sumOf(last, column);
  return { last, done, found, busy, selected: done("selected"), erased: dryRun ? found("holding") : done("erased") };
}

const sumOf = (rows: readonly SqlRow[], column: string) => rows.reduce((total, row) => total + number(row, column), 0);
