import type { ConsumeResult, NumberedBatchResult, SequenceResult } from "./arrival.ts";
import type { EngineContext } from "./context.ts";
import type { DeliveryEvent } from "./event.ts";
import { errorName } from "./observed-run.ts";

/** Whose delivery it is. */
interface Arriving {
  readonly tenant: string;
  readonly source: string;
}

type AnyArrival = ConsumeResult<unknown> | SequenceResult<unknown> | NumberedBatchResult<unknown>;

/** Tells what became of one delivery. Gives and raises what `take` does. */
export async function observedDelivery<R extends AnyArrival>(
  context: EngineContext,
  delivery: Arriving,
  take: () => Promise<R>,
): Promise<R> {
  const [result] = await observedDeliveries(context, [delivery], async () => [await take()] as const);
  return result;
}

/** The same for a batch: one event for each of its deliveries, each with the time that all of them took. */
export async function observedDeliveries<R extends readonly AnyArrival[]>(
  context: EngineContext,
  deliveries: readonly Arriving[],
  take: () => Promise<R>,
): Promise<R> {
  const { emit, settings } = context;
  if (emit === null) return take();
  const startedAtMs = settings.clock.monotonicMs();
  const tell = (became: (index: number) => Became) => {
    const durationMs = settings.clock.monotonicMs() - startedAtMs;
    // What was handed in may be no list of deliveries: then that is the error to be seen, and not one of ours.
    for (const [index, given] of (Array.isArray(deliveries) ? deliveries : []).entries()) {
      const { tenant, source } = (given ?? {}) as Arriving;
      emit({ tenant, source, durationMs, ...became(index) } as DeliveryEvent);
    }
  };
  try {
    const results = await take();
    tell((index) => becameOf(results[index] as AnyArrival));
    return results;
  } catch (error) {
    tell(() => ({ kind: "delivery_threw", error: errorName(error) }));
    throw error;
  }
}

type WithoutAbout<E> = E extends unknown ? Omit<E, "tenant" | "source" | "durationMs"> : never;
type Became = WithoutAbout<DeliveryEvent>;

function becameOf(result: AnyArrival): Became {
  switch (result.kind) {
    case "unsettled":
      return { kind: "delivery_unsettled", why: result.why };
    case "replayed":
      return { kind: "delivery_duplicate" };
    default:
      return { kind: `delivery_${result.kind}` };
  }
}
