import { idBytes } from "../../../core/identity.ts";
import type { MessageState } from "../../../core/outbox.ts";
import type { SqlRow } from "../driver-port.ts";
import { instant, number, text, textOrNull } from "../rows.ts";
import type { Ask } from "./reading.ts";

/** A message as the console lists it: nothing of what it tells. */
export interface WaitingMessage {
  readonly id: string;
  readonly topic: string;
  readonly tenant: string;
  readonly state: MessageState;
  readonly attempts: number;
  readonly orderBy: string | null;
  readonly reason: string | null;
  /** Hex. */
  readonly entryId: string | null;
  readonly createdAt: Date;
  readonly availableAt: Date;
}

/** A place in a list of messages: behind this topic or (microseconds since 1970) instant, and this number. */
export interface MessagePlace {
  readonly after: string;
  readonly seq: string;
}

/** One page of messages. */
export interface MessagePage {
  readonly messages: readonly WaitingMessage[];
  readonly next: MessagePlace | null;
}

const BEGIN = { dead: { after: "", seq: "-1" }, pending: { after: "-62135596800000000", seq: "-1" } } as const;

/** Dead letters by topic, or pending messages by when they are due; of one tenant or (`null`) of all. Raises as `ask` does. */
export async function messagePage(
  ask: Ask,
  state: "dead" | "pending",
  tenant: string | null,
  place: MessagePlace | null,
  limit: number,
): Promise<MessagePage> {
  const { after, seq } = place ?? BEGIN[state];
  const rows = await ask(`console_${state}`, [tenant, after, seq, limit + 1]);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next =
    rows.length > limit && last !== undefined
      ? { after: text(last, state === "dead" ? "topic" : "due"), seq: text(last, "seq") }
      : null;
  return { messages: shown.map(waitingMessage), next };
}

/** What one entry has sent and the outbox still has, oldest first, at most 100. Raises as `ask` does. */
export async function entryMessages(ask: Ask, id: string): Promise<readonly WaitingMessage[]> {
  return (await ask("console_entry_messages", [idBytes(id)])).map(waitingMessage);
}

function waitingMessage(row: SqlRow): WaitingMessage {
  return {
    id: text(row, "id"),
    topic: text(row, "topic"),
    tenant: text(row, "tenant"),
    state: text(row, "state") as MessageState,
    attempts: number(row, "attempts"),
    orderBy: textOrNull(row, "order_by"),
    reason: textOrNull(row, "reason"),
    entryId: textOrNull(row, "entry_id"),
    createdAt: instant(row, "created_at"),
    availableAt: instant(row, "available_at"),
  };
}

/** The state of a message, if it is that tenant's (`null`: anybody's); `null`: there is none. Raises as `ask` does. */
export async function messageState(ask: Ask, id: string, tenant: string | null): Promise<MessageState | null> {
  const [row] = await ask("console_message", [id, tenant]);
  return row === undefined ? null : (text(row, "state") as MessageState);
}
