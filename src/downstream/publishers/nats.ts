import { dead, delivered, type OutboxMessage, type Published, type Publisher, retry } from "../publisher.ts";
import { attempt, causes, type Destined, destined } from "./_attempt.ts";
import { envelope } from "./_envelope.ts";

/** What is used of NATS headers (`MsgHdrs`). */
export interface NatsHeaders {
  set(name: string, value: string): void;
}

/** What is used of a JetStream client (`jetstream(connection)` of `@nats-io/jetstream`). */
export interface NatsJetStream<Headers> {
  publish(
    subject: string,
    payload: string,
    options: { readonly msgID: string; readonly headers: Headers; readonly timeout: number },
  ): Promise<{ readonly stream: string; readonly duplicate: boolean }>;
}

/** Where messages go in NATS. */
export interface NatsOptions<Headers extends NatsHeaders> {
  /** Of a connection with `maxReconnectAttempts: -1`: one that gave up never comes back. */
  readonly jetstream: NatsJetStream<Headers>;
  /** The client's own `headers` function. */
  readonly headers: () => Headers;
  /** Default: the message's topic. A stream must take it. */
  readonly subject?: Destined;
  /** How long the client waits for the stream's answer, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
}

/** JetStream: "message size exceeds maximum allowed", the stream's `max_msg_size`. */
const TOO_LARGE_FOR_STREAM = 10_054;

/**
 * Publishes to NATS JetStream; delivered once a stream has acknowledged it. `Nats-Msg-Id` is the message's id, so that
 * the stream itself drops a redelivery within its `duplicate_window` (two minutes unless set).
 */
export function natsPublisher<Headers extends NatsHeaders>(options: NatsOptions<Headers>): Publisher {
  return {
    name: "nats",
    publish: (message, signal) => attempt("NATS", signal, () => publish(message, options), judged),
  };
}

async function publish<Headers extends NatsHeaders>(
  message: OutboxMessage,
  options: NatsOptions<Headers>,
): Promise<Published> {
  const { jetstream, subject = message.topic, timeoutMs = 10_000 } = options;
  const headers = options.headers();
  for (const [name, value] of Object.entries(envelope(message))) headers.set(name, value);
  // An acknowledged duplicate is in the stream as well: an earlier attempt arrived.
  await jetstream.publish(destined(subject, message), message.payload, {
    msgID: message.id,
    headers,
    timeout: timeoutMs,
  });
  return delivered();
}

function judged(error: unknown): Published | null {
  const all = causes(error) as { name?: unknown; code?: unknown; message?: unknown }[];
  const isTooLarge = all.some(
    ({ name, code, message }) =>
      code === TOO_LARGE_FOR_STREAM || (name === "InvalidArgumentError" && String(message).includes("max_payload")),
  );
  if (isTooLarge) return dead("The message is larger than NATS or its stream allows.");
  const isUntaken = all.some(({ name }) => name === "JetStreamNotEnabled" || name === "NoRespondersError");
  return isUntaken ? retry("No stream of NATS takes the message's subject.") : null;
}
