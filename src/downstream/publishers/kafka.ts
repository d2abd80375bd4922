import { dead, delivered, type OutboxMessage, type Published, type Publisher } from "../publisher.ts";
import { attempt, causes, type Destined, destined } from "./_attempt.ts";
import { envelope } from "./_envelope.ts";
import { kept } from "./_kept.ts";

/** What is sent to Kafka. */
export interface KafkaRecord {
  topic: string;
  /** All in-sync replicas. */
  acks: -1;
  messages: { key: string | null; value: string; headers: Record<string, string> }[];
}

/** What is used of a producer of kafkajs. */
export interface KafkaProducer {
  connect(): Promise<void>;
  send(record: KafkaRecord): Promise<unknown>;
  disconnect(): Promise<void>;
}

/** Where messages go in Kafka. */
export interface KafkaOptions {
  /**
   * Made with `idempotent: true`, so that its own retries are dropped by the broker. Give it bounded `retry.retries`:
   * kafkajs' default for idempotent producers is to go on for ever, long after the relay has turned to the next attempt.
   * The publisher connects it, and disconnects it when closed.
   */
  readonly producer: KafkaProducer;
  /** Default: the message's topic. */
  readonly topic?: Destined;
}

const TOO_LARGE = ["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"];

/**
 * Publishes to Kafka with `acks: -1`, keyed by `orderBy`, else `key`. Kafka drops a producer's own retries; a redelivery
 * by the relay is a record of its own, with the same header `oncekey-id`, which consumers dedupe by.
 */
export function kafkaPublisher(options: KafkaOptions): Publisher {
  const { producer } = options;
  const connected = kept(
    async (lost) => {
      await producer.connect();
      return { lost };
    },
    () => producer.disconnect().catch(() => {}),
  );
  return {
    name: "kafka",
    publish: (message, signal) =>
      attempt(
        "Kafka",
        signal,
        async () => {
          const { lost } = await connected.use(signal);
          try {
            await producer.send(record(message, options));
          } catch (error) {
            // Connecting again costs nothing where the connection is fine, and a producer that lost it says so only here.
            lost();
            throw error;
          }
          return delivered();
        },
        judged,
      ),
    async close() {
      await connected.close();
      // After a failed send nothing is kept, and the producer may be connected all the same.
      await producer.disconnect().catch(() => {});
    },
  };
}

function record(message: OutboxMessage, { topic = message.topic }: KafkaOptions): KafkaRecord {
  const { payload, key, orderBy } = message;
  return {
    topic: destined(topic, message),
    acks: -1,
    messages: [{ key: orderBy ?? key, value: payload, headers: envelope(message) }],
  };
}

function judged(error: unknown): Published | null {
  const isTooLarge = causes(error).some((one) => TOO_LARGE.includes(String((one as { type?: unknown }).type)));
  return isTooLarge ? dead("The message is larger than the topic allows.") : null;
}
