import { pause } from "../core/clock.ts";
import { decide, type StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import { matchRequest } from "../core/fingerprint.ts";
import { type AnyOutcome, isInMemory } from "../core/outcome.ts";
import { StoreFailure } from "../core/store.ts";
import { claimCapture, unknownAfterCrash } from "./capture.ts";
import { done, type EngineContext, fingerprintAfter, jittered, retentionOf, type Turn } from "./context.ts";
import { BUSY_RETRY_MS, decidedTurn, failedTurn } from "./decided-turn.ts";
import type { Operation } from "./operation.ts";
import { claimPhases, resumePhases } from "./phases.ts";
import { mayReconcile, mayRunAgain, reconcile } from "./reconcile.ts";
import type { OperationRequest } from "./request.ts";
import type { AnyResult } from "./run-result.ts";
import { storedForm } from "./settled-response.ts";
import { runTransaction } from "./transaction.ts";

/**
 * Runs an operation once for its identity. Exact duplicates in this process wait for one leader and take its answer;
 * the leader looks, claims, runs, or waits for another process. Waiting holds no connection.
 */
export async function execute(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
): Promise<AnyResult> {
  const { clock } = context.settings;
  const deadlineAtMs = clock.monotonicMs() + request.waitMs;
  const share = await shareKey(request);
  for (;;) {
    const running = context.sharing.running(share);
    if (running === undefined) {
      return context.sharing.lead(share, () => lead(context, operation, request, deadlineAtMs));
    }
    const joinedAtMs = clock.monotonicMs();
    const leftMs = Math.max(0, deadlineAtMs - joinedAtMs);
    const joined = await context.sharing.join(running, leftMs);
    if (leftMs > 0 && joined.kind !== "crowded") context.observed?.waits(clock.monotonicMs() - joinedAtMs);
    if (joined.kind !== "result") return { kind: "busy", retryAfterMs: BUSY_RETRY_MS };
    const result = followerResult(operation, joined.result);
    context.observed?.follows(joined.result);
    if (result !== null) return result;
    if (clock.monotonicMs() >= deadlineAtMs) return { kind: "busy", retryAfterMs: BUSY_RETRY_MS };
  }
}

/** What makes two requests of this process the same run: the identity, and the exact bytes (or else the fingerprint). */
async function shareKey({ identity, proof }: OperationRequest): Promise<string> {
  const digest = proof.wireDigest ?? (await proof.fingerprint(proof.ring.form(proof.compare)));
  return Buffer.concat([identity.id, digest]).toString("base64");
}

/** The leader's result as a duplicate sees it, or `null` where the duplicate has to look for itself. */
function followerResult(operation: Operation, result: AnyResult): AnyResult | null {
  switch (result.kind) {
    case "completed":
    case "unprotected":
      return shared(storedForm(operation, result.outcome));
    case "replayed":
      return shared(result.outcome);
    case "provisional":
      return {
        kind: "unknown",
        state: "needs_recovery",
        reason: "handler_failed",
        provisional: isInMemory(result.outcome.body) ? storedForm(operation, result.outcome) : null,
        retryAfterMs: BUSY_RETRY_MS,
      };
    case "busy":
    case "lease_lost":
    case "commit_unknown":
    case "not_begun":
      return null;
    default:
      return result;
  }
}

/** A holder of its own of the leader's bytes; `null` where the leader has let go of them already. */
function shared(outcome: AnyOutcome): AnyResult | null {
  const body = isInMemory(outcome.body) ? outcome.body : outcome.body.share();
  return body === null ? null : { kind: "replayed", outcome: { ...outcome, body } };
}

const SUSPICIONS = 4;
/** Turns in which the entry changed under us, before we call it contention. */
const MOST_ROUNDS = 1_000;

async function lead(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  deadlineAtMs: number,
): Promise<AnyResult> {
  const place = waitingPlace(context, request);
  try {
    const result = await takeTurns(context, operation, request, deadlineAtMs, place.take);
    context.observed?.led(result);
    return result;
  } finally {
    place.leave();
  }
}

/** A place among those that wait for the identity: taken at the first wait, left once. */
function waitingPlace({ sharing }: EngineContext, { identity }: OperationRequest) {
  let leave: (() => void) | null = null;
  return {
    take(): boolean {
      leave ??= sharing.place(identity.id);
      return leave !== null;
    },
    leave: () => leave?.(),
  };
}

async function takeTurns(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  deadlineAtMs: number,
  takePlace: () => boolean,
): Promise<AnyResult> {
  const { clock } = context.settings;
  let suspicions = 0;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const turn = await takeTurn(context, operation, request, round);
    if (turn.kind === "done") return turn.result;
    // A duplicate that ends releases its two locks one after the other, and for an instant looks like another payload.
    // A real one stays.
    if (turn.kind === "suspect" && ++suspicions >= SUSPICIONS) return { kind: "mismatch", state: "in_progress" };
    if (turn.kind !== "wait") {
      await pause(clock, jittered(context, 4, suspicions, 50));
      continue;
    }
    suspicions = 0;
    const leftMs = deadlineAtMs - clock.monotonicMs();
    if (leftMs <= 0 || !takePlace()) return { kind: "busy", retryAfterMs: turn.retryAfterMs };
    const pausedAtMs = clock.monotonicMs();
    await pause(clock, Math.min(jittered(context, 20, round, 500), leftMs));
    context.observed?.waits(clock.monotonicMs() - pausedAtMs);
  }
  return { kind: "contention", retryAfterMs: BUSY_RETRY_MS };
}

/** One look at the entry and what follows from it. */
async function takeTurn(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  round: number,
): Promise<Turn> {
  const skips = "lookUp" in operation.definition && operation.definition.lookUp === "skip";
  // Both are judged by what the look-up finds.
  const skipsLookUp = skips && request.firstSentAtMs === undefined && operation.rules.afterFailure === "replay";
  let unseen = round === 0;
  let seen: StoredEntry | null = null;
  try {
    const owner = context.sharing.owner(request.identity.id);
    if (owner !== undefined) {
      const match = await matchRequest({ fingerprint: owner, wireDigest: null }, request.proof);
      if (match === "different") return done({ kind: "mismatch", state: "in_progress" });
    }
    if (skipsLookUp && round === 0) return await startBlind(context, operation, request);
    seen = await context.store.read(request.identity.id);
    unseen = seen === null;
    return await act(context, operation, request, seen);
  } catch (error) {
    if (unseen) return afterFailure(context, operation, request, error);
    if (seen === null || decide(seen, "equal", operation).kind === "absent") return failedTurn(error);
    return failedTurn(error, seen.state);
  }
}

/** Without a look-up; input that does not validate must still meet a known entry first. */
async function startBlind(context: EngineContext, operation: Operation, request: OperationRequest): Promise<Turn> {
  try {
    await request.input();
  } catch {
    return act(context, operation, request, await context.store.read(request.identity.id));
  }
  return start(context, operation, request);
}

async function act(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  entry: StoredEntry | null,
): Promise<Turn> {
  const match = entry === null ? "equal" : await matchRequest(entry, request.proof);
  const decision = decide(entry, match, operation);
  switch (decision.kind) {
    case "absent":
      if (await isTooLate(context, operation, request)) return done({ kind: "too_late" });
      // A transaction run removes a dead entry under its own lock; the other kinds before they claim.
      if (entry === null || operation.runKind === "transaction") return start(context, operation, request);
      await context.store.forgetExpired(request.identity.id);
      return start(context, operation, afterFailed(operation, request, entry));
    case "unknown":
      return (
        takeUp(context, operation, request, entry as StoredEntry) ??
        decidedTurn(context, entry as StoredEntry, decision)
      );
    case "resume":
      return takeOver(context, operation, request, entry as StoredEntry);
    case "abandoned":
      return unknownAfterCrash(context, operation, request, entry as StoredEntry);
    default:
      return decidedTurn(context, entry as StoredEntry, decision);
  }
}

/** Whether a request with an unknown key may be a retry of one whose outcome is forgotten. */
async function isTooLate(
  { store }: EngineContext,
  operation: Operation,
  { firstSentAtMs }: OperationRequest,
): Promise<boolean> {
  if (firstSentAtMs === undefined) return false;
  const retentionMs = retentionOf(operation);
  // The client's clock may be wrong by so much: a request that looks younger than it is must still be refused.
  const skewMs = Math.min(CLOCK_SKEW_MS, retentionMs / 10);
  const ageMs = (await store.clockMs()) - firstSentAtMs;
  if (ageMs < -skewMs) throw fromTheFuture();
  return ageMs >= retentionMs - skewMs;
}

function fromTheFuture(): OncekeyError {
  return new OncekeyError(
    "idempotency_request_invalid",
    "The request says that it is first sent at an instant that has not come yet: a retry of it could not be told from a late one. Nothing was run or stored. Set the clock, and send the same instant with every attempt.",
  );
}

/** The request as it runs where its key has forgotten a failure. */
function afterFailed(operation: Operation, request: OperationRequest, entry: StoredEntry): OperationRequest {
  const { proof } = request;
  const fingerprint: typeof proof.fingerprint = async (form) =>
    fingerprintAfter(operation, await proof.fingerprint(form), entry);
  return { ...request, proof: { ...proof, fingerprint } };
}

const CLOCK_SKEW_MS = 60_000;

/** What this operation can do about an outcome that nobody knows; `null`: nothing now. */
function takeUp(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  entry: StoredEntry,
): Promise<Turn> | null {
  if (mayReconcile(context, operation, entry)) return reconcile(context, operation, entry);
  return mayRunAgain(context, operation, entry) ? claimCapture(context, operation, request, entry) : null;
}

/** Runs what has no entry. */
function start(context: EngineContext, operation: Operation, request: OperationRequest): Promise<Turn> {
  switch (operation.runKind) {
    case "transaction":
      return runTransaction(context, operation, request);
    case "phases":
      return claimPhases(context, operation, request);
    case "capture":
      return claimCapture(context, operation, request);
  }
}

function takeOver(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  entry: StoredEntry,
): Promise<Turn> {
  if (operation.runKind === "phases") return resumePhases(context, operation, request, entry);
  return claimCapture(context, operation, request, entry);
}

/** For a request of whose key nothing was seen: only then may an operation run while the store is down. */
async function afterFailure(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  error: unknown,
): Promise<Turn> {
  const unprotected = "onStoreDown" in operation.definition && operation.definition.onStoreDown === "run";
  if (unprotected && error instanceof StoreFailure && error.kind === "unavailable" && request.handler !== undefined) {
    context.settings.onError(error, { operation: operation.name, at: "claim (running unprotected)" });
    return done({ kind: "unprotected", outcome: await request.handler(new AbortController().signal) });
  }
  return failedTurn(error);
}
