import { randomBytes } from "node:crypto";
import type { Store } from "oncekey";

/** What `Session.send` writes; see NewMessage of the store port. */
export interface MessageValues {
  readonly id: string;
  readonly topic: string;
  readonly payload: string;
  readonly key: string | null;
  readonly orderBy: string | null;
  readonly delayMs: number;
  readonly tenant: string;
  readonly client: string | null;
  readonly entryId: Uint8Array | null;
  readonly context: Uint8Array | null;
  readonly correlation: string | null;
}

/** A message that no other test uses. */
function newMessage(overrides: Partial<MessageValues> = {}): MessageValues {
  return {
    id: randomBytes(32).toString("base64url"),
    topic: "invoice.created",
    payload: '{"amount":9007199254740993}',
    key: null,
    orderBy: null,
    delayMs: 0,
    tenant: "acme",
    client: "app",
    entryId: null,
    context: null,
    correlation: null,
    ...overrides,
  };
}

/** Commits messages in one transaction, in their order. Gives their ids. */
export async function sendMessages(store: Store, ...messages: Partial<MessageValues>[]): Promise<string[]> {
  const sent = messages.map((message) => newMessage(message));
  await store.transaction(async (session) => {
    for (const message of sent) await session.send(message);
  });
  return sent.map(({ id }) => id);
}
