import type { Cipher } from "../core/cipher.ts";
import type { NewEntry, StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import { afterForgotten, type FingerprintRing } from "../core/fingerprint.ts";
import { storedKey } from "../core/key.ts";
import type { ClaimCommit, Store, TransactionLimits } from "../core/store.ts";
import type { Emit } from "./emitter.ts";
import type { ObservedRun } from "./observed-run.ts";
import type { Operation } from "./operation.ts";
import type { OperationRequest } from "./request.ts";
import type { AnyResult } from "./run-result.ts";
import { DEFAULT_MAX_DURATION_MS, type Settings } from "./settings.ts";
import type { Sharing } from "./sharing.ts";

/** What every run works with. */
export interface EngineContext {
  readonly store: Store<unknown>;
  readonly settings: Settings;
  readonly ring: FingerprintRing;
  readonly sharing: Sharing;
  /** Seals what is stored of a request. */
  readonly cipher: Cipher;
  /** Tells observers; `null`: there are none. */
  readonly emit: Emit | null;
  /** The run that this context is for, where observers are told of it. */
  readonly observed: ObservedRun | null;
  /** Awaited between any two effects; does nothing outside crash tests. */
  point(name: string): Promise<void>;
}

/**
 * What one turn of a run gave: a result, or a reason to take another turn. `wait`: somebody else runs; `again`: the
 * entry changed under us; `suspect`: the locks say that another payload runs (see `lead`).
 */
export type Turn =
  | { readonly kind: "done"; readonly result: AnyResult }
  | { readonly kind: "wait"; readonly retryAfterMs: number }
  | { readonly kind: "again" }
  | { readonly kind: "suspect" };

/** A turn that ends the run. */
export function done(result: AnyResult): Turn {
  return { kind: "done", result };
}

const FENCE_LENGTH = 16;
const SEED_LENGTH = 16;

/** A new claim of this request, with a fence of its own. */
export async function draftEntry(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  stored: { readonly input: Uint8Array | null; readonly context: Uint8Array | null },
): Promise<NewEntry> {
  const { identity, proof } = request;
  const { random, storedKey: how } = context.settings;
  return {
    id: identity.id,
    tenant: identity.scope.tenant,
    client: identity.scope.client,
    operation: operation.name,
    key: storedKey(identity.key, how),
    runKind: operation.runKind,
    operationVersion: operation.version,
    fingerprint: await proof.fingerprint(proof.ring.form(proof.compare)),
    wireDigest: proof.wireDigest,
    fence: random.bytes(FENCE_LENGTH),
    seed: random.bytes(SEED_LENGTH),
    correlation: request.correlation ?? null,
    ...stored,
  };
}

/** The fingerprint of a run that takes the place of a dead entry: another one where that is a failure to be forgotten. */
export function fingerprintAfter(
  { rules }: Operation,
  fingerprint: Uint8Array,
  { state, seed }: Pick<StoredEntry, "state" | "seed">,
): Uint8Array {
  return state === "failed" && rules.afterFailure === "runAgain" ? afterForgotten(fingerprint, seed) : fingerprint;
}

/** A fresh owner token. */
export function newFence(context: EngineContext): Uint8Array {
  return context.settings.random.bytes(FENCE_LENGTH);
}

/** How long one attempt of the operation may run. */
export function maxDurationOf(operation: Operation): number {
  return operation.definition.maxDurationMs ?? DEFAULT_MAX_DURATION_MS;
}

/**
 * How long a run that begins now may take: the operation's time, or less where the host ends the request earlier. Raises
 * `idempotency_closing` where nothing is left: zero is a time, not the lack of one.
 */
export function runTimeOf(operation: Operation, { remainingMs }: Pick<OperationRequest, "remainingMs">): number {
  const mostMs = maxDurationOf(operation);
  if (remainingMs === undefined) return mostMs;
  const leftMs = remainingMs();
  if (leftMs > 0) return Math.min(mostMs, leftMs);
  throw new OncekeyError(
    "idempotency_closing",
    "The host ends this request before the operation could begin. Nothing was run. Try again with the same key.",
    { retryAfterMs: CLOSING_RETRY_MS },
  );
}

const CLOSING_RETRY_MS = 1_000;

/** How long outcomes of the operation are kept, in milliseconds from completion. */
export function retentionOf(operation: Operation): number {
  // Not taken apart in the signature: the published types have no `engine`.
  return operation.definition.retentionMs ?? operation.engine.settings.retentionMs;
}

const DEFAULT_MAX_ATTEMPTS = 6;

/** After how many attempts without an end an entry of the operation is given up to `needs_recovery`. */
export function maxAttemptsOf(operation: Operation): number {
  return operation.definition.maxAttempts ?? DEFAULT_MAX_ATTEMPTS;
}

/** How the operation's claims are committed. */
export function claimCommitOf({ definition }: Operation): ClaimCommit {
  return (definition as { readonly claimCommit?: ClaimCommit }).claimCommit ?? "synchronous";
}

const LOCK_TIMEOUT_MS = 10_000;

/** Limits of a transaction that may take so long. Lock waits stay well under the lease: a lease must not die in a queue. */
export function limitsOf({ settings }: EngineContext, maxDurationMs: number): TransactionLimits {
  const lockTimeoutMs = Math.max(1, Math.min(LOCK_TIMEOUT_MS, Math.floor(settings.leaseMs / 3)));
  return { lockTimeoutMs, idleTimeoutMs: Math.ceil(maxDurationMs) };
}

/**
 * How the operation's outcome is kept. A failure that the key is to forget is over at once; its row stays as long as an
 * outcome would, or the run after a purge would be the failed one again for every system that it asks.
 */
export function keeping(
  context: EngineContext,
  operation: Operation,
  state: "succeeded" | "failed",
): { retentionMs: number; tombstoneMs: number } {
  const { tombstoneMs } = context.settings;
  const retentionMs = retentionOf(operation);
  const isForgotten = state === "failed" && operation.rules.afterFailure === "runAgain";
  return isForgotten ? { retentionMs: 0, tombstoneMs: retentionMs } : { retentionMs, tombstoneMs };
}

const LONGEST_PAUSE_MS = 300_000;

/** How long an entry rests after its n-th fruitless attempt, in milliseconds: 1 s, 2 s, 4 s … 5 min. */
export function growingPause(attempt: number): number {
  return Math.min(LONGEST_PAUSE_MS, 1_000 * 2 ** Math.min(attempt - 1, 20));
}

/** A pause that grows with each try and is spread, so that a crowd does not come back at one instant. */
export function jittered(context: EngineContext, baseMs: number, attempt: number, mostMs: number): number {
  const span = Math.min(mostMs, baseMs * 2 ** attempt);
  return span / 2 + (span / 2) * context.settings.random.unit();
}
