import type { NewMessage } from "../../core/message.ts";
import type { ClaimedMessage, HeldMessage, MessageClaim, OutboxStore, WaitingMessages } from "../../core/outbox.ts";
import { matched, type Run } from "./committing.ts";
import type { SqlParameter, SqlRow } from "./driver-port.ts";
import { orderLockKey } from "./lock-keys.ts";
import { bytes, bytesOrNull, instant, number, text, textOrNull } from "./rows.ts";
import type { StatementName } from "./statements.ts";

/** The parameters of send.sql. */
export function messageParameters(schema: string, message: NewMessage): SqlParameter[] {
  const { tenant, orderBy } = message;
  return [
    message.id,
    message.topic,
    message.payload,
    message.key,
    orderBy,
    tenant,
    message.client,
    message.entryId,
    message.context,
    message.correlation,
    message.delayMs,
    orderBy === null ? null : orderLockKey(schema, tenant, orderBy),
  ];
}

/** The outbox as the relay sees it. */
export function outboxStore(run: Run): OutboxStore {
  const held = async (name: StatementName, { id, fence }: HeldMessage, ...rest: SqlParameter[]) =>
    matched(await run(name, [id, fence, ...rest]));
  const claimRows = claimer(run);
  return {
    async claim(claim) {
      const messages = await claimRows(claim);
      return messages.map(claimedMessage).sort((a, b) => (BigInt(a.seq) < BigInt(b.seq) ? -1 : 1));
    },
    renew: (message, leaseMs) => held("outbox_renew", message, leaseMs),
    delivered: (message) => held("outbox_delivered", message),
    async claimNext({ tenant, orderBy, seq }, { topics, leaseMs }) {
      if (orderBy === null) return null;
      const [row] = await run("outbox_claim_next", [tenant, orderBy, seq, JSON.stringify(topics), leaseMs]);
      return row === undefined ? null : claimedMessage(row);
    },
    postpone: (message, waitMs, reason) => held("outbox_postpone", message, waitMs, reason),
    bury: (message, reason) => held("outbox_bury", message, reason),
    async purge(limit, keepMs) {
      const [row] = await run("outbox_purge", [limit, keepMs]);
      return number(row ?? {}, "purged");
    },
    waiting: async () => (await run("outbox_waiting", [])).map(waitingMessages),
  };
}

/** How many ordered messages outbox_claim.sql looks at. */
const LOOKED_AT = 1_000;

/**
 * Claims. With more ordered messages due than are looked at, the heads of their orders come after all others; a claim that
 * was full before them makes the next one begin with them. Else they would starve for as long as a relay is busy.
 */
function claimer(run: Run): (claim: MessageClaim) => Promise<SqlRow[]> {
  let headsFirst = false;
  return async ({ topics, limit, leaseMs }) => {
    const wanted = JSON.stringify(topics);
    const claimHeads = (most: number) => run("outbox_claim_heads", [wanted, most, leaseMs]);
    const claimed = headsFirst ? [...(await claimHeads(limit))] : [];
    headsFirst = false;
    if (claimed.length === limit) return claimed;
    const rows = await run("outbox_claim", [wanted, limit - claimed.length, leaseMs]);
    claimed.push(...rows.filter(({ id }) => id !== null));
    if (number(rows[0] ?? {}, "looked") < LOOKED_AT) return claimed;
    headsFirst = claimed.length === limit;
    return headsFirst ? claimed : [...claimed, ...(await claimHeads(limit - claimed.length))];
  };
}

/** A row of outbox_waiting.sql. */
export function waitingMessages(row: SqlRow): WaitingMessages {
  return {
    topic: text(row, "topic"),
    state: text(row, "state") as WaitingMessages["state"],
    count: number(row, "messages"),
    oldestMs: number(row, "oldest_ms"),
  };
}

function claimedMessage(row: SqlRow): ClaimedMessage {
  return {
    id: text(row, "id"),
    topic: text(row, "topic"),
    payload: text(row, "payload"),
    key: textOrNull(row, "key"),
    orderBy: textOrNull(row, "order_by"),
    tenant: text(row, "tenant"),
    client: textOrNull(row, "client"),
    entryId: bytesOrNull(row, "entry_id"),
    context: bytesOrNull(row, "context"),
    correlation: textOrNull(row, "correlation"),
    seq: text(row, "seq"),
    attempt: number(row, "attempts"),
    fence: bytes(row, "fence"),
    createdAt: instant(row, "created_at"),
  };
}
