import { dead, delivered, type OutboxMessage, type Published, type Publisher, retry } from "../publisher.ts";
import { attempt, type Destined, destined } from "./_attempt.ts";
import { envelope } from "./_envelope.ts";

/** What is used of a Redis client: ioredis as it is; for node-redis, `{ call: (...parts) => client.sendCommand(parts) }`. */
export interface RedisClient {
  call(command: string, ...parts: string[]): Promise<unknown>;
}

/** Where messages go in Redis. */
export interface RedisOptions {
  /** With `enableOfflineQueue: false` a Redis that is away is noticed at once; otherwise at the relay's time-out. */
  readonly client: RedisClient;
  /** Key of the stream. Default: the message's topic. */
  readonly stream?: Destined;
  /**
   * Trims the stream to about this many entries (`MAXLEN ~`), read or not: the oldest are lost for consumers that are
   * behind. Default: never trimmed.
   */
  readonly maxLength?: number;
}

/**
 * Publishes to Redis Streams (`XADD`), the id as field `oncekey-id`. Streams keep every redelivery: consumers dedupe by
 * that field. How durable an accepted message is, is the server's `appendfsync` and replication.
 */
export function redisPublisher(options: RedisOptions): Publisher {
  return {
    name: "redis",
    publish: (message, signal) =>
      attempt(
        "Redis",
        signal,
        async () => {
          await options.client.call("XADD", ...entry(message, options));
          return delivered();
        },
        judged,
      ),
  };
}

function entry(message: OutboxMessage, { stream = message.topic, maxLength }: RedisOptions): string[] {
  const trim = maxLength === undefined ? [] : ["MAXLEN", "~", String(maxLength)];
  const fields = { ...envelope(message), payload: message.payload };
  return [destined(stream, message), ...trim, "*", ...Object.entries(fields).flat()];
}

/** Redis' errors begin with a word in capitals, such as OOM; the rest may quote arguments. */
function judged(error: unknown): Published | null {
  const { name, message } = error as { name?: unknown; message?: unknown };
  if (name !== "ReplyError") return null;
  if (String(message).includes("invalid bulk length")) {
    return dead("The message is larger than Redis' proto-max-bulk-len.");
  }
  return retry(`Redis refused it: ${/^[A-Z]{2,20}/.exec(String(message))?.[0] ?? "ERR"}.`);
}
