import { OncekeyError } from "../core/errors.ts";
import { stringifyJson } from "../core/json/stringify.ts";
import { messageId } from "../core/message.ts";
import type { Session } from "../core/store.ts";
import type { Send } from "./definition.ts";

/** What a message inherits from the entry it is sent from. */
interface Sender {
  readonly id: Uint8Array;
  readonly seed: Uint8Array;
  readonly tenant: string;
}

const MAX_TOPIC_LENGTH = 255;

/** `send` for one transaction: the n-th message sent from one recovery point has the same id on every attempt. */
export function sendFrom(session: Session<unknown>, sender: Sender, recoveryPoint: string): Send {
  let index = 0;
  return async (topic, payload, options = {}) => {
    if (typeof topic !== "string" || topic === "" || topic.length > MAX_TOPIC_LENGTH) {
      throw new OncekeyError(
        "oncekey_value_unsupported",
        `A topic is 1 to ${MAX_TOPIC_LENGTH} characters. Nothing was sent.`,
      );
    }
    await session.send({
      id: messageId(sender, recoveryPoint, index++),
      topic,
      payload: stringifyJson(payload),
      key: options.key ?? null,
      orderBy: options.orderBy ?? null,
      delayMs: options.delayMs ?? 0,
      tenant: sender.tenant,
      entryId: sender.id,
    });
  };
}
