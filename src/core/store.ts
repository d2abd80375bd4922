import type { BodyList } from "./body-store.ts";
import type { Completion } from "./completion.ts";
import type { KnownDelivery, NewDelivery, Producer, Subject } from "./delivery.ts";
import type { EntryState, NewEntry, RunKind, StoredEntry } from "./entry.ts";
import type { Intent, Journal, JournalRecord, NewIntent } from "./intent.ts";
import type { NewMessage } from "./message.ts";
import type { OutboxStore } from "./outbox.ts";
import type { Resolution, Resolved } from "./resolution.ts";
import type { SequenceNumber } from "./sequence.ts";
import type { StoredOutcome } from "./stored-outcome.ts";

/** What went wrong in a store, sorted by what the engine must do about it. */
export type StoreFailureKind =
  /** Not reachable: nothing was done by the statement that failed. */
  | "unavailable"
  /** 40001, 40P01, 55P03: rolled back, may be run again. */
  | "contention"
  /** The entry's own unique index refused the last insert: somebody else finished first. Rolled back. */
  | "conflict"
  /** 25P02, or a COMMIT that answered ROLLBACK: the handler swallowed an SQL error. Rolled back. */
  | "aborted"
  /** The transaction the handler was given is not the current one any more: it issued COMMIT or ROLLBACK itself. */
  | "transaction_lost"
  /** The connection broke after COMMIT was sent: committed or not, nobody knows yet. */
  | "commit_unknown"
  /** The server ended the transaction: idle or running for too long. Rolled back. */
  | "timeout";

/** The one error a store raises for the expected failures above; anything else passes through as it is. */
export class StoreFailure extends Error {
  override readonly name = "StoreFailure";
  readonly kind: StoreFailureKind;

  constructor(kind: StoreFailureKind, message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
  }
}

/**
 * Thrown by the engine through a transaction's body that it gives up while the body may still run (a handler that hangs
 * past `maxDurationMs`): roll back and never hand the connection to anybody else. Only where {@link StoreTraits.abandons}.
 */
export class TransactionAbandoned extends Error {
  override readonly name = "TransactionAbandoned";
}

/** Time limits of one transaction, set for that transaction only. */
export interface TransactionLimits {
  readonly lockTimeoutMs: number;
  /** The server ends the transaction when it hears nothing for so long: a dead host must not hold its locks. */
  readonly idleTimeoutMs: number;
}

/** What the two try-locks told: we run; an exact duplicate runs; another payload runs under this key. */
export type LockResult = "owner" | "busy" | "mismatch";

/**
 * One open transaction: the caller's own object and the statements Oncekey adds to it. Every fenced statement must have
 * matched before the transaction may commit; a `false` obliges the caller to throw, which rolls it back.
 */
export interface Session<Tx> extends ArrivalSession {
  readonly tx: Tx;
  /** The first statement of a `transaction` run: sets the limits and takes the locks, without waiting. */
  lock(id: Uint8Array, lockDigest: Uint8Array, limits: TransactionLimits): Promise<LockResult>;
  /**
   * The first statement of a phase: sets the limits and tells whether the fence still owns the entry (also one that was
   * marked `needs_recovery` meanwhile: a slow owner may still complete it, but record no further phase).
   */
  enter(id: Uint8Array, fence: Uint8Array, limits: TransactionLimits): Promise<boolean>;
  /** The entry in a snapshot newer than the lock (at READ COMMITTED). */
  read(id: Uint8Array): Promise<StoredEntry | null>;
  /** Removes an entry whose retention is over, so that its identity can be used anew; as {@link Store.forgetExpired}. */
  forgetExpired(id: Uint8Array): Promise<void>;
  /** The finished entry of a `transaction` run, in one insert; raises `transaction_lost` or `conflict`. */
  insertFinished(entry: NewEntry, completion: Completion): Promise<void>;
  /** Records a phase's value and moves the recovery point. Fenced: `false` when the entry is no longer ours. */
  recordPhase(id: Uint8Array, fence: Uint8Array, record: JournalRecord): Promise<boolean>;
  /** Stores the outcome. Fenced: `false` when the entry is no longer ours. */
  complete(id: Uint8Array, fence: Uint8Array, completion: Completion): Promise<boolean>;
  /** Writes an outbox row. */
  send(message: NewMessage): Promise<void>;
}

/** What a session adds for arrivals: deliveries, numbered messages, state updates. */
export interface ArrivalSession {
  /**
   * The first statement of a transaction that takes arrivals in: sets the limits and tries the lock of each digest, without
   * waiting. One answer a digest, in their order: `false` where another transaction has it.
   */
  tryLocks(digests: readonly Uint8Array[], limits: TransactionLimits): Promise<boolean[]>;
  /** Those of the deliveries that are remembered, in any order. Expired ones are absent. */
  deliveries(digests: readonly Uint8Array[]): Promise<KnownDelivery[]>;
  /**
   * Remembers deliveries, in place of expired ones: the last statement before the commit. Raises `conflict` where another
   * transaction was faster, `transaction_lost` where this is not the one that took the locks.
   */
  accept(deliveries: readonly NewDelivery[]): Promise<void>;
  /** Forgets deliveries before their time, where others take their place. Raises `transaction_lost` as {@link accept}. */
  forget(digests: readonly Uint8Array[]): Promise<void>;
  /** The producer's last accepted number, or `null`: none yet. */
  producer(digest: Uint8Array): Promise<SequenceNumber | null>;
  /**
   * Moves a producer on from the number last seen (`null`: its first): the last statement before the commit. Raises
   * `conflict` where that is not its last number any more, `transaction_lost` as {@link accept}.
   */
  moveProducer(digest: Uint8Array, producer: Producer, from: SequenceNumber | null, to: SequenceNumber): Promise<void>;
  /** Moves a subject to a version if that is newer than its last one, and tells whether it was. Waits for others at it. */
  moveSubject(digest: Uint8Array, subject: Subject, version: bigint): Promise<boolean>;
}

/** Which entries the sweeper asks for: operations this process can resume, each with its kind and newest version. */
export interface SweepTarget {
  readonly operation: string;
  readonly runKind: RunKind;
  readonly operationVersion: number;
}

/** How a claim is committed: `asynchronous` does not wait until it is safe from a crash of the store. */
export type ClaimCommit = "synchronous" | "asynchronous";

/** What the engine must know about a store before it promises anything. */
export interface StoreTraits {
  /** How many connections business and engine share; `null`: unknown. Transactions are held to one fewer. */
  readonly connections: number | null;
  /**
   * Whether a lease can be renewed while every business connection is in use. `false` (one connection only): the lease
   * is as long as the operation may run. `"unknown"`: refused at start for kinds that need renewal.
   */
  readonly renews: boolean | "unknown";
  /** Whether a transaction whose body hangs can be given up at once; else the server's idle time-out has to end it. */
  readonly abandons: boolean;
}

/**
 * Where entries live. Every method is one atomic step, on a connection of its own unless it belongs to a `Session`.
 * Time that decides anything is the store's clock, read in the statement that uses it.
 */
export interface Store<Tx = unknown> {
  readonly name: string;
  readonly traits: StoreTraits;

  /** Checks that the store can be used by this version; raises `oncekey_schema_missing`, `oncekey_schema_skew` or a {@link StoreFailure}. */
  start(): Promise<void>;

  /** The store's clock, in milliseconds since 1970. */
  clockMs(): Promise<number>;

  /** The entry, or `null`. One statement, no transaction, no write. */
  read(id: Uint8Array): Promise<StoredEntry | null>;

  /** Whether a `Session.lock` holds the identity now, in whatever process. Takes no lock itself, and hinders nobody. */
  running(id: Uint8Array): Promise<boolean>;

  /**
   * Inserts the claim in a commit of its own, unless the identity has an entry (`null`). Sent again with the same fence,
   * because its answer was lost, it gives the same row. `asynchronous`: a crash of the store may lose it, as long as no
   * other commit has followed. Default `synchronous`.
   */
  claim(entry: NewEntry, leaseMs: number, commit?: ClaimCommit): Promise<StoredEntry | null>;
  /**
   * Takes over an entry that is in progress and claimable, or released: new fence, attempt + 1. A compare-and-set on the
   * fence and attempt last seen; `null` when somebody was faster. Out of `needs_recovery` only where the caller saw it in
   * that state (reconcile and operators claim first); there it does not wait for the last lease. Sent again with the same
   * fence it gives the same row.
   */
  takeOver(id: Uint8Array, seen: SeenEntry, fence: Uint8Array, leaseMs: number): Promise<StoredEntry | null>;
  /**
   * Extends the lease. `false`: the fence no longer owns the entry. Must not wait behind business connections, nor behind
   * a transaction that has only entered.
   */
  renew(id: Uint8Array, fence: Uint8Array, leaseMs: number): Promise<boolean>;
  /**
   * Removes an entry whose retention is over and whose tombstone, unless it is that of a failure, no longer stands. `false`:
   * there was none. For a failure it is only asked where failures are forgotten.
   */
  forgetExpired(id: Uint8Array): Promise<boolean>;
  /**
   * Gives the claim back. Deletes the entry where nothing is recorded, this was the first attempt, the entry was never
   * marked unknown, and `keep` is false; else the row, its fingerprint, records and intents stay, as `released`. `keep` is for attempts that have sent a call
   * without an intent: another payload under this key must still be a mismatch. `false`: not ours any more.
   */
  release(id: Uint8Array, fence: Uint8Array, keep: boolean): Promise<boolean>;
  /** Keeps the entry in progress but claimable only after `waitMs`: something already sent may still land. */
  suspend(id: Uint8Array, fence: Uint8Array, waitMs: number): Promise<boolean>;
  /**
   * Marks that nobody knows what happened. Keeps the fence: a slow owner's completion still counts. `false`: the fence no
   * longer matches, or the entry is finished.
   */
  markUnknown(id: Uint8Array, fence: Uint8Array, mark: UnknownMark): Promise<boolean>;
  /** Stores the outcome in a commit of its own (`capture`). `false`: the fence no longer matches. */
  complete(id: Uint8Array, fence: Uint8Array, completion: Completion): Promise<boolean>;

  /** What was recorded for the entry, positions ascending. */
  journal(id: Uint8Array): Promise<Journal>;
  /** Commits an intent (or restarts the age of an open one of that generation), fenced. `null`: not ours any more. */
  openIntent(id: Uint8Array, fence: Uint8Array, intent: NewIntent): Promise<Intent | null>;
  /** Commits that a generation can never land any more, fenced. */
  cancelIntent(id: Uint8Array, fence: Uint8Array, call: string, generation: number): Promise<boolean>;
  /** Commits a call's result and settles its intents, fenced. Sent again with the same record it gives `true`. */
  recordCall(id: Uint8Array, fence: Uint8Array, record: JournalRecord): Promise<boolean>;

  /** Opens a transaction, runs the body in it, commits. A throw of the body rolls back and is raised again. */
  transaction<R>(body: (session: Session<Tx>) => Promise<R>): Promise<R>;
  /**
   * For one run inside a transaction that the caller opened and will end. Raises `oncekey_transaction_unusable` where `tx`
   * is none; its methods do where it is not open, has failed, or is in use by another run.
   */
  within(tx: Tx): WithinTransaction<Tx>;
  /** Inside a transaction of the caller's own: locks the entry if the fence still owns it (`assertOwned`). */
  owns(tx: Tx, id: Uint8Array, fence: Uint8Array): Promise<boolean>;

  /** Writes an outbox row inside a transaction of the caller's own (a captured handler's). */
  send(tx: Tx, message: NewMessage): Promise<void>;

  /**
   * Takes over at most `limit` entries of a target that are due, oldest first, each under a fence of its own: in progress
   * with a lapsed lease, or (`needs_recovery`, `released`) with its last lease over and its time for the sweeper come. Rows
   * that somebody else holds are skipped. `phases` entries without a stored input are left out, only a retry can go on with them; so are
   * captured ones in progress, which are marked first ({@link markLapsed}).
   */
  takeDue(target: SweepTarget, limit: number, leaseMs: number): Promise<TakenEntry[]>;
  /** Marks at most `limit` captured entries of a target whose lease lapsed, keeping their fences. Returns how many. */
  markLapsed(target: SweepTarget, mark: Omit<UnknownMark, "provisional">, limit: number): Promise<number>;
  /** Notes that a running sweeper can take these up, so that operators see what none can. */
  announce(targets: readonly SweepTarget[]): Promise<void>;
  /** Deletes (or turns into tombstones) at most `limit` entries whose retention is over. Returns how many. */
  purge(limit: number): Promise<number>;
  /**
   * Looks after the store's own tables, never in the way of requests. `true`: something was done. The signal ends its waits.
   */
  maintain(signal?: AbortSignal): Promise<boolean>;
  /** An operator's decision: claims the entry, settles it and writes the audit row, in one commit. */
  resolve(id: Uint8Array, resolution: Resolution): Promise<Resolved>;

  /** Those of the deliveries that are remembered, in any order. One statement, no transaction. */
  deliveries(digests: readonly Uint8Array[]): Promise<KnownDelivery[]>;
  /** Deletes at most `limit` deliveries that need not be remembered any more. Returns how many. */
  purgeDeliveries(limit: number): Promise<number>;
  /** The messages that wait for a relay. */
  readonly outbox: OutboxStore;
  /** The bodies that may have to be removed from the `BodyStore`. */
  readonly bodies: BodyList;
}

/** A transaction that the caller opened, as one run uses it. Waits for nobody, and leaves its settings as they are. */
export interface WithinTransaction<Tx> {
  /** As {@link Store.read}, in the transaction: on no other connection. */
  read: Store<Tx>["read"];
  /**
   * Runs the body between savepoints. What it wrote and its locks stay until the caller's transaction ends; a throw undoes
   * them at once, and is raised again. Its session's `lock` sets no limits, and raises `oncekey_transaction_unusable` where
   * the transaction has written before it, or is read only.
   */
  transaction: Store<Tx>["transaction"];
}

/** What marking an entry as unknown writes. */
export interface UnknownMark {
  readonly reason: string;
  /** The answer that its owner gave meanwhile, whole (no pointer); `null`: none, one that was kept before stays. */
  readonly provisional: StoredOutcome | null;
  /** When the sweeper is to look at it, in milliseconds from now; `null`: only a retry or a person does. */
  readonly sweepInMs: number | null;
  /** How long after its last lease "nothing happened" may be believed, in milliseconds; `null`: nobody can say. */
  readonly quietMs: number | null;
}

/** An entry that the sweeper took over. */
export interface TakenEntry {
  /** As it is now, under the sweeper's fence; `null` where this release cannot read it (a newer encoding, a damaged row). */
  readonly entry: StoredEntry | null;
  readonly id: Uint8Array;
  readonly fence: Uint8Array;
  readonly operation: string;
  /** The state it was taken from. */
  readonly from: SeenEntry["state"];
  /** How long the lease before had been over, in milliseconds. */
  readonly idleMs: number;
  /** The `settlesInMs` of its clock before it was taken: taking an entry over clears it. */
  readonly settlesInMs: number | null;
}

/** What a taker saw: the compare part of the compare-and-set. */
export interface SeenEntry {
  readonly fence: Uint8Array;
  readonly attempt: number;
  readonly state: Extract<EntryState, "in_progress" | "released" | "needs_recovery">;
}
