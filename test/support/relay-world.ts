import { createOncekey, type OncekeyError, type OncekeyOptions } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { createRelay, delivered, type OutboxMessage, type RelayOptions } from "oncekey/outbox";
import { fakeClock } from "oncekey/testing";
import { sendMessages } from "./outbox.ts";
import type { MessageValues } from "./store-values.ts";

/** What `onError` was told. */
export interface Told {
  readonly error: OncekeyError;
  readonly operation: string;
  readonly at: string;
}

/** A started instance over a memory store whose clock stands still until told. */
export async function relayWorld(options: Partial<OncekeyOptions<MemoryTransaction>> = {}) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const told: Told[] = [];
  const once = createOncekey({
    store,
    clock: time.clock,
    random: { bytes: (length) => crypto.getRandomValues(new Uint8Array(length)), unit: () => 1 },
    onError: (error, about) => told.push({ error: error as OncekeyError, ...about }),
    ...options,
  });
  await once.start();
  const seen: OutboxMessage[] = [];
  const taking = async (message: OutboxMessage) => {
    seen.push(message);
    return delivered();
  };
  return {
    time,
    store,
    once,
    told,
    seen,
    taking,
    relay: (given: Partial<RelayOptions> = {}) => createRelay(once, { topics: { "*": taking }, ...given }),
    send: (...messages: Partial<MessageValues>[]) => sendMessages(store as never, ...messages),
    async waiting() {
      return (await store.outbox.waiting()).map(({ topic, state, count }) => ({ topic, state, count }));
    },
  };
}
