import type { Store } from "oncekey";
import { type MessageValues, newMessage } from "./store-values.ts";

const EXACT = { payload: '{"amount":9007199254740993}', client: "app" };

/** Commits messages in one transaction, in their order. Gives their ids. */
export async function sendMessages(store: Store, ...messages: Partial<MessageValues>[]): Promise<string[]> {
  const sent = messages.map((message) => newMessage({ ...EXACT, ...message }));
  await store.transaction(async (session) => {
    for (const message of sent) await session.send(message);
  });
  return sent.map(({ id }) => id);
}
