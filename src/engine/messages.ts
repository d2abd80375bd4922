import { ownerOf, sealPayload } from "../core/cipher.ts";
import { encodeValue } from "../core/codec.ts";
import { usableCorrelation } from "../core/correlation.ts";
import type { NewEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import { stringifyJson } from "../core/json/stringify.ts";
import { messageId, type NewMessage } from "../core/message.ts";
import { claimsTopic } from "../core/outbox.ts";
import type { Session } from "../core/store.ts";
import type { EngineContext } from "./context.ts";
import type { Send, SendOptions } from "./definition.ts";
import type { Settings } from "./settings.ts";

/** What a message inherits from what it is sent by. */
export interface Sender extends Pick<NewMessage, "tenant" | "client" | "entryId" | "correlation"> {
  readonly id: Uint8Array;
  readonly seed: Uint8Array;
  /** The declared context (value codec, open); asked for at the first message. */
  declared(): Uint8Array | null;
}

/** An entry as the sender of messages; its stored context is opened. */
export function entrySender({ cipher }: EngineContext, entry: NewEntry): Sender {
  const { id, seed, tenant, client, correlation } = entry;
  const declared = () => (entry.context === null ? null : cipher.open(ownerOf(id, tenant), "context", entry.context));
  return { id, seed, tenant, client, correlation, entryId: id, declared };
}

/** The context that a request declared, as messages take it. */
export function declaredContext(context: unknown): Uint8Array | null {
  return context == null ? null : encodeValue(context);
}

/**
 * Makes the messages of one recovery point: the n-th of them has the same id on every attempt. Raises
 * `oncekey_topic_unknown`, `oncekey_value_unsupported` and `oncekey_message_too_large`.
 */
export function messagesFrom(context: EngineContext, sender: Sender, recoveryPoint: string) {
  let index = 0;
  return (topic: string, payload: unknown, options: SendOptions = {}): NewMessage => {
    checkTopic(context, topic);
    checkOptions(options);
    const text = payloadText(context, payload);
    const declared = sender.declared();
    const id = messageId(sender, recoveryPoint, index++);
    return {
      id,
      topic,
      payload: sealPayload(context.cipher, { id, tenant: sender.tenant }, text),
      key: options.key ?? null,
      orderBy: options.orderBy ?? null,
      delayMs: options.delayMs ?? 0,
      tenant: sender.tenant,
      client: sender.client,
      entryId: sender.entryId,
      context: declared === null ? null : context.cipher.seal(ownerOf(id, sender.tenant), "message", declared),
      correlation: usableCorrelation(sender.correlation),
    };
  };
}

/** `send` for one transaction. */
export function sendFrom(
  context: EngineContext,
  session: Session<unknown>,
  sender: Sender,
  recoveryPoint: string,
): Send {
  const message = messagesFrom(context, sender, recoveryPoint);
  return async (...sent) => session.send(message(...sent));
}

/** Refuses settings under which every message, or none, would be refused. Raises `oncekey_config_invalid`. */
export function checkMessageSettings({ topics, maxMessageBytes }: Settings): void {
  const areNames = Array.isArray(topics) && topics.every(isText);
  const isLimit = typeof maxMessageBytes === "number" && maxMessageBytes >= 1;
  if (areNames && isLimit) return;
  const what = areNames
    ? "maxMessageBytes is a number of bytes from 1"
    : `topics is a list of names, or prefixes that end in *, of 1 to ${MAX_LENGTH} characters`;
  throw new OncekeyError("oncekey_config_invalid", `${what}. Nothing was started.`);
}

const MAX_LENGTH = 255;
const LONGEST_DELAY_MS = 10 * 365 * 24 * 3_600_000;

function checkTopic({ settings }: EngineContext, topic: unknown): void {
  if (!isText(topic)) throw unsupported(`A topic is 1 to ${MAX_LENGTH} characters of well-formed text without NUL`);
  if (claimsTopic(settings.topics, topic)) return;
  throw new OncekeyError(
    "oncekey_topic_unknown",
    `Topic ${JSON.stringify(topic)} is not among the topics of createOncekey. Nothing was sent; the transaction rolls back unless the error is caught. Correct the name, or declare the topic.`,
  );
}

function checkOptions({ key, orderBy, delayMs = 0 }: SendOptions): void {
  if (![key, orderBy].every((name) => name == null || isText(name))) {
    throw unsupported(`key and orderBy are 1 to ${MAX_LENGTH} characters of well-formed text without NUL`);
  }
  if (!(delayMs >= 0 && delayMs <= LONGEST_DELAY_MS)) {
    throw unsupported("delayMs is a number of milliseconds from 0 to ten years");
  }
}

function payloadText({ settings }: EngineContext, payload: unknown): string {
  const text = stringifyJson(payload);
  const size = Buffer.byteLength(text);
  if (size <= settings.maxMessageBytes) return text;
  throw new OncekeyError(
    "oncekey_message_too_large",
    `The payload of a message has ${size} bytes of JSON, maxMessageBytes is ${settings.maxMessageBytes}. Nothing was sent; the transaction rolls back unless the error is caught. Send an id and let the receiver ask for the rest.`,
  );
}

function isText(text: unknown): text is string {
  return (
    typeof text === "string" && text !== "" && text.length <= MAX_LENGTH && text.isWellFormed() && !text.includes("\0")
  );
}

function unsupported(what: string): OncekeyError {
  return new OncekeyError("oncekey_value_unsupported", `${what}. Nothing was sent.`);
}
