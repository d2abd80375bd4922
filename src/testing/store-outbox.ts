import assert from "node:assert/strict";
import type { NewMessage } from "../core/message.ts";
import type { ClaimedMessage, MessageClaim } from "../core/outbox.ts";
import type { Store } from "../core/store.ts";
import {
  assertBytes,
  claimMessages,
  LEASE_MS,
  messageOf,
  newEntry,
  newFence,
  newValue,
  rolledBack,
  type StoreCase,
  sent,
  whileOpen,
} from "./store-harness.ts";

const group = "outbox";

/** Claims the one message that must be due. */
async function claimOne(store: Store, claim: Partial<MessageClaim> = {}): Promise<ClaimedMessage> {
  const [message, ...others] = await claimMessages(store, claim);
  assert.ok(message, "a message must be due");
  assert.deepEqual(others, []);
  return message;
}

const idsOf = (messages: readonly { id: string }[]): string[] => messages.map(({ id }) => id);

/** Nothing that settles a message works with this lease any more. */
async function assertLost({ outbox }: Store, held: { id: string; fence: Uint8Array }): Promise<void> {
  assert.equal(await outbox.renew(held, LEASE_MS), false);
  assert.equal(await outbox.postpone(held, 0, "why"), false);
  assert.equal(await outbox.bury(held, "why"), false);
  assert.equal(await outbox.delivered(held), false);
}

export const outbox: readonly StoreCase[] = [
  {
    group,
    name: "a committed message is claimed with everything that was sent",
    async run({ store }) {
      const context = new Uint8Array([1, 0, 255]);
      const { id: entryId } = newEntry();
      const message = messageOf(entryId, {
        ...{ key: "k", orderBy: "o", tenant: "globex", client: null, correlation: "00-ab-cd-01", context },
      });
      await sent(store, message);
      const claimed = await claimOne(store);
      const { delayMs: _delay, ...expected } = message;
      const { seq, attempt, fence, createdAt, ...actual } = claimed;
      const plain = (value: object) => ({ ...value, entryId: null, context: null });
      assert.deepEqual(plain(actual), plain(expected));
      assertBytes(actual.entryId, entryId);
      assertBytes(actual.context, context);
      assert.match(seq, /^\d+$/);
      assert.equal(attempt, 1);
      assert.equal(fence.length, 16);
      assert.ok(createdAt instanceof Date && !Number.isNaN(createdAt.getTime()));
    },
  },
  {
    group,
    name: "a message that no entry sent, without client and context, is claimed as such",
    async run({ store }) {
      await sent(store, messageOf(null, { client: null }));
      const { entryId, client, context, correlation, key, orderBy } = await claimOne(store);
      assert.deepEqual([entryId, client, context, correlation, key, orderBy], [null, null, null, null, null, null]);
    },
  },
  {
    group,
    name: "a message of a transaction that was rolled back is never claimed",
    async run({ store }) {
      await rolledBack(store, (session) => session.send(messageOf(null)));
      assert.deepEqual(await claimMessages(store), []);
    },
  },
  {
    group,
    name: "a message sent inside the caller's own transaction is committed, or rolled back, with it",
    async run({ store, insertRow, countRows, messageIds }) {
      const [kept, dropped] = [messageOf(null), messageOf(null)];
      const value = newValue();
      const send = async (tx: unknown, message: NewMessage) => {
        await insertRow(tx, value);
        await store.send(tx, message);
      };
      await store.transaction(({ tx }) => send(tx, kept));
      await rolledBack(store, ({ tx }) => send(tx, dropped));
      assert.equal(await countRows(value), 1);
      assert.deepEqual(await messageIds(), [kept.id]);
      assert.equal((await claimOne(store)).id, kept.id);
    },
  },
  {
    group,
    name: "a leased message is nobody else's until the lease ends, and is then delivered again",
    async run({ store, advance }) {
      await sent(store, messageOf(null));
      const first = await claimOne(store);
      assert.deepEqual(await claimMessages(store), []);
      await advance(LEASE_MS);
      const second = await claimOne(store);
      assert.equal(second.id, first.id);
      assert.equal(second.attempt, 2);
      assert.equal(second.seq, first.seq);
      assert.notDeepEqual([...second.fence], [...first.fence]);
      await assertLost(store, first);
      assert.equal(await store.outbox.delivered(second), true);
    },
  },
  {
    group,
    name: "a renewed lease lasts from its renewal",
    async run({ store, advance }) {
      await sent(store, messageOf(null));
      const held = await claimOne(store, { leaseMs: 60_000 });
      await advance(50_000);
      assert.equal(await store.outbox.renew(held, LEASE_MS), true);
      await advance(LEASE_MS - 60_000);
      assert.deepEqual(await claimMessages(store), []);
      await advance(60_000);
      assert.equal((await claimOne(store)).attempt, 2);
    },
  },
  {
    group,
    name: "a relay that was slow, but whose message nobody else has claimed, may still settle it",
    async run({ store, advance }) {
      await sent(store, messageOf(null));
      const held = await claimOne(store);
      await advance(LEASE_MS * 2);
      assert.equal(await store.outbox.delivered(held), true);
      assert.deepEqual(await claimMessages(store), []);
    },
  },
  {
    group,
    name: "a fence that does not hold the message settles nothing, nor does any fence of a settled one",
    async run({ store, advance }) {
      await sent(store, messageOf(null));
      await assertLost(store, { id: messageOf(null).id, fence: newFence() });
      const held = await claimOne(store);
      await assertLost(store, { id: held.id, fence: newFence() });
      assert.equal(await store.outbox.delivered(held), true);
      await assertLost(store, held);
      await advance(LEASE_MS * 2);
      assert.deepEqual(await claimMessages(store), []);
    },
  },
  {
    group,
    name: "a postponed message comes again after its wait, not sooner, and not to the lease before",
    async run({ store, advance }) {
      await sent(store, messageOf(null));
      const held = await claimOne(store);
      assert.equal(await store.outbox.postpone(held, 60_000, "503"), true);
      await assertLost(store, held);
      await advance(59_000);
      assert.deepEqual(await claimMessages(store), []);
      await advance(1_000);
      assert.equal((await claimOne(store)).attempt, 2);
    },
  },
  {
    group,
    name: "a delayed message is not claimed before its delay is over",
    async run({ store, advance }) {
      await sent(store, messageOf(null, { delayMs: 60_000 }));
      await advance(50_000);
      assert.deepEqual(await claimMessages(store), []);
      await advance(10_000);
      await claimOne(store);
    },
  },
  {
    group,
    name: "a dead letter is kept and never claimed",
    async run({ store, advance, messageIds }) {
      await sent(store, messageOf(null));
      const held = await claimOne(store);
      assert.equal(await store.outbox.bury(held, "410"), true);
      await assertLost(store, held);
      await advance(LEASE_MS * 2);
      assert.deepEqual(await claimMessages(store), []);
      assert.equal(await store.outbox.purge(10, 0), 0);
      assert.deepEqual(await messageIds(), [held.id]);
    },
  },
  {
    group,
    name: "only messages of claimed topics are claimed: exact names, or what a prefix begins",
    async run({ store }) {
      const topics = ["invoice.created", "invoice.created.v2", "invoice_x", "invoiceXx", "in%", "other"];
      for (const topic of topics) await sent(store, messageOf(null, { topic }));
      const claimed = async (...names: string[]) =>
        (await claimMessages(store, { topics: names })).map(({ topic }) => topic).toSorted();
      assert.deepEqual(await claimed(), []);
      assert.deepEqual(await claimed("invoice", "Other"), []);
      assert.deepEqual(await claimed("invoice_*"), ["invoice_x"]);
      assert.deepEqual(await claimed("in%*"), ["in%"]);
      assert.deepEqual(await claimed("invoice.created"), ["invoice.created"]);
      assert.deepEqual(await claimed("invoice.created*", "other"), ["invoice.created.v2", "other"]);
      assert.deepEqual(await claimed("*"), ["invoiceXx"]);
    },
  },
  {
    group,
    name: "at most as many are claimed as were asked for, the oldest first",
    async run({ store }) {
      const messages = [messageOf(null), messageOf(null), messageOf(null)];
      for (const message of messages) await sent(store, message);
      const first = await claimMessages(store, { limit: 2 });
      assert.deepEqual(idsOf(first).toSorted(), idsOf(messages.slice(0, 2)).toSorted());
      assert.deepEqual(idsOf(await claimMessages(store, { limit: 2 })), idsOf(messages.slice(2)));
    },
  },
  {
    group,
    name: "relays that race for messages share them out: each is claimed once",
    async run({ store }) {
      const messages = Array.from({ length: 20 }, () => messageOf(null));
      await store.transaction(async (session) => {
        for (const message of messages) await session.send(message);
      });
      const racing = await Promise.all(Array.from({ length: 8 }, () => claimMessages(store, { limit: 5 })));
      const claimed = [...racing.flat(), ...(await claimMessages(store, { limit: 20 }))];
      assert.deepEqual(idsOf(claimed).toSorted(), idsOf(messages).toSorted());
      for (const held of claimed) assert.equal(await store.outbox.delivered(held), true);
    },
  },
  {
    group,
    name: "transactions that commit out of the order of their sending lose no message",
    async run({ store }) {
      const [early, late] = [messageOf(null), messageOf(null)];
      await whileOpen(
        store,
        (session) => session.send(early),
        async ({ commit }) => {
          await sent(store, late);
          const first = await claimOne(store);
          assert.equal(first.id, late.id);
          assert.equal(await store.outbox.delivered(first), true);
          await commit();
        },
      );
      assert.equal((await claimOne(store)).id, early.id);
    },
  },
  {
    group,
    name: "the purge deletes delivered messages that were kept long enough, at most as many as asked, and no others",
    async run({ store, advance, messageIds }) {
      const [pending, ...delivered] = [messageOf(null, { topic: "waiting" }), messageOf(null), messageOf(null)];
      for (const message of [pending, ...delivered]) await sent(store, message);
      for (const held of await claimMessages(store, { topics: ["invoice.created"] }))
        await store.outbox.delivered(held);
      await advance(60_000);
      await sent(store, messageOf(null, { id: "fresh" }));
      assert.equal(await store.outbox.delivered(await claimOne(store, { topics: ["invoice.created"] })), true);
      assert.equal(await store.outbox.purge(10, 120_000), 0);
      assert.equal(await store.outbox.purge(1, 60_000), 1);
      assert.equal(await store.outbox.purge(10, 60_000), 1);
      assert.equal(await store.outbox.purge(10, 60_000), 0);
      assert.deepEqual((await messageIds()).toSorted(), [pending.id, "fresh"].toSorted());
    },
  },
  {
    group,
    name: "what waits is counted by topic and state, with the age of its oldest; what was delivered is not",
    async run({ store, advance }) {
      assert.deepEqual(await store.outbox.waiting(), []);
      await sent(store, messageOf(null, { topic: "a" }));
      await advance(60_000);
      for (const topic of ["a", "b", "c"]) await sent(store, messageOf(null, { topic }));
      await store.outbox.bury(await claimOne(store, { topics: ["b"] }), "410");
      await store.outbox.delivered(await claimOne(store, { topics: ["c"] }));
      const waiting = (await store.outbox.waiting()).toSorted((x, y) => Number(x.topic > y.topic));
      assert.deepEqual(
        waiting.map(({ topic, state, count }) => [topic, state, count]),
        [
          ["a", "pending", 2],
          ["b", "dead", 1],
        ],
      );
      assert.ok(waiting[0] && waiting[0].oldestMs >= 60_000 && waiting[0].oldestMs < 120_000);
      assert.ok(waiting[1] && waiting[1].oldestMs < 60_000);
    },
  },
];
