import { type Decision, decide, type NewEntry, type StoredEntry } from "../core/entry.ts";
import { comparedPart, matchRequest, sameDigest } from "../core/fingerprint.ts";
import { type Session, StoreFailure, TransactionAbandoned } from "../core/store.ts";
import { withinTime } from "./abandon.ts";
import { done, draftEntry, type EngineContext, fingerprintAfter, limitsOf, runTimeOf, type Turn } from "./context.ts";
import { decidedTurn } from "./decided-turn.ts";
import type { TransactionDefinition } from "./definition.ts";
import { failureResult } from "./failures.ts";
import { declaredContext, entrySender } from "./messages.ts";
import type { Operation } from "./operation.ts";
import { originOf } from "./origin.ts";
import type { OperationRequest } from "./request.ts";
import { completionOf, RollBackRejection, type SettledResponse, settleResponse } from "./settled-response.ts";
import { stepOf } from "./step.ts";
import { openOutcome } from "./stored-outcome.ts";
import { uncontended } from "./uncontended.ts";

/** One transaction's worth of work: everything it needs, and the entry it will insert. */
interface Work {
  readonly context: EngineContext;
  readonly operation: Operation;
  readonly request: OperationRequest;
  readonly draft: NewEntry;
  readonly lockDigest: Uint8Array;
  readonly input: unknown;
  /** Tells once, however often contention makes it begin anew. */
  readonly claimed: () => void;
}

/** Leaves a transaction that must not go on. Rolls back; only then is the turn made that it means. */
class LeaveTransaction extends Error {
  readonly turn: () => Turn | Promise<Turn>;
  constructor(turn: () => Turn | Promise<Turn>) {
    super("transaction left");
    this.turn = turn;
  }
}

/** Runs a `transaction` operation whose identity had no entry a moment ago. */
export async function runTransaction(
  context: EngineContext,
  operation: Operation,
  request: OperationRequest,
  untilSettled = uncontended,
): Promise<Turn> {
  const { proof } = request;
  // Before a connection is taken, and again below: locks may have been waited for.
  runTimeOf(operation, request);
  const work: Work = {
    context,
    operation,
    request,
    input: await request.input(),
    draft: await draftEntry(context, operation, request, { input: null, context: null }),
    lockDigest: comparedPart(await proof.fingerprint(proof.ring.lockForm(proof.compare))),
    claimed: tellingClaim(context),
  };
  try {
    return await untilSettled(context, () => attempt(work, runHandler));
  } catch (error) {
    return failed(work, error);
  }
}

function tellingClaim({ observed }: EngineContext): () => void {
  let told = false;
  return () => {
    if (!told) observed?.tell({ kind: "claimed", attempt: 1 });
    told = true;
  };
}

async function attempt(
  given: Work,
  handle: (work: Work, session: Session<unknown>) => Promise<SettledResponse>,
): Promise<Turn> {
  const { context, request } = given;
  let release = () => {};
  try {
    const outcome = await context.store.transaction(async (session) => {
      const work: Work = { ...given, draft: await own(given, session) };
      work.claimed();
      release = context.sharing.own(request.identity.id, work.draft.fingerprint);
      const settled = await handle(work, session);
      if (settled.rollsBack) throw new RollBackRejection(settled);
      await insertOutcome(work, session, settled);
      return settled.outcome;
    });
    await context.point("transaction:committed");
    return done({ kind: "completed", outcome });
  } catch (error) {
    if (error instanceof LeaveTransaction) return await error.turn();
    if (error instanceof RollBackRejection) return await storeRejection(given, error.settled);
    throw error;
  } finally {
    release();
  }
}

/** Takes the locks and makes sure that the identity is free, or leaves. Gives the entry to be inserted. */
async function own(work: Work, session: Session<unknown>): Promise<NewEntry> {
  const { context, operation, request, draft, lockDigest } = work;
  const lock = await session.lock(request.identity.id, lockDigest, limitsOf(context, runTimeOf(operation, request)));
  if (lock === "busy") throw new LeaveTransaction(() => ({ kind: "wait", retryAfterMs: 1_000 }));
  if (lock === "mismatch") throw new LeaveTransaction(() => ({ kind: "suspect" }));
  const entry = await session.read(request.identity.id);
  if (entry === null) return draft;
  const decision = decide(entry, await matchRequest(entry, request.proof), operation);
  if (decision.kind !== "absent") throw new LeaveTransaction(() => judged(context, entry, decision));
  await session.forgetExpired(request.identity.id);
  return { ...draft, fingerprint: fingerprintAfter(operation, draft.fingerprint, entry) };
}

/** What an entry means that was found under the lock. A finished one stays as it was read; others need a second look. */
function judged(context: EngineContext, entry: StoredEntry, decision: Decision): Turn | Promise<Turn> {
  switch (decision.kind) {
    case "replay":
    case "gone":
    case "mismatch":
    case "version_unknown":
      return decidedTurn(context, entry, decision);
    default:
      return { kind: "again" };
  }
}

async function insertOutcome(work: Work, session: Session<unknown>, settled: SettledResponse): Promise<void> {
  const completion = await completionOf(work.context, work.operation, work.draft.id, settled);
  await session.insertFinished(work.draft, completion);
}

/**
 * Stores a refusal after its business rows were rolled back. A transaction of its own, because a savepoint in front of
 * every handler would cost each request a round trip; if a duplicate slipped in between, its outcome counts and ours,
 * of which nothing is left, is forgotten.
 */
async function storeRejection(work: Work, settled: SettledResponse): Promise<Turn> {
  return attempt(work, async () => ({ ...settled, rollsBack: false }));
}

async function runHandler(work: Work, session: Session<unknown>): Promise<SettledResponse> {
  const { context, operation, request, draft, input } = work;
  const { run } = operation.definition as TransactionDefinition<unknown, Record<never, never>>;
  // The entry never stores the context, which only a resume would need; its messages carry it all the same.
  const sender = { ...entrySender(context, draft), declared: () => declaredContext(request.context) };
  const step = stepOf(context, session, draft, "transaction", sender);
  const running = (signal: AbortSignal) => run({ ...step, ...originOf(draft), input: input as never, signal });
  return settleResponse(await withinTime(context, runTimeOf(operation, request), running));
}

/** What an attempt's failure means, after asking the store where asking helps. */
async function failed(work: Work, error: unknown): Promise<Turn> {
  if (error instanceof TransactionAbandoned) return done({ kind: "lease_lost", retryAfterMs: 1_000 });
  // The index let somebody else finish first: their entry decides.
  if (error instanceof StoreFailure && error.kind === "conflict") return { kind: "again" };
  if (error instanceof StoreFailure && error.kind === "commit_unknown") return afterLostCommit(work, error);
  const result = failureResult(error);
  if (result === null) throw error;
  return done(result);
}

/** A row proves that the transaction committed; an absent one proves nothing, the COMMIT may still be on its way. */
async function afterLostCommit(work: Work, error: StoreFailure): Promise<Turn> {
  const lost = done(failureResult(error) as { kind: "commit_unknown"; retryAfterMs: number });
  const entry = await work.context.store.read(work.request.identity.id).catch(() => null);
  if (entry === null) return lost;
  const ours = sameDigest(entry.fence, work.draft.fence) && entry.outcome !== null;
  const outcome = ours ? await openOutcome(work.context, entry.id, entry.outcome) : null;
  return outcome === null ? { kind: "again" } : done({ kind: "completed", outcome });
}
