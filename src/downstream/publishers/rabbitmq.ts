import { dead, delivered, type OutboxMessage, type Published, type Publisher, retry } from "../publisher.ts";
import { attempt, type Destined, destined } from "./_attempt.ts";
import { envelope } from "./_envelope.ts";
import { kept } from "./_kept.ts";

/** What is set of a message's AMQP properties. */
export interface RabbitmqProperties {
  readonly messageId: string;
  readonly persistent: true;
  readonly mandatory: true;
  readonly contentType: string;
  readonly timestamp: number;
  readonly headers: Record<string, string>;
}

/** What is used of amqplib's confirm channel. */
export interface RabbitmqChannel {
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    properties: RabbitmqProperties,
    confirmed: (error: unknown) => void,
  ): boolean;
  on(event: "close", listener: () => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "return", listener: (message: { properties: { messageId?: unknown } }) => void): unknown;
  close(): Promise<void>;
}

/** What is used of a connection of amqplib's (promise API). */
export interface RabbitmqConnection {
  createConfirmChannel(): Promise<RabbitmqChannel>;
  on(event: "error", listener: (error: Error) => void): unknown;
  close(): Promise<void>;
}

/** Where messages go in RabbitMQ. */
export interface RabbitmqOptions {
  /** Opens a connection: at the first message, and anew whenever it was lost. The publisher closes what it opened. */
  readonly connect: () => Promise<RabbitmqConnection>;
  /** The exchange, which must exist. `""` is the default exchange: the routing key is then the name of a queue. */
  readonly exchange: Destined;
  /** Default: the message's topic. */
  readonly routingKey?: Destined;
  /** What a message is that no queue takes: tried again until the relay gives up (default), or a dead letter at once. */
  readonly unroutable?: "retry" | "dead";
}

/** A channel, with what the broker said about its messages. */
interface OpenChannel {
  readonly channel: RabbitmqChannel;
  /**
   * How often a message came back, by its id; the broker returns one before it confirms it. Counted: after a time-out two
   * attempts may be under way, and one confirm for both.
   */
  readonly returned: Map<string, number>;
  /** The largest content that the broker refused, in bytes, as its closing of the channel said. */
  refused: number | null;
  close(): Promise<void>;
}

/** Content that is larger than the broker's `max_message_size`; it closes the channel over it. */
const TOO_LARGE = /message size (\d+) is larger than/;

/**
 * Publishes to RabbitMQ over a confirm channel of amqplib: persistent and mandatory, delivered once the broker has
 * confirmed it and some queue has taken it. RabbitMQ keeps every redelivery: `messageId` is what consumers dedupe by.
 */
export function rabbitmqPublisher(options: RabbitmqOptions): Publisher {
  const channels = kept(
    (lost) => openChannel(options, lost),
    (open) => open.close(),
  );
  return {
    name: "rabbitmq",
    publish: (message, signal) =>
      attempt("RabbitMQ", signal, async () => publish(await channels.use(signal), message, options)),
    close: () => channels.close(),
  };
}

async function openChannel({ connect }: RabbitmqOptions, lost: () => void): Promise<OpenChannel> {
  const connection = await connect();
  // An 'error' event that nobody listens to would end the process; 'close' follows and says all that is needed.
  connection.on("error", () => {});
  const close = () => connection.close().catch(() => {});
  const channel = await connection.createConfirmChannel().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  const open: OpenChannel = { channel, returned: new Map(), refused: null, close };
  channel.on("error", ({ message }) => {
    const size = TOO_LARGE.exec(message)?.[1];
    if (size !== undefined) open.refused = Number(size);
  });
  channel.on("return", ({ properties }) => {
    const id = String(properties.messageId);
    open.returned.set(id, (open.returned.get(id) ?? 0) + 1);
  });
  channel.on("close", () => {
    lost();
    void close();
  });
  return open;
}

async function publish(open: OpenChannel, message: OutboxMessage, options: RabbitmqOptions): Promise<Published> {
  const content = Buffer.from(message.payload);
  const failure = await confirmation(open.channel, content, message, options);
  if (cameBack(open, message)) return unroutable(options);
  if (failure === null) return delivered();
  if (open.refused === content.length) return dead("The message is larger than RabbitMQ's max_message_size.");
  // Confirms carry no reason; a lost channel takes down all that was under way on it.
  return retry("RabbitMQ did not confirm it: refused (nack), or the channel was closed.");
}

/** Whether this attempt came back. */
function cameBack({ returned }: OpenChannel, { id }: OutboxMessage): boolean {
  const count = returned.get(id) ?? 0;
  if (count > 1) returned.set(id, count - 1);
  else returned.delete(id);
  return count > 0;
}

function confirmation(
  channel: RabbitmqChannel,
  content: Buffer,
  message: OutboxMessage,
  { exchange, routingKey = message.topic }: RabbitmqOptions,
): Promise<object | null> {
  const properties: RabbitmqProperties = {
    messageId: message.id,
    persistent: true,
    mandatory: true,
    contentType: "application/json",
    timestamp: Math.floor(message.createdAt.getTime() / 1_000),
    headers: envelope(message),
  };
  return new Promise((resolve) => {
    channel.publish(destined(exchange, message), destined(routingKey, message), content, properties, (error) =>
      resolve(error ? Object(error) : null),
    );
  });
}

function unroutable({ unroutable = "retry" }: RabbitmqOptions): Published {
  const why = "No queue is bound for the message: RabbitMQ returned it.";
  return unroutable === "dead" ? dead(why) : retry(why);
}
