import {
  AckPolicy,
  type Consumer as Durable,
  type JetStreamClient,
  type JsMsg,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { connect, nanos } from "@nats-io/transport-node";
import { type Consumer, deliveryOf, main, report, setting, takeIn, tell } from "./consumer.ts";

// NATS JetStream: a durable pull consumer with explicit acknowledgement. `working()` keeps a message that takes longer
// than the server's ack_wait; the acknowledgement itself is confirmed by the server (`ackAck`).
//
// `max_deliver` is not set: a message that has reached it is passed over in silence, for ever. What fails too often goes
// to a stream of its own instead.

const ACK_WAIT_MS = Number(setting("CONSUMER_ACK_WAIT_MS", "30000"));
const POLL_MS = 2_000;
const MOST_DELIVERIES = 5;

/** Where messages come from, and where those go that always fail. */
interface Queue {
  readonly stream: string;
  readonly dead: string;
  readonly client: JetStreamClient;
}

async function loop(consumer: Consumer): Promise<void> {
  const stream = setting("CONSUMER_QUEUE");
  const connection = await connect({ servers: setting("NATS_URL"), maxReconnectAttempts: -1 });
  const manager = await jetstreamManager(connection);
  const queue: Queue = { stream, dead: `dead.${stream}`, client: jetstream(connection) };
  const durable = "bookings";
  await manager.streams.add({ name: `${stream}-dead`, subjects: [queue.dead] });
  await manager.consumers.add(stream, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(ACK_WAIT_MS),
  });
  tell({ ready: stream });
  await handleAll(consumer, queue, await queue.client.consumers.get(stream, durable));
  await connection.drain();
}

/** One at a time: those behind it in a batch would use up their ack_wait while they wait. */
async function handleAll(consumer: Consumer, queue: Queue, durable: Durable): Promise<void> {
  while (!consumer.stopping.aborted) {
    const message = await durable.next({ expires: POLL_MS });
    if (message === null) continue;
    const working = setInterval(() => message.working(), ACK_WAIT_MS / 3);
    try {
      await handle(consumer, queue, message);
    } catch (error) {
      report(error);
      await leaveOrBury(queue, message).catch(report);
    } finally {
      clearInterval(working);
    }
  }
}

async function handle(consumer: Consumer, { stream }: Queue, message: JsMsg): Promise<void> {
  const delivery = deliveryOf(stream, (name) => message.headers?.get(name));
  const verdict = await takeIn(consumer, { delivery, payload: message.string() });
  if (verdict === "leave") return message.nak();
  // Without an answer to the acknowledgement it comes again, as a duplicate.
  await message.ackAck();
}

/** Gives a message back, or stores it elsewhere when it has failed too often; only then is it ended here. */
async function leaveOrBury({ client, dead }: Queue, message: JsMsg): Promise<void> {
  if (message.info.deliveryCount < MOST_DELIVERIES) return message.nak(1_000);
  const { headers } = message;
  await client.publish(dead, message.data, headers === undefined ? {} : { headers });
  // Without a reason: servers before 2.10.4 do not understand one.
  message.term();
}

main(loop);
