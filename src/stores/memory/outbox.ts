import { sameDigest } from "../../core/fingerprint.ts";
import type { NewMessage } from "../../core/message.ts";
import {
  type ClaimedMessage,
  claimsTopic,
  type HeldMessage,
  type MessageClaim,
  type OutboxStore,
  type WaitingMessages,
} from "../../core/outbox.ts";
import { arrive, copied, type MessageRow, type Tables } from "./tables.ts";
import { heldStep, type OpenTransaction, settle } from "./transaction.ts";

/** Writes an outbox row. Within one order it waits for whoever else sent there, so that places grow with commits. */
export async function sendMessage(tables: Tables, open: OpenTransaction, message: NewMessage): Promise<void> {
  const lock = message.orderBy === null ? null : `order:${orderKey(message)}`;
  await heldStep(tables, open, lock, (now) => {
    if (tables.messages.has(message.id) || open.messages.has(message.id)) {
      throw new Error("A message with this id was sent already. Everything was rolled back; report this as a bug.");
    }
    open.messages.set(message.id, {
      ...message,
      seq: tables.nextSeq(),
      state: "pending",
      attempt: 0,
      fence: null,
      createdAt: now,
      availableAt: now + message.delayMs,
      deliveredAt: null,
      reason: null,
    });
    return settle(undefined, true);
  });
}

/** The outbox as the relay sees it. */
export function memoryOutbox(tables: Tables): OutboxStore {
  return {
    async claim({ topics, limit, leaseMs }) {
      const wanted = [...topics];
      await arrive();
      return dueRows(tables, wanted)
        .slice(0, limit)
        .map((row) => lease(tables, row, leaseMs));
    },
    async claimNext({ tenant, orderBy, seq }, { topics, leaseMs }) {
      const wanted = [...topics];
      await arrive();
      if (orderBy === null) return null;
      const isNext = (row: MessageRow) => row.tenant === tenant && row.orderBy === orderBy && row.seq > BigInt(seq);
      const next = dueRows(tables, wanted).find(isNext);
      return next === undefined ? null : lease(tables, next, leaseMs);
    },
    renew: (held, leaseMs) => settleHeld(tables, held, (now) => ({ availableAt: now + leaseMs })),
    delivered: (held) =>
      settleHeld(tables, held, (now) => ({ state: "delivered", deliveredAt: now, fence: null, reason: null })),
    postpone: (held, waitMs, reason) =>
      settleHeld(tables, held, (now) => ({ availableAt: now + waitMs, fence: null, reason })),
    bury: (held, reason) => settleHeld(tables, held, () => ({ state: "dead", fence: null, reason })),
    async purge(limit, keepMs) {
      await arrive();
      const isOver = ({ deliveredAt }: MessageRow) => deliveredAt !== null && deliveredAt <= tables.now() - keepMs;
      const over = [...tables.messages.values()].filter(isOver).slice(0, limit);
      for (const { id } of over) tables.messages.delete(id);
      return over.length;
    },
    async waiting() {
      await arrive();
      return waitingMessages(tables);
    },
  };
}

/** Due messages of the topics, oldest first; of one order only the first that is not delivered. */
function dueRows(tables: Tables, topics: MessageClaim["topics"]): MessageRow[] {
  const now = tables.now();
  const firsts = firstPlaces(tables);
  const isFirst = (row: MessageRow) => row.orderBy === null || firsts.get(orderKey(row)) === row.seq;
  return [...tables.messages.values()]
    .filter((row) => row.state === "pending" && row.availableAt <= now && claimsTopic(topics, row.topic))
    .filter(isFirst)
    .toSorted((a, b) => a.availableAt - b.availableAt || Number(a.seq - b.seq));
}

/** The place of the first message of each order that is not delivered. */
function firstPlaces(tables: Tables): Map<string, bigint> {
  const firsts = new Map<string, bigint>();
  for (const row of tables.messages.values()) {
    if (row.state === "delivered" || row.orderBy === null) continue;
    const first = firsts.get(orderKey(row));
    if (first === undefined || row.seq < first) firsts.set(orderKey(row), row.seq);
  }
  return firsts;
}

const orderKey = ({ tenant, orderBy }: Pick<NewMessage, "tenant" | "orderBy">): string =>
  JSON.stringify([tenant, orderBy]);

function lease(tables: Tables, row: MessageRow, leaseMs: number): ClaimedMessage {
  const fence = tables.newFence();
  const attempt = row.attempt + 1;
  tables.messages.set(row.id, { ...row, fence, attempt, availableAt: tables.now() + leaseMs });
  const {
    state: _state,
    availableAt: _at,
    delayMs: _delay,
    deliveredAt: _delivered,
    reason: _reason,
    ...message
  } = row;
  return copied({ ...message, attempt, fence, seq: String(row.seq), createdAt: new Date(row.createdAt) });
}

/** Changes a message that is still held; like an owner of an entry, until somebody else has claimed it. */
async function settleHeld(
  tables: Tables,
  held: HeldMessage,
  next: (now: number) => Partial<MessageRow>,
): Promise<boolean> {
  const { id, fence } = copied(held);
  await arrive();
  const row = tables.messages.get(id);
  if (row === undefined || row.state !== "pending" || row.fence === null || !sameDigest(row.fence, fence)) return false;
  tables.messages.set(id, { ...row, ...next(tables.now()) });
  return true;
}

function waitingMessages(tables: Tables): WaitingMessages[] {
  const groups = new Map<string, WaitingMessages>();
  for (const { topic, state, createdAt } of tables.messages.values()) {
    if (state === "delivered") continue;
    const key = JSON.stringify([topic, state]);
    const group = groups.get(key);
    const oldestMs = Math.max(group?.oldestMs ?? 0, tables.now() - createdAt);
    groups.set(key, { topic, state, count: (group?.count ?? 0) + 1, oldestMs });
  }
  return [...groups.values()];
}
