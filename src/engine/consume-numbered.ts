import { checkNumbered, type Producer, producerDigest } from "../core/delivery.ts";
import { numberedDigest } from "../core/reference.ts";
import { decideSequence, type SequenceNumber } from "../core/sequence.ts";
import { type Session, StoreFailure } from "../core/store.ts";
import { withinTime } from "./abandon.ts";
import type { ConsumeOptions, DeliveryStep, NumberedMessage, SequenceResult } from "./arrival.ts";
import { type ConsumeRules, consumeRules } from "./consume-rules.ts";
import type { EngineContext } from "./context.ts";
import { type Arrival, deliveryStep, newSeed } from "./delivery-step.ts";
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

/** One message's worth of work. */
interface Work<Value> {
  readonly context: EngineContext;
  readonly rules: ConsumeRules;
  readonly message: Producer & SequenceNumber;
  /** The producer's: its messages come in one after the other. */
  readonly digest: Uint8Array;
  readonly arrival: Arrival;
  readonly handler: (step: DeliveryStep<unknown>) => Promise<Value>;
}

/** Runs the handler of a numbered message if it is its producer's next one. */
export async function consumeNumbered<Value>(
  context: EngineContext,
  message: NumberedMessage,
  handler: (step: DeliveryStep<unknown>) => Promise<Value>,
  options: Pick<ConsumeOptions, "maxDurationMs" | "waitMs">,
): Promise<SequenceResult<Value>> {
  const { maxDurationMs, waitMs } = options;
  const rules = consumeRules(context, {
    ...(maxDurationMs === undefined ? {} : { maxDurationMs }),
    ...(waitMs === undefined ? {} : { waitMs }),
  });
  const checked = checkNumbered(message);
  const digest = producerDigest(checked);
  const { tenant, source } = checked;
  const correlation = message.correlation ?? null;
  const arrival = { tenant, source, digest: numberedDigest(checked), correlation, seed: newSeed(context) };
  const work: Work<Value> = { context, rules, message: checked, digest, arrival, handler };
  return untilSettled<SequenceResult<Value>>(context, digest, rules.waitMs, async () =>
    runsHere(context, digest) ? { kind: "busy" } : asOnlyOne(context, [digest], () => take(work)),
  );
}

async function take<Value>(work: Work<Value>): Promise<Tried<SequenceResult<Value>>> {
  try {
    return await inArrivalTransaction<SequenceResult<Value>>(work.context, async (session) => {
      const { context, rules, message, digest, arrival, handler } = work;
      const last = await nextOf(work, session);
      const value = await withinTime(context, rules.maxDurationMs, (signal) =>
        handler(deliveryStep(context, session, arrival, signal)),
      );
      const { tenant, source, producer, epoch, sequence } = message;
      await session.moveProducer(digest, { tenant, source, producer }, last, { epoch, sequence });
      return { kind: "done", value };
    });
  } catch (error) {
    if (error instanceof StoreFailure && error.kind === "commit_unknown") return afterLostCommit(work, error);
    throw error;
  }
}

/** The producer's last number, where this message is the next one; leaves the transaction otherwise. */
async function nextOf<Value>(
  { message, digest, rules }: Work<Value>,
  session: Session<unknown>,
): Promise<SequenceNumber | null> {
  const [free] = await session.tryLocks([digest], rules.limits);
  if (free !== true) return leave({ kind: "busy" });
  const last = await session.producer(digest);
  const decision = decideSequence(last, message);
  return decision.kind === "accept" ? last : leave(settled(decision));
}

/** A number that was moved on proves that the message is remembered; one that was not proves nothing. */
async function afterLostCommit<Value>(work: Work<Value>, lost: StoreFailure): Promise<Tried<SequenceResult<Value>>> {
  const look = inArrivalTransaction<never>(work.context, async (session) => {
    await nextOf(work, session);
    return leave({ kind: "busy" });
  });
  return provenBy<SequenceResult<Value>>(look, lost);
}
