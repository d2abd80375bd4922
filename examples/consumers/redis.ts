import { hostname } from "node:os";
import { Redis } from "ioredis";
import { type Consumer, deliveryOf, main, report, setting, takeIn, tell } from "./consumer.ts";

// Redis Streams: a consumer group. What a dead consumer left unacknowledged is claimed once it has been idle for longer
// than any message may take. Redis counts deliveries but sets no limit to them, so that is done here.

const GROUP = "bookings";
const IDLE_MS = setting("CONSUMER_IDLE_MS", "60000");
const MOST_DELIVERIES = 5;

type Entry = readonly [id: string, fields: readonly string[] | null];

async function loop(consumer: Consumer): Promise<void> {
  const stream = setting("CONSUMER_QUEUE");
  const name = `${hostname()}-${process.pid}`;
  const redis = new Redis(setting("REDIS_URL"), { maxRetriesPerRequest: 0 });
  redis.on("error", (error) => console.error(`Redis: ${error.message}`));
  await redis.xgroup("CREATE", stream, GROUP, "0", "MKSTREAM").catch(unlessItExists);
  tell({ ready: stream });
  while (!consumer.stopping.aborted) {
    // Both in small batches: a claimed message's idle time runs while those before it are handled.
    const left = await redis.xautoclaim(stream, GROUP, name, IDLE_MS, "0", "COUNT", 8);
    for (const entry of left[1] as Entry[]) await handle(consumer, redis, stream, entry);
    const fresh = await redis.xreadgroup("GROUP", GROUP, name, "COUNT", 8, "BLOCK", 500, "STREAMS", stream, ">");
    for (const entry of (fresh as [string, Entry[]][] | null)?.[0]?.[1] ?? []) {
      await handle(consumer, redis, stream, entry);
    }
  }
  redis.disconnect();
}

function unlessItExists(error: Error): void {
  if (!error.message.startsWith("BUSYGROUP")) throw error;
}

/** What is not acknowledged stays with this consumer, and is claimed again when it has been idle long enough. */
async function handle(consumer: Consumer, redis: Redis, stream: string, [id, fields]: Entry): Promise<void> {
  // Trimmed while it waited: nothing is left of it.
  if (fields === null) return void (await redis.xack(stream, GROUP, id));
  const field = (name: string) => (fields.includes(name) ? fields[fields.indexOf(name) + 1] : undefined);
  try {
    const delivery = deliveryOf(stream, field);
    const verdict = await takeIn(consumer, { delivery, payload: field("payload") ?? "" });
    if (verdict === "acknowledge") await redis.xack(stream, GROUP, id);
  } catch (error) {
    report(error);
    await buryPoison(redis, stream, id, fields);
  }
}

/** Copies a message that has failed too often to <stream>.dead. */
async function buryPoison(redis: Redis, stream: string, id: string, fields: readonly string[]): Promise<void> {
  const [pending] = (await redis.xpending(stream, GROUP, id, id, 1)) as [string, string, number, number][];
  if (pending === undefined || pending[3] < MOST_DELIVERIES) return;
  await redis
    .multi()
    .xadd(`${stream}.dead`, "*", ...fields)
    .xack(stream, GROUP, id)
    .exec();
}

main(loop);
