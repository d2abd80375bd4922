import type { Oncekey } from "oncekey";
import { type Field, type FixMessage, tag } from "./message.ts";
import { currentState, duplicateOrder, type OrderPlace, placeOrder, type Sql } from "./orders.ts";

// Orders that a FIX gateway has put on a queue: the session and its numbers are the gateway's business, and what is left
// to tell a repetition by is the ClOrdID.

/** Longer than a trading day: a ClOrdID may be used again on the next one, as `period` has it. */
const REMEMBER_MS = 2 * 86_400_000;

/** Where the order comes from. `redelivered`: the queue says that it may have handed this message out before. */
export interface QueuedFrom extends OrderPlace {
  readonly tenant: string;
  readonly redelivered: boolean;
}

/**
 * The answer to an order of a queue, `null` while nothing is known to be done: leave the message to redelivery then. An
 * order without PossResend (97=Y) whose ClOrdID was used is refused, with it its current state is told, and one that is
 * unknown is new either way. What the *queue* hands out again is no mistake of the sender's, whatever its flag says.
 */
export async function takeQueuedOrder<Tx extends Sql>(
  once: Pick<Oncekey<Tx>, "consume">,
  database: Sql,
  { tenant, sender, day, redelivered }: QueuedFrom,
  order: FixMessage,
): Promise<readonly Field[] | null> {
  const place = { sender, day };
  const result = await once.consume(
    {
      ...{ tenant, source: `fix:${sender}`, id: order.get(tag.clOrdID) ?? "", period: day },
      possibleResend: order.possResend || redelivered,
    },
    ({ tx }) => placeOrder(tx, place, order),
    { onDuplicate: "reject", rememberMs: REMEMBER_MS },
  );
  switch (result.kind) {
    case "done":
      return result.value;
    case "rejected":
      return duplicateOrder(order);
    case "duplicate":
    case "replayed":
      return currentState(database, place, order);
    case "unsettled":
      return null;
  }
}
