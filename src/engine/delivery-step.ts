import { checkDelivery, checkSubject, type Delivery, deliveryDigest, subjectDigest } from "../core/delivery.ts";
import { deliveryReference } from "../core/reference.ts";
import type { Session } from "../core/store.ts";
import type { DeliveryStep, IncomingDelivery } from "./arrival.ts";
import type { EngineContext } from "./context.ts";
import { type Sender, sendFrom } from "./messages.ts";

/** What a handler's step needs to know of what arrived. */
export interface Arrival {
  readonly tenant: string;
  readonly source: string;
  /** Stands for it: in its lock, its reference, its messages. */
  readonly digest: Uint8Array;
  readonly correlation: string | null;
  /**
   * Random. The inbox forgets sooner than the outbox may: a message sent by the same delivery when it is taken in anew is
   * another message.
   */
  readonly seed: Uint8Array;
}

/** A delivery, checked, and what stands for it. */
export interface ArrivedDelivery extends Arrival {
  readonly delivery: Delivery;
  readonly possibleResend: boolean;
}

const SEED_LENGTH = 16;

/** A fresh seed for the ids of messages. */
export function newSeed({ settings }: EngineContext): Uint8Array {
  return settings.random.bytes(SEED_LENGTH);
}

/** Checks a delivery. Raises `oncekey_delivery_invalid`. */
export function arrivedDelivery(context: EngineContext, incoming: IncomingDelivery): ArrivedDelivery {
  const delivery = checkDelivery(incoming);
  return {
    tenant: delivery.tenant,
    source: delivery.source,
    delivery,
    digest: deliveryDigest(delivery),
    correlation: incoming.correlation ?? null,
    possibleResend: incoming.possibleResend === true,
    seed: newSeed(context),
  };
}

/** An arrival as the sender of messages. */
export function arrivalSender({ digest, seed, tenant, correlation }: Arrival): Sender {
  return { id: digest, seed, tenant, client: null, entryId: null, correlation, declared: () => null };
}

/** What the handler of an arrival gets. */
export function deliveryStep(
  context: EngineContext,
  session: Session<unknown>,
  arrival: Arrival,
  signal: AbortSignal,
): DeliveryStep<unknown> {
  const { tenant, source, digest } = arrival;
  return {
    tx: session.tx,
    send: sendFrom(context, session, arrivalSender(arrival), "delivery"),
    reference: deliveryReference(digest),
    signal,
    async ifNewer(name, version, update) {
      const checked = checkSubject({ tenant, source, subject: name }, version);
      const { subject } = checked;
      if (!(await session.moveSubject(subjectDigest(subject), subject, checked.version))) return false;
      await update();
      return true;
    },
  };
}
