import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Completion } from "../core/completion.ts";
import type { NewEntry, StoredEntry } from "../core/entry.ts";
import type { JournalRecord, NewIntent } from "../core/intent.ts";
import type { NewMessage } from "../core/message.ts";
import type { ClaimedMessage, MessageClaim } from "../core/outbox.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Resolution } from "../core/resolution.ts";
import type { SeenEntry, Store, SweepTarget, TransactionLimits, UnknownMark } from "../core/store.ts";
import { encodeContent, type StoredOutcome } from "../core/stored-outcome.ts";
import type { SuiteCase, SuiteHarness } from "./suite.ts";

export { rolledBack, settledRace, whileOpen } from "./store-open.ts";

/**
 * What a store brings to its contract suite: itself, empty, with a business table of one text column and a way to let
 * time pass. `Tx` is the store's own transaction type.
 */
export interface StoreHarness<Tx = unknown> extends SuiteHarness {
  readonly store: Store<Tx>;
  /** Adds a business row inside the transaction. */
  insertRow(tx: Tx, value: string): Promise<void>;
  /** How many committed business rows hold this value. */
  countRows(value: string): Promise<number>;
  /** Ids of the committed outbox messages, in any order. */
  messageIds(): Promise<string[]>;
  /** The audit rows of what was settled by hand, in any order. */
  resolutions(): Promise<ShownResolution[]>;
  /** The announced targets, in any order. */
  announced(): Promise<SweepTarget[]>;
  /**
   * Lets time pass for the store: moves its clock, or shifts every stored instant back by as much: of entries (created_at,
   * lease_until, not_before, completed_at, expires_at, tombstone_until, sweep_at, settles_at), intents (started_at,
   * settles_at), messages (created_at, available_at, delivered_at), deliveries (received_at, expires_at), announced
   * targets (seen_at) and noted bodies (check_at). Called only while no transaction is open.
   */
  advance(ms: number): Promise<void>;
}

/** An audit row, as a harness shows it. */
export interface ShownResolution {
  /** Hex. */
  readonly entryId: string;
  readonly verdict: Resolution["verdict"];
  readonly status: number | null;
  readonly forced: boolean;
  readonly by: string;
  readonly note: string | null;
  readonly stateBefore: string;
  readonly reasonBefore: string | null;
  /** How many intents were open. */
  readonly openIntents: number;
}

/** A case of the store suite. */
export type StoreCase = SuiteCase<StoreHarness>;

/** Long enough that no slow machine lets it lapse by itself. */
export const LEASE_MS = 600_000;
export const RETENTION_MS = 3_600_000;
export const LIMITS: TransactionLimits = { lockTimeoutMs: 10_000, idleTimeoutMs: 60_000 };

/** A fence that owns nothing. */
export const newFence = (): Uint8Array => new Uint8Array(randomBytes(16));

/** A fingerprint in its stored form: version, compare form, secret, digest. */
export const newFingerprint = (): Uint8Array => new Uint8Array([1, 1, 0, ...randomBytes(32)]);

/** An entry of an identity that no other case uses. */
export function newEntry(overrides: Partial<NewEntry> = {}): NewEntry {
  return {
    id: new Uint8Array(randomBytes(32)),
    tenant: "acme",
    client: "app",
    operation: "suite.create",
    key: randomBytes(8).toString("hex"),
    runKind: "phases",
    operationVersion: 1,
    fingerprint: newFingerprint(),
    wireDigest: newFingerprint(),
    fence: newFence(),
    seed: new Uint8Array(randomBytes(16)),
    input: new TextEncoder().encode('{"amount":1}'),
    context: null,
    correlation: null,
    ...overrides,
  };
}

/** Claims a new entry and gives it as stored. */
export async function claimed(
  store: Store,
  overrides: Partial<NewEntry> = {},
  leaseMs = LEASE_MS,
): Promise<StoredEntry> {
  const entry = await store.claim(newEntry(overrides), leaseMs);
  assert.ok(entry, "a new identity must be claimable");
  return entry;
}

/** Claims a new entry and completes it. */
export async function finished(store: Store, completion: Partial<Completion> = {}): Promise<StoredEntry> {
  const { id, fence } = await claimed(store);
  assert.equal(await store.complete(id, fence, completionOf(completion)), true);
  return await readEntry(store, id);
}

/** Claims a new entry and marks it as unknown. The fence is the claim's, whatever the mark has made of it. */
export async function unknown(store: Store): Promise<StoredEntry> {
  const { id, fence } = await claimed(store, { runKind: "capture" });
  assert.equal(await store.markUnknown(id, fence, markOf()), true);
  return { ...(await readEntry(store, id)), fence };
}

/** A mark without an answer, that nobody comes back to by itself. */
export function markOf(overrides: Partial<UnknownMark> = {}): UnknownMark {
  return { reason: "the handler threw", provisional: null, sweepInMs: null, quietMs: null, ...overrides };
}

/** Claims a new entry and releases it with something recorded. */
export async function released(store: Store): Promise<StoredEntry> {
  const { id, fence } = await claimed(store);
  assert.equal(await store.recordCall(id, fence, recordOf(0, "authorize", "call")), true);
  assert.equal(await store.release(id, fence, false), true);
  return await readEntry(store, id);
}

/** The entry, which must exist. */
export async function readEntry(store: Store, id: Uint8Array): Promise<StoredEntry> {
  const entry = await store.read(id);
  assert.ok(entry, "the entry must still exist");
  return entry;
}

/** The compare part of a takeover, from what was read. */
export function seen(entry: StoredEntry): SeenEntry {
  return { fence: entry.fence, attempt: entry.attempt, state: entry.state as SeenEntry["state"] };
}

/** An outcome of 201 with a small body. */
export function outcomeOf({ status = 201, ...overrides }: Partial<Outcome> = {}): StoredOutcome {
  const body = new TextEncoder().encode('{"id":"inv_1"}');
  const headers: Outcome["headers"] = [["content-type", "application/json"]];
  return { status, content: encodeContent({ headers, body, ...overrides }), pointer: null };
}

/** A success kept for an hour, without tombstone. */
export function completionOf(overrides: Partial<Completion> = {}): Completion {
  return { state: "succeeded", outcome: outcomeOf(), retentionMs: RETENTION_MS, tombstoneMs: 0, ...overrides };
}

/** A journal record. */
export function recordOf(position: number, name: string, kind: JournalRecord["kind"] = "phase"): JournalRecord {
  return { position, kind, name, value: new TextEncoder().encode(`value of ${name}`) };
}

/** An intent of a call's generation, of which "none" may be believed after a minute. */
export function intentOf(call: string, generation = 1, overrides: Partial<NewIntent> = {}): NewIntent {
  const derivedKey = randomBytes(32).toString("base64url");
  const requestDigest = new Uint8Array(randomBytes(32));
  return { call, generation, derivedKey, requestDigest, form: "settles", settlesWithinMs: 60_000, ...overrides };
}

/** An outbox message of an entry. */
export function messageOf(entryId: Uint8Array | null, overrides: Partial<NewMessage> = {}): NewMessage {
  return {
    id: randomBytes(32).toString("base64url"),
    topic: "invoice.created",
    payload: '{"amount":9007199254740993}',
    key: null,
    orderBy: null,
    delayMs: 0,
    tenant: "acme",
    client: "app",
    entryId,
    context: null,
    correlation: null,
    ...overrides,
  };
}

/** Sends one message in a transaction of its own. */
export async function sent(store: Store, message: NewMessage): Promise<void> {
  await store.transaction((session) => session.send(message));
}

/** Leases what is due: of every topic, at most ten, unless told otherwise. */
export function claimMessages(store: Store, claim: Partial<MessageClaim> = {}): Promise<ClaimedMessage[]> {
  return store.outbox.claim({ topics: ["*"], limit: 10, leaseMs: LEASE_MS, ...claim });
}

/** A business value that no other case writes. */
export const newValue = (): string => randomBytes(8).toString("hex");

/** An id in a form that can be compared. */
export const hexId = ({ id }: { id: Uint8Array }): string => Buffer.from(id).toString("hex");

/** Ids in a form that can be compared, whatever their order. */
export const hexIds = (entries: readonly { id: Uint8Array }[]): string[] => entries.map(hexId).toSorted();

/** Byte for byte, whatever class the bytes have. */
export function assertBytes(actual: Uint8Array | null | undefined, expected: Uint8Array | null): void {
  const hex = (bytes: Uint8Array | null | undefined) => (bytes ? Buffer.from(bytes).toString("hex") : bytes);
  assert.equal(hex(actual), hex(expected));
}

/** Retention is counted from the completion; a store may read its clock once for each. */
export function assertKeptFor(entry: StoredEntry, retentionMs: number): void {
  assert.ok(entry.completedAt && entry.expiresAt);
  const kept = entry.expiresAt.getTime() - entry.completedAt.getTime();
  assert.ok(Math.abs(kept - retentionMs) < 1_000, `kept for ${kept} ms instead of ${retentionMs}`);
}

/** Whatever is stored of an entry, in a form that two readings can be compared in; the passing time left out. */
export function stateOf(entry: StoredEntry): string {
  const { clock: _clock, ...stored } = entry;
  return JSON.stringify(stored, (_name, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value,
  );
}

/** Does enough other work with the store that a statement sent before has long had its turn. */
export async function meanwhile(store: Store, rounds = 20): Promise<void> {
  for (let round = 0; round < rounds; round += 1) await store.read(newEntry().id);
}
