import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { NewEntry, StoredEntry } from "../core/entry.ts";
import type { JournalRecord, NewIntent } from "../core/intent.ts";
import type { NewMessage } from "../core/message.ts";
import type { Outcome } from "../core/outcome.ts";
import {
  type Completion,
  type SeenEntry,
  type Session,
  type Store,
  StoreFailure,
  type TransactionLimits,
} from "../core/store.ts";
import type { SuiteCase, SuiteHarness } from "./suite.ts";

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
  /**
   * Lets time pass for the store: moves its clock, or shifts every stored instant of entries and intents (created_at,
   * lease_until, not_before, completed_at, expires_at, tombstone_until, started_at) back by as much. Called only while
   * no transaction is open.
   */
  advance(ms: number): Promise<void>;
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

/** Claims a new entry and marks it as unknown. */
export async function unknown(store: Store): Promise<StoredEntry> {
  const { id, fence } = await claimed(store, { runKind: "capture" });
  assert.equal(await store.markUnknown(id, fence, "the handler threw", null), true);
  return await readEntry(store, id);
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
export function outcomeOf(overrides: Partial<Outcome> = {}): Outcome {
  const body = new TextEncoder().encode('{"id":"inv_1"}');
  return { status: 201, headers: [["content-type", "application/json"]], body, ...overrides };
}

/** A success kept for an hour, without tombstone. */
export function completionOf(overrides: Partial<Completion> = {}): Completion {
  return { state: "succeeded", outcome: outcomeOf(), retentionMs: RETENTION_MS, tombstoneMs: 0, ...overrides };
}

/** A journal record. */
export function recordOf(position: number, name: string, kind: JournalRecord["kind"] = "phase"): JournalRecord {
  return { position, kind, name, value: new TextEncoder().encode(`value of ${name}`) };
}

/** An intent of a call's generation. */
export function intentOf(call: string, generation = 1): NewIntent {
  const derivedKey = randomBytes(32).toString("base64url");
  return { call, generation, derivedKey, requestDigest: new Uint8Array(randomBytes(32)) };
}

/** An outbox message of an entry. */
export function messageOf(entryId: Uint8Array): NewMessage {
  const id = randomBytes(32).toString("base64url");
  const payload = '{"amount":9007199254740993}';
  return { id, topic: "invoice.created", payload, key: null, orderBy: null, delayMs: 0, tenant: "acme", entryId };
}

/** A business value that no other case writes. */
export const newValue = (): string => randomBytes(8).toString("hex");

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

/** Why {@link rolledBack} ended its transaction. */
class RollBack extends Error {
  override readonly name = "RollBack";
}

/** Runs the body in a transaction that is then rolled back, and gives what the body gave. */
export async function rolledBack<R>(store: Store, body: (session: Session<unknown>) => Promise<R>): Promise<R> {
  const results: R[] = [];
  const marker = new RollBack("rolled back by the suite");
  const ended = store.transaction(async (session) => {
    results.push(await body(session));
    throw marker;
  });
  await assert.rejects(ended, (error) => error === marker);
  return results[0] as R;
}

/** More than any store should need under the few racers of this suite. */
const MOST_TRIES = 50;

/**
 * Runs the body in a transaction as the engine does: again where the store rolled it back for contention (at
 * SERIALIZABLE any transaction may be refused so), and `null` where somebody else finished the entry first.
 */
export async function settledRace<R>(store: Store, body: (session: Session<unknown>) => Promise<R>): Promise<R | null> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await store.transaction(body);
    } catch (error) {
      const kind = error instanceof StoreFailure ? error.kind : null;
      if (kind === "conflict") return null;
      if (kind !== "contention" || tried === MOST_TRIES) throw error;
    }
  }
}

/** A transaction whose first part has run and that stays open until told. */
export interface OpenTransaction<R> {
  readonly result: R;
  readonly session: Session<unknown>;
  commit(): Promise<void>;
  rollBack(): Promise<void>;
}

/**
 * Runs the body in a transaction and then, while that is open, `during`. Rolled back at the end unless it was committed:
 * a case that fails must not leave a transaction that everything else waits for.
 */
export async function whileOpen<R>(
  store: Store,
  body: (session: Session<unknown>) => Promise<R>,
  during: (open: OpenTransaction<R>) => Promise<void>,
): Promise<void> {
  const decision = settled<boolean>();
  const started = settled<{ result: R; session: Session<unknown> }>();
  const ended = store.transaction(async (session) => {
    started.settle({ result: await body(session), session });
    if (!(await decision.promise)) throw new RollBack("rolled back by the suite");
  });
  const end = async (commit: boolean) => {
    decision.settle(commit);
    await ended.catch((error: unknown) => {
      if (!(error instanceof RollBack)) throw error;
    });
  };
  const endedEarly = ended.then((): never => assert.fail("the transaction ended before it was told to"));
  const open = await Promise.race([started.promise, endedEarly]);
  endedEarly.catch(() => {});
  try {
    await during({ ...open, commit: () => end(true), rollBack: () => end(false) });
  } finally {
    await end(false);
  }
}

function settled<T>(): { promise: Promise<T>; settle: (value: T) => void } {
  let settle: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, settle };
}

/** Does enough other work with the store that a statement sent before has long had its turn. */
export async function meanwhile(store: Store, rounds = 20): Promise<void> {
  for (let round = 0; round < rounds; round += 1) await store.read(newEntry().id);
}
