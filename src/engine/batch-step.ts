import { deliveryInvalid } from "../core/delivery.ts";
import type { Session } from "../core/store.ts";
import type { BatchStep, DeliveryStep } from "./arrival.ts";
import type { EngineContext } from "./context.ts";
import { type ArrivedDelivery, arrivalSender, deliveryStep } from "./delivery-step.ts";
import { sendFrom } from "./messages.ts";

/** A delivery of a batch, with what its consumer handed in. */
export interface BatchItem<D> extends ArrivedDelivery {
  readonly given: D;
}

/** What the handler of a batch gets; there is at least one fresh delivery. */
export function batchStep<D>(
  context: EngineContext,
  session: Session<unknown>,
  fresh: readonly [BatchItem<D>, ...BatchItem<D>[]],
  signal: AbortSignal,
): BatchStep<unknown, D> {
  const [first] = fresh;
  const items = new Map(fresh.map((item) => [item.given, item]));
  // One step a delivery, however often it is asked for: its messages are counted.
  const steps = new Map<D, DeliveryStep<unknown>>();
  const of = (delivery: D): DeliveryStep<unknown> => {
    const item = items.get(delivery);
    if (item === undefined) throw deliveryInvalid("it is not one of the batch's fresh deliveries");
    const step = steps.get(delivery) ?? deliveryStep(context, session, item, signal);
    steps.set(delivery, step);
    return step;
  };
  const isMixed = fresh.some(({ tenant }) => tenant !== first.tenant);
  const correlation = fresh.every((item) => item.correlation === first.correlation) ? first.correlation : null;
  const send = sendFrom(context, session, { ...arrivalSender(first), correlation }, "batch");
  return {
    tx: session.tx,
    fresh: fresh.map(({ given }) => given),
    signal,
    of,
    async send(...message) {
      if (isMixed)
        throw deliveryInvalid("the batch is of several tenants, and a message needs one: send by of(delivery)");
      await send(...message);
    },
    ifNewer: async (delivery, ...update) => of(delivery).ifNewer(...update),
  };
}
