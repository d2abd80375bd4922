import { setTimeout as sleep } from "node:timers/promises";
import { createOncekey, ok } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import type { LabPayload, SentMessage } from "./outbox-world.ts";

/** What was sent, as the senders know it. */
export interface Sent {
  readonly committed: readonly SentMessage[];
  readonly rolledBack: number;
}

/** How much is sent. */
export interface SendingTerms {
  readonly pool: pg.Pool;
  /** Messages that are to be committed, without the poisoned order's. */
  readonly messages: number;
  readonly poisonedOrder: string;
  readonly poisonedMessages: number;
}

const LANES = 24;
const SHARED_ORDERS = 24;
const ROLLED_BACK_SHARE = 0.1;
const LATE_SHARE = 0.05;
const LATE_MS = 200;

class RolledBack extends Error {
  override readonly name = "RolledBack";
}

type SendOne = (message: SentMessage) => Promise<boolean>;

/**
 * Sends from many transactions at one time, each of them an operation of its own: some are rolled back after they have
 * sent, some commit long after they drew their number. A lane sends one after the other, so its order is known without
 * asking the database; shared orders are sent to by several lanes at once; some messages have no order.
 */
export async function sendAll(terms: SendingTerms): Promise<Sent> {
  const sendOne = await sender(terms.pool);
  const committed: SentMessage[] = [];
  let rolledBack = 0;
  let n = 0;
  const send = async (orderBy: string | null, place: number | null, mayRollBack: boolean) => {
    const message = { n: n++, orderBy, place, rolledBack: mayRollBack && Math.random() < ROLLED_BACK_SHARE };
    if (await sendOne(message)) committed.push(message);
    else rolledBack++;
    return !message.rolledBack;
  };
  for (let place = 0; place < terms.poisonedMessages; place++) await send(terms.poisonedOrder, place, false);
  let left = terms.messages;
  const lane = async (name: string) => {
    for (let place = 0; left > 0; ) {
      const kind = Math.random();
      left--;
      let done: boolean;
      if (kind < 0.5) {
        done = await send(name, place, true);
        if (done) place++;
      } else if (kind < 0.8) done = await send(`shared-${Math.floor(Math.random() * SHARED_ORDERS)}`, null, true);
      else done = await send(null, null, true);
      if (!done) left++;
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, index) => lane(`lane-${index}`)));
  return { committed, rolledBack };
}

async function sender(pool: pg.Pool): Promise<SendOne> {
  const once = createOncekey({ store: postgresStore(fromPg(pool)), waitMs: 30_000 });
  const operation = once.transaction({
    name: "lab.send",
    version: 1,
    async run({ tx, input, send }) {
      const { orderBy, ...message } = input.body as SentMessage;
      await tx.query("INSERT INTO sent (n) VALUES ($1)", [message.n]);
      const payload: LabPayload = message;
      await send("lab.sent", payload, orderBy === null ? {} : { orderBy });
      if (Math.random() < LATE_SHARE) await sleep(Math.random() * LATE_MS);
      if (message.rolledBack) throw new RolledBack();
      return ok({});
    },
  });
  await once.start();
  return async (message) => {
    const scope = { tenant: `tenant-${message.orderBy ?? message.n % 3}`, client: null };
    try {
      const result = await once.run(operation, { scope, key: `message-${message.n}`, input: { body: message } });
      if (result.kind === "completed") return true;
      throw new Error(`Message ${message.n} was not sent: ${result.kind}`);
    } catch (error) {
      if (error instanceof RolledBack) return false;
      throw error;
    }
  };
}
