import assert from "node:assert/strict";
import type { NewMessage } from "../core/message.ts";
import type { ClaimedMessage } from "../core/outbox.ts";
import type { Store } from "../core/store.ts";
import {
  claimMessages,
  LEASE_MS,
  meanwhile,
  messageOf,
  rolledBack,
  type StoreCase,
  sent,
  settledRace,
  whileOpen,
} from "./store-harness.ts";

const group = "order of messages";

const CLAIM = { topics: ["*"], limit: 10, leaseMs: LEASE_MS };

const ordered = (overrides: Partial<NewMessage> = {}): NewMessage =>
  messageOf(null, { orderBy: "inv_1", ...overrides });

/** Sends messages one after the other, each in a transaction of its own. */
async function sentAll(store: Store, ...messages: readonly NewMessage[]): Promise<void> {
  for (const message of messages) await sent(store, message);
}

/** Claims, and must get exactly these, in any order. */
async function assertClaims(store: Store, ...expected: readonly NewMessage[]): Promise<readonly ClaimedMessage[]> {
  const claimed = await claimMessages(store);
  const ids = (messages: readonly { id: string }[]) => messages.map(({ id }) => id).toSorted();
  assert.deepEqual(ids(claimed), ids(expected));
  return claimed;
}

async function deliver(store: Store, ...messages: readonly ClaimedMessage[]): Promise<void> {
  for (const message of messages) assert.equal(await store.outbox.delivered(message), true);
}

export const outboxOrder: readonly StoreCase[] = [
  {
    group,
    name: "of one order only the first that is not delivered is claimed",
    async run({ store, advance }) {
      const [first, second, third] = [ordered(), ordered(), ordered()];
      await store.transaction(async (session) => {
        for (const message of [first, second]) await session.send(message);
      });
      await sent(store, third);
      await assertClaims(store, first);
      await assertClaims(store);
      await advance(LEASE_MS);
      for (const next of [first, second, third]) await deliver(store, ...(await assertClaims(store, next)));
    },
  },
  {
    group,
    name: "orders, tenants and unordered messages do not hold each other up",
    async run({ store }) {
      const firsts = [ordered(), ordered({ orderBy: "inv_2" }), ordered({ tenant: "globex" })];
      const unordered = [messageOf(null), messageOf(null)];
      await sentAll(store, ...firsts, ...unordered, ordered(), ordered({ tenant: "globex" }));
      await assertClaims(store, ...firsts, ...unordered);
    },
  },
  {
    group,
    name: "places in the order of sending grow within an order",
    async run({ store }) {
      const messages = Array.from({ length: 12 }, () => ordered());
      await sentAll(store, ...messages);
      const places: bigint[] = [];
      for (const message of messages) {
        const [claimed] = await assertClaims(store, message);
        assert.ok(claimed);
        places.push(BigInt(claimed.seq));
        await deliver(store, claimed);
      }
      assert.deepEqual(
        places,
        [...new Set(places)].toSorted((a, b) => Number(a - b)),
      );
    },
  },
  {
    group,
    name: "a postponed, a delayed and a leased message hold back what was sent after them",
    async run({ store, advance }) {
      const [first, second, third] = [ordered(), ordered({ delayMs: 300_000 }), ordered()];
      await sentAll(store, first, second, third);
      const [held] = await assertClaims(store, first);
      assert.ok(held);
      assert.equal(await store.outbox.postpone(held, 60_000, "503"), true);
      await assertClaims(store);
      await advance(60_000);
      await deliver(store, ...(await assertClaims(store, first)));
      await assertClaims(store);
      await advance(240_000);
      await deliver(store, ...(await assertClaims(store, second)));
      await assertClaims(store, third);
    },
  },
  {
    group,
    name: "a dead letter holds back its own order and nothing else",
    async run({ store, advance }) {
      const [poison, behind, other] = [ordered(), ordered(), ordered({ orderBy: "inv_2" })];
      await sentAll(store, poison, behind, other);
      for (const held of await assertClaims(store, poison, other)) {
        if (held.id === poison.id) assert.equal(await store.outbox.bury(held, "poison"), true);
        else await deliver(store, held);
      }
      const last = ordered({ orderBy: "inv_2" });
      await sent(store, last);
      await assertClaims(store, last);
      await advance(LEASE_MS / 2);
      await assertClaims(store);
    },
  },
  {
    group,
    name: "a first message that no relay knows the topic of holds back its order, too",
    async run({ store }) {
      const [first, second] = [ordered({ topic: "unknown" }), ordered()];
      await sentAll(store, first, second);
      assert.deepEqual(await claimMessages(store, { topics: ["invoice.created"] }), []);
      await assertClaims(store, first);
    },
  },
  {
    group,
    name: "behind a delivered message its relay claims the next of the order, and only that",
    async run({ store }) {
      const [first, second, third] = [ordered(), ordered(), ordered()];
      await sentAll(store, first, ordered({ orderBy: "inv_2" }), ordered({ tenant: "globex" }), second, third);
      const held = (await claimMessages(store)).find(({ id }) => id === first.id);
      assert.ok(held);
      assert.equal(await store.outbox.claimNext(held, CLAIM), null);
      await deliver(store, held);
      assert.equal(await store.outbox.claimNext(held, { ...CLAIM, topics: ["other"] }), null);
      const next = await store.outbox.claimNext(held, CLAIM);
      assert.equal(next?.id, second.id);
      assert.deepEqual([next?.attempt, next?.fence.length], [1, 16]);
      assert.equal(await store.outbox.claimNext(held, CLAIM), null);
      await deliver(store, next as ClaimedMessage);
      const last = await store.outbox.claimNext(next as ClaimedMessage, CLAIM);
      assert.equal(last?.id, third.id);
      await deliver(store, last as ClaimedMessage);
      assert.equal(await store.outbox.claimNext(last as ClaimedMessage, CLAIM), null);
    },
  },
  {
    group,
    name: "behind an unordered message, and behind one whose next is delayed, there is nothing to claim",
    async run({ store }) {
      await sentAll(store, messageOf(null), messageOf(null), ordered(), ordered({ delayMs: 60_000 }));
      const claimed = await claimMessages(store);
      assert.equal(claimed.length, 3);
      await deliver(store, ...claimed);
      for (const held of claimed) assert.equal(await store.outbox.claimNext(held, CLAIM), null);
    },
  },
  {
    group,
    name: "a second sender of one order waits for the first one's commit, so that places follow the commits",
    async run({ store }) {
      const [first, second] = [ordered(), ordered()];
      const ends: string[] = [];
      const waiting: Promise<unknown>[] = [];
      await whileOpen(
        store,
        (session) => session.send(first),
        async ({ commit }) => {
          waiting.push(settledRace(store, (session) => session.send(second)).then(() => ends.push("second")));
          await meanwhile(store);
          assert.equal(ends.length, 0);
          ends.push("first");
          await commit();
        },
      );
      await Promise.all(waiting);
      assert.deepEqual(ends, ["first", "second"]);
      for (const next of [first, second]) await deliver(store, ...(await assertClaims(store, next)));
    },
  },
  {
    group,
    name: "senders of other orders, of other tenants and of none do not wait for an open transaction",
    async run({ store }) {
      const others = [ordered({ orderBy: "inv_2" }), ordered({ tenant: "globex" }), messageOf(null)];
      await whileOpen(
        store,
        (session) => session.send(ordered()),
        async () => {
          await sentAll(store, ...others);
          await assertClaims(store, ...others);
        },
      );
    },
  },
  {
    group,
    name: "after a sender that rolled back the order goes on without its message",
    async run({ store }) {
      await rolledBack(store, (session) => session.send(ordered()));
      const kept = ordered();
      await sent(store, kept);
      await assertClaims(store, kept);
    },
  },
  {
    group,
    name: "of one order at most one message is on its way, however many relays race",
    async run({ store }) {
      const messages = Array.from({ length: 6 }, () => ordered());
      await sentAll(store, ...messages);
      for (const message of messages) {
        const racing = await Promise.all(Array.from({ length: 6 }, () => claimMessages(store)));
        assert.deepEqual(
          racing.flat().map(({ id }) => id),
          [message.id],
        );
        await deliver(store, ...racing.flat());
      }
    },
  },
];
