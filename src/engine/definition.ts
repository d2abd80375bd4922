import type { Compare } from "../core/fingerprint.ts";
import type { KeySpace } from "../core/identity.ts";
import type { InputOf, InputSchemas } from "../core/input.ts";
import type { KeyForm } from "../core/intent.ts";
import type { Reconcile } from "../core/reconcile.ts";
import type { CallArguments, Recover } from "../core/recover.ts";
import type { OperationResponse, Rejection } from "../core/response.ts";
import type { Scope } from "../core/scope.ts";
import type { ClaimCommit } from "../core/store.ts";
import type { FetchAnswer, FetchOptions } from "./fetch-options.ts";

/** What every operation says of itself, whatever its run kind. */
export interface OperationOptions<S extends InputSchemas> {
  /** Stable name, part of every identity: renaming it makes old keys unknown, unless the old name stays in `aliases`. */
  readonly name: string;
  /** A positive integer, raised whenever entries of the older code cannot be resumed by chance of their phases. */
  readonly version: number;
  /** Former names, the first one first: identities keep being made from the first of them. */
  readonly aliases?: readonly string[];
  /** A Standard Schema for each part of the input; must be deterministic (it is run twice). */
  readonly input?: S;
  /** What a retry must match. Default: the instance's `compare`. */
  readonly compare?: Compare;
  /** How far one key reaches. Default: the instance's `keySpace`. */
  readonly keySpace?: KeySpace;
  /** What a key does after a rejection. Default: the instance's `afterFailure`. */
  readonly afterFailure?: AfterFailure;
  /** `text`: numbers that are no integers reach the schema as their exact text. Default `exact`: doubles, refused where one would lose digits. */
  readonly fractions?: "exact" | "text";
  /** Query members left out of the fingerprint (such as a trace id). Default: none. */
  readonly ignoreQuery?: readonly string[];
  /** Request headers that belong to the fingerprint (such as an API version). Default: none. */
  readonly fingerprintHeaders?: readonly string[];
  /** Response headers stored and replayed beside the standard ones. Default: none. */
  readonly replayHeaders?: readonly string[];
  /** Largest request body in bytes. Default: the instance's `maxBodyBytes`. */
  readonly maxBodyBytes?: number;
  /** Longest body that is kept in the entry's row, in bytes. Default: the instance's `maxStoredBodyBytes`. */
  readonly maxStoredBodyBytes?: number;
  /** How long one attempt may run, in milliseconds; then its lease is no longer renewed. Default 60,000. */
  readonly maxDurationMs?: number;
  /** How long the outcome is replayed, in milliseconds from completion. Default: the instance's `retentionMs`. */
  readonly retentionMs?: number;
  /**
   * Attempts after which a run that finds no end is given up to `needs_recovery`, where operators see it. The sweeper goes
   * on asking there, with pauses that grow to five minutes. Default 6: about half a minute. `transaction` has no use for it.
   */
  readonly maxAttempts?: number;
  /** How long a duplicate waits for a running request, in milliseconds. Default: the instance's `waitMs`. */
  readonly waitMs?: number;
}

/**
 * What a key does after the operation ended with a rejection (`failed`): `replay` answers retries with it; `runAgain` keeps
 * no failure, so that the next request with the key runs, whatever its content (Stripe's v2, EC2). Outcomes that nobody
 * knows are neither, and a run's outside calls carry the derived keys that equal content always has.
 */
export type AfterFailure = "replay" | "runAgain";

/** Who asked, and under which key: what business rows may remember of the request that made them. */
export interface Origin {
  /** The identity's digest as 64 hex digits; the same in every run, resume and `reconcile` of the key. */
  readonly id: string;
  /** The key in its stored form (raw, unless `storedKey` says otherwise). */
  readonly key: string;
  readonly scope: Scope;
}

/** What every transaction of an operation or a delivery gets beside its own. */
export interface Step<Tx> {
  /** The driver's own transaction: everything written through it commits with our row, or not at all. */
  readonly tx: Tx;
  /** Writes a message to the outbox in this transaction. `payload` is stored as JSON. */
  readonly send: Send;
  /**
   * 43 characters that only this request has, also long after its entry was purged: put it into a unique column where a
   * duplicate would stay harmful for ever. The same key with another payload has another one.
   */
  readonly reference: string;
}

/** What a `transaction` operation's code gets. */
export interface TransactionStep<Tx, Input> extends Origin, Step<Tx> {
  readonly input: Input;
  /** Aborts at `maxDurationMs`. */
  readonly signal: AbortSignal;
}

/**
 * Writes an outbox message in the surrounding transaction. Raises `oncekey_topic_unknown` for a topic that the instance
 * does not declare, `oncekey_value_unsupported` for a payload that is not JSON, `oncekey_message_too_large`.
 */
export type Send = (topic: string, payload: unknown, options?: SendOptions) => Promise<void>;

/** How a message is delivered. */
export interface SendOptions {
  /** A partition or routing key for the other side. */
  readonly key?: string;
  /**
   * Messages of a tenant with the same value are delivered one after the other, in the order of their commits: sending one
   * waits for other transactions that have sent one and not committed yet.
   */
  readonly orderBy?: string;
  /** Not before this many milliseconds. */
  readonly delayMs?: number;
}

/** One commit: business rows and stored answer are the same transaction. The closure may run again after a serialisation failure. */
export interface TransactionDefinition<Tx, S extends InputSchemas> extends OperationOptions<S> {
  /**
   * `skip` saves the look-up before BEGIN, one statement of a fresh key, where retries are rare; a replay then costs a
   * transaction that is rolled back: four statements, a transaction id, and a place among the transactions. Default `first`.
   */
  readonly lookUp?: "first" | "skip";
  /** The work. Writes through `tx`, returns the response; may run again after a serialisation failure. */
  run(step: TransactionStep<Tx, InputOf<S>>): Promise<OperationResponse | Rejection>;
}

/** What code inside a phase's (or the completing) transaction gets. */
export interface PhaseStep<Tx> extends Step<Tx> {}

/** An outside call: what to send, how, for how long, and how to settle it when no answer comes. */
export interface CallOptions<Request, Value> {
  /** Longest time one attempt may take, in milliseconds; a call without an answer by then is *unknown*, not failed. */
  readonly timeoutMs: number;
  /** The arguments, as a value: their digest shows on resume that they have not changed. */
  readonly request: Request;
  /** Makes the call. A refusal by the other side (a decline) is a value; a throw means that nobody knows. */
  run(call: CallArguments<Request>): Promise<Value>;
  /** How the call is settled when its answer is missing. */
  readonly recover: Recover<Request, Value>;
  /**
   * How the derived key is spelled. Default `base64url`, 43 characters; `providerKeyLimits` says which form a provider
   * takes. Another form is another key: change it only where no entry is unfinished.
   */
  readonly keyForm?: KeyForm;
}

declare const completedBrand: unique symbol;

/** Proof that `op.complete` was reached: the only thing a `phases` operation may return. */
export interface Completed {
  readonly [completedBrand]: true;
}

/** The handle of a running `phases` operation. */
export interface PhasesContext<Tx, Input> extends Origin {
  readonly input: Input;
  /** What the binding declared for resumes without a client. */
  readonly context: unknown;
  /** Aborts when the lease or `maxDurationMs` is lost. */
  readonly signal: AbortSignal;
  /** Runs code in one transaction and records its value; on resume the recorded value is returned and nothing runs. */
  phase<Value>(name: string, run: (step: PhaseStep<Tx>) => Promise<Value>): Promise<Value>;
  /** Makes an outside call once, finds it, or stops with its outcome known to be unknown. */
  call<Request, Value>(name: string, options: CallOptions<Request, Value>): Promise<Value>;
  /** An outside call over HTTP, with the derived key in its header. What `call` promises holds for it. */
  fetch(name: string, url: string | URL, options: FetchOptions): Promise<FetchAnswer>;
  /** The last transaction: business rows and outcome together. */
  complete(run: (step: PhaseStep<Tx>) => Promise<OperationResponse | Rejection>): Promise<Completed>;
  /** When the operation was first claimed, by the database's clock; the same on every resume. */
  now(): Date;
  /**
   * A UUID for that name; the same on every resume, another one for every other entry. Raises `oncekey_value_unsupported`
   * for a name with a lone surrogate.
   */
  uuid(name: string): string;
}

/** Recovery points: safe to crash anywhere, resumed by a retry or by the sweeper. */
export interface PhasesDefinition<Tx, S extends InputSchemas> extends OperationOptions<S> {
  /** Store the validated input with the claim, so that the sweeper can resume without a client. Default true. */
  readonly storeInput?: boolean;
  /**
   * `asynchronous`: the claim's commit does not wait for the disk. A crash of the database may lose it, and the sweeper then
   * never learns of the run; the client's retry begins it again (docs/recovery.md). Default `synchronous`.
   */
  readonly claimCommit?: ClaimCommit;
  /**
   * Demanded with an asynchronous claim: the shortest `dedupes.forMs` of its calls, in milliseconds; 0 where none dedupes.
   * Must be as long as `clientRetryWindowMs` and `maxDurationMs` together; a call that dedupes for less is refused.
   */
  readonly dedupesForMs?: number;
  /** The work: phases, calls, and at its end `op.complete`. Runs again from the top on a resume. */
  run(op: PhasesContext<Tx, InputOf<S>>): Promise<Completed>;
}

/** Wraps an existing handler. The effect and the record are *not* one transaction: a crash in between needs recovery. */
export interface CaptureDefinition<S extends InputSchemas> extends OperationOptions<S> {
  /** Statuses that mean "not begun": they free the key. Default 401, 403, 408, 425, 429 (and 503 with Retry-After, always). */
  readonly notBegun?: readonly number[];
  /** `run`: serve unprotected while the store cannot be reached. Default `refuse` (503). */
  readonly onStoreDown?: "refuse" | "run";
  /** Always `synchronous`; the other is refused at start (a claim lost in a database crash would run the handler twice). */
  readonly claimCommit?: ClaimCommit;
  /** Finds out, from the handler's own tables, what a run did whose end nobody saw. Default: only an operator can tell. */
  readonly reconcile?: Reconcile;
  /** After a crash or a throw: `needs_recovery` (default), or `runAgain`, which is at-least-once. */
  readonly afterCrash?: "needsRecovery" | "runAgain";
}
