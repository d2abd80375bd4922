import { decodeValue, encodeValue } from "../core/codec.ts";
import { checkNumberedBatch, type NewDelivery, type Producer, producerDigest } from "../core/delivery.ts";
import { numberedDigest } from "../core/reference.ts";
import type { SequenceNumber } from "../core/sequence.ts";
import {
  type BatchDecision,
  decideBatch,
  type NumberedSpan,
  REMEMBERED_BATCHES,
  type SequenceSpan,
} from "../core/sequence-batch.ts";
import { type Session, StoreFailure } from "../core/store.ts";
import { withinTime } from "./abandon.ts";
import type { DeliveryStep, NumberedBatch, NumberedBatchOptions, NumberedBatchResult } from "./arrival.ts";
import { type ConsumeRules, consumeRules } from "./consume-rules.ts";
import type { EngineContext } from "./context.ts";
import { deliveryStep, newSeed } from "./delivery-step.ts";
import { openDelivery, sealDelivery } from "./stored-values.ts";
import {
  asOnlyOne,
  inArrivalTransaction,
  leave,
  provenBy,
  runsHere,
  settled,
  type Tried,
  untilSettled,
} from "./take-in.ts";

/** One batch's worth of work. */
interface Work<Value> {
  readonly context: EngineContext;
  readonly rules: ConsumeRules;
  readonly batch: Producer & NumberedSpan;
  readonly correlation: string | null;
  /** The producer's: its batches come in one after the other. */
  readonly digest: Uint8Array;
  readonly handler: (step: DeliveryStep<unknown>) => Promise<Value>;
}

/** A batch that is remembered, and what its handler gave. */
interface RememberedBatch extends SequenceSpan {
  readonly value: unknown;
}

const REMEMBER_MS = 24 * 3_600_000;

/**
 * Runs the handler of a numbered batch if it is its producer's next one. The number is the producer's row; its last
 * batches are the value of one inbox row, which stands for that number and gives way to the next one's.
 */
export async function consumeNumberedBatch<Value>(
  context: EngineContext,
  given: NumberedBatch,
  handler: (step: DeliveryStep<unknown>) => Promise<Value>,
  { rememberMs = REMEMBER_MS, ...times }: NumberedBatchOptions,
): Promise<NumberedBatchResult<Value>> {
  const rules = consumeRules(context, { rememberMs, ...times });
  const batch = checkNumberedBatch(given);
  const digest = producerDigest(batch);
  const work: Work<Value> = { context, rules, batch, correlation: given.correlation ?? null, digest, handler };
  return untilSettled<NumberedBatchResult<Value>>(context, digest, rules.waitMs, async () =>
    runsHere(context, digest) ? { kind: "busy" } : asOnlyOne(context, [digest], () => take(work)),
  );
}

async function take<Value>(work: Work<Value>): Promise<Tried<NumberedBatchResult<Value>>> {
  try {
    return await inArrivalTransaction<NumberedBatchResult<Value>>(work.context, async (session) => {
      const seen = await seenOf(work, session);
      const { decision } = seen;
      if (decision.kind !== "accept") return leave(settled(refused<Value>(decision, seen.remembered)));
      const value = await run(work, session, decision);
      await moveOn(work, session, seen, { ...decision, value });
      return { kind: "done", value };
    });
  } catch (error) {
    if (error instanceof StoreFailure && error.kind === "commit_unknown") return afterLostCommit(work, error);
    throw error;
  }
}

/** What is known of a batch's producer, and what that makes of the batch. */
interface Seen {
  readonly last: SequenceNumber | null;
  /** The row that holds the remembered batches; `null`: none of them is remembered. */
  readonly row: Uint8Array | null;
  readonly remembered: readonly RememberedBatch[];
  readonly decision: BatchDecision;
}

/** Looks under the producer's lock; leaves the transaction where another one has it. */
async function seenOf<Value>({ context, batch, digest, rules }: Work<Value>, session: Session<unknown>): Promise<Seen> {
  const [free] = await session.tryLocks([digest], rules.limits);
  if (free !== true) return leave({ kind: "busy" });
  const last = await session.producer(digest);
  const [row] = last === null ? [] : await session.deliveries([rowOf(batch, last)]);
  const value = row?.value ?? null;
  const remembered =
    row === undefined || value === null
      ? []
      : (decodeValue(openDelivery(context, row.digest, value)) as RememberedBatch[]);
  return { last, row: row?.digest ?? null, remembered, decision: decideBatch(last, remembered, batch) };
}

function rowOf(producer: Producer, number: SequenceNumber): Uint8Array {
  return numberedDigest({ ...producer, ...number });
}

function refused<Value>(
  decision: Exclude<BatchDecision, { readonly kind: "accept" }>,
  remembered: readonly RememberedBatch[],
): NumberedBatchResult<Value> {
  if (decision.kind !== "duplicate") return decision;
  return { kind: "duplicate", value: remembered[decision.place]?.value as Value };
}

type Accepted = Extract<BatchDecision, { readonly kind: "accept" }>;

async function run<Value>(
  { context, rules, batch, correlation, handler }: Work<Value>,
  session: Session<unknown>,
  { to }: Accepted,
): Promise<Value> {
  const { tenant, source } = batch;
  // Counted on where the wire begins anew, or the two laps would share references and messages.
  const sequence = to.sequence - batch.count + 1n;
  const digest = numberedDigest({ ...batch, sequence });
  const arrival = { tenant, source, digest, correlation, seed: newSeed(context) };
  const value = await withinTime(context, rules.maxDurationMs, (signal) =>
    handler(deliveryStep(context, session, arrival, signal)),
  );
  // The first one sees what its repetitions will.
  return decodeValue(encodeValue(value)) as Value;
}

async function moveOn<Value>(
  { context, rules, batch, digest }: Work<Value>,
  session: Session<unknown>,
  { last, row, remembered }: Seen,
  { span, to, value }: Accepted & { readonly value: Value },
): Promise<void> {
  const { tenant, source, producer } = batch;
  const isSameEpoch = last?.epoch === to.epoch;
  const kept = [...(isSameEpoch ? remembered : []), { ...span, value }].slice(-REMEMBERED_BATCHES);
  const next = rowOf(batch, to);
  const delivery: NewDelivery = {
    digest: next,
    delivery: { tenant, source, id: `${producer}/${to.epoch}/${to.sequence}` },
    value: sealDelivery(context, next, encodeValue(kept)),
    keepMs: rules.rememberMs,
  };
  if (row !== null) await session.forget([row]);
  await session.accept([delivery]);
  await session.moveProducer(digest, { tenant, source, producer }, last, to);
}

/** A number that was moved on proves that the batch is remembered; one that was not proves nothing. */
async function afterLostCommit<Value>(
  work: Work<Value>,
  lost: StoreFailure,
): Promise<Tried<NumberedBatchResult<Value>>> {
  const look = inArrivalTransaction<never>(work.context, async (session) => {
    const { decision, remembered } = await seenOf(work, session);
    return leave(decision.kind === "accept" ? { kind: "busy" } : settled(refused<Value>(decision, remembered)));
  });
  return provenBy<NumberedBatchResult<Value>>(look, lost);
}
