import { StoreFailure } from "../core/store.ts";
import { withinTime } from "./abandon.ts";
import type { ConsumeOptions, ConsumeResult, DeliveryStep, IncomingDelivery } from "./arrival.ts";
import { type ConsumeRules, consumeRules } from "./consume-rules.ts";
import type { EngineContext } from "./context.ts";
import { type ArrivedDelivery, arrivedDelivery, deliveryStep } from "./delivery-step.ts";
import { isOurs, type Kept, keptValue, remembered } from "./remembered.ts";
import { sealDelivery } from "./stored-values.ts";
import { asOnlyOne, inArrivalTransaction, leave, runsHere, settled, type Tried, untilSettled } from "./take-in.ts";

/** One delivery's worth of work. */
interface Work<Value> {
  readonly context: EngineContext;
  readonly rules: ConsumeRules;
  readonly arrived: ArrivedDelivery;
  readonly handler: (step: DeliveryStep<unknown>) => Promise<Value>;
}

/** Runs the handler of a delivery once, in the transaction that remembers it. */
export async function consume<Value>(
  context: EngineContext,
  delivery: IncomingDelivery,
  handler: (step: DeliveryStep<unknown>) => Promise<Value>,
  options: ConsumeOptions,
): Promise<ConsumeResult<Value>> {
  const rules = consumeRules(context, options);
  const work: Work<Value> = { context, rules, arrived: arrivedDelivery(context, delivery), handler };
  const { digest } = work.arrived;
  return untilSettled<ConsumeResult<Value>>(context, digest, rules.waitMs, async () => {
    if (runsHere(context, digest)) return { kind: "busy" };
    const [known] = await context.store.deliveries([digest]);
    if (known !== undefined) return settled(remembered<Value>(context, known, rules, work.arrived));
    return runsHere(context, digest) ? { kind: "busy" } : asOnlyOne(context, [digest], () => take(work));
  });
}

async function take<Value>(work: Work<Value>): Promise<Tried<ConsumeResult<Value>>> {
  let kept: Kept<Value> | undefined;
  try {
    return await inArrivalTransaction<ConsumeResult<Value>>(work.context, async (session) => {
      const { context, rules, arrived, handler } = work;
      const { digest, delivery } = arrived;
      const [free] = await session.tryLocks([digest], rules.limits);
      if (free !== true) return leave({ kind: "busy" });
      // In a snapshot newer than the lock: whoever had it before may have committed since the look-up.
      const [known] = await session.deliveries([digest]);
      if (known !== undefined) return leave(settled(remembered<Value>(context, known, rules, arrived)));
      const value = await withinTime(context, rules.maxDurationMs, (signal) =>
        handler(deliveryStep(context, session, arrived, signal)),
      );
      kept = keptValue(context, rules, value);
      const bytes = sealDelivery(context, digest, kept.bytes);
      await session.accept([{ digest, delivery, value: bytes, keepMs: rules.rememberMs }]);
      return { kind: "done", value: kept.value };
    });
  } catch (error) {
    if (error instanceof StoreFailure && error.kind === "commit_unknown") return afterLostCommit(work, kept, error);
    throw error;
  }
}

/** A row proves that the delivery is remembered, whoever did it; an absent one proves nothing. */
async function afterLostCommit<Value>(
  { context, rules, arrived }: Work<Value>,
  kept: Kept<Value> | undefined,
  lost: StoreFailure,
): Promise<Tried<ConsumeResult<Value>>> {
  const [known] = await context.store.deliveries([arrived.digest]).catch(() => []);
  if (known === undefined) throw lost;
  if (kept !== undefined && isOurs(known, kept)) return settled({ kind: "done", value: kept.value });
  return settled(remembered<Value>(context, known, rules, arrived));
}
