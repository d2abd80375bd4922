import assert from "node:assert/strict";
import type { Published } from "../downstream/index.ts";
import {
  arrivedOf,
  assertQuiet,
  deliver,
  makeMessage,
  type PublisherCase,
  type PublisherHarness,
  publish,
  whyRetried,
} from "./publisher-harness.ts";
import { defineSuite } from "./suite.ts";

export { type ArrivedMessage, type PublisherHarness, SUITE_TOPIC } from "./publisher-harness.ts";

const DELIVERED: Published = { kind: "delivered" };

/** Digits beyond a double, all kinds of characters, white space that a re-serialization would lose. */
const EXACT =
  '{"amount":9007199254740993, "rate":0.1000, "name":"Ž\\u0000 \\"ß\\"", "big":123456789012345678901234567890}';

const arriving: readonly PublisherCase[] = [
  {
    name: "delivers id, topic, tenant, correlation, and the payload's bytes as they are",
    async run(harness) {
      const correlation = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
      const message = makeMessage({ payload: EXACT, key: "k", orderBy: "o", correlation });
      assert.deepEqual(await publish(harness, message), DELIVERED);
      const { id, topic, tenant } = message;
      assert.deepEqual(await arrivedOf(harness, [message]), [{ id, topic, tenant, correlation, payload: EXACT }]);
    },
  },
  {
    name: "delivers a message without correlation, and one whose correlation is a request id",
    async run(harness) {
      const messages = [makeMessage(), makeMessage({ correlation: "req-8a/1" })];
      for (const message of messages) assert.deepEqual(await publish(harness, message), DELIVERED);
      const found = await arrivedOf(harness, messages);
      assert.deepEqual(
        messages.map(({ id }) => found.find((one) => one.id === id)?.correlation),
        [null, "req-8a/1"],
      );
    },
  },
  {
    name: "keeps tenants apart that hold spaces, separators, per cent signs, or letters of any script",
    async run(harness) {
      const tenants = [" padded ", "a/b", "a%2Fb", "Größe\n☃", "a:b;c=d", "x".repeat(255)];
      const messages = tenants.map((tenant) => makeMessage({ tenant, orderBy: "same/order" }));
      for (const message of messages) assert.deepEqual(await publish(harness, message), DELIVERED);
      const found = await arrivedOf(harness, messages);
      assert.deepEqual(
        messages.map(({ id }) => found.find((one) => one.id === id)?.tenant),
        tenants,
      );
    },
  },
  {
    name: "delivers characters beyond the basic plane as they are",
    async run(harness) {
      const message = makeMessage({ payload: '"💶"' });
      assert.deepEqual(await publish(harness, message), DELIVERED);
      assert.equal((await arrivedOf(harness, [message]))[0]?.payload, '"💶"');
    },
  },
  {
    name: "delivers many at one time",
    async run(harness) {
      const messages = Array.from({ length: 40 }, (_, index) => makeMessage({ payload: String(index) }));
      const results = await Promise.all(messages.map((message) => publish(harness, message)));
      assert.deepEqual(new Set(results.map(({ kind }) => kind)), new Set(["delivered"]));
      const found = await arrivedOf(harness, messages);
      const payloads = messages.map(({ id }) => found.find((one) => one.id === id)?.payload);
      assert.deepEqual(payloads, Array.from(messages.keys(), String));
      assert.equal(found.length, messages.length);
    },
  },
  {
    name: "keeps the order in which it was given messages of one order",
    async run(harness) {
      const messages = Array.from({ length: 12 }, (_, index) =>
        makeMessage({ orderBy: "o-1", payload: String(index) }),
      );
      for (const message of messages) assert.deepEqual(await publish(harness, message), DELIVERED);
      const found = await arrivedOf(harness, messages);
      assert.deepEqual(
        found.map(({ payload }) => payload),
        messages.map(({ payload }) => payload),
      );
    },
  },
];

const again: readonly PublisherCase[] = [
  {
    name: "gives a redelivery the same id and the same bytes",
    async run(harness) {
      const message = makeMessage({ payload: EXACT });
      assert.deepEqual(await publish(harness, message), DELIVERED);
      assert.deepEqual(await publish(harness, { ...message, attempt: 2 }), DELIVERED);
      const found = await arrivedOf(harness, [message]);
      assert.deepEqual(new Set(found.map(({ id, payload }) => `${id} ${payload}`)).size, 1);
    },
  },
  {
    name: "lets the other side drop a redelivery",
    async run(harness) {
      const message = makeMessage({ orderBy: "o-2" });
      const after = makeMessage({ orderBy: "o-2" });
      for (const one of [message, { ...message, attempt: 2 }, after]) {
        assert.deepEqual(await publish(harness, one), DELIVERED);
      }
      // The later one has arrived, so a second copy of the first would have, too.
      assert.equal((await arrivedOf(harness, [message, after])).length, 2);
    },
  },
];

async function survives(harness: PublisherHarness, outage: () => Promise<void>, patienceMs: number): Promise<void> {
  const first = makeMessage();
  assert.deepEqual(await publish(harness, first), DELIVERED);
  await outage();
  const message = makeMessage({
    payload: '{"iban":"DE75512108001245126199"}',
    key: "k-43",
    orderBy: "o-43",
    tenant: "t-43",
  });
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    const result = await harness.publisher.publish({ ...message, attempt }, AbortSignal.timeout(patienceMs));
    whyRetried(harness, message, result);
  }
  await harness.comeBack();
  await deliver(harness, message);
  assert.ok((await arrivedOf(harness, [first, message])).length >= 2);
}

const failing: readonly PublisherCase[] = [
  {
    name: "asks for another attempt while the other side is away, gives nothing away, and delivers once it is back",
    run: (harness) => survives(harness, () => harness.goAway(), 500),
  },
  {
    name: "ends a hanging attempt when its signal aborts, and delivers once the other side answers again",
    run: (harness) => survives(harness, () => harness.fallSilent(), 300),
  },
  {
    name: "is away from the start: asks for another attempt, and delivers once the other side is there",
    async run(harness) {
      await harness.goAway();
      const message = makeMessage();
      whyRetried(harness, message, await harness.publisher.publish(message, AbortSignal.timeout(500)));
      await harness.comeBack();
      await deliver(harness, message);
      await arrivedOf(harness, [message]);
    },
  },
  {
    name: "publishes nothing where no time is left",
    async run(harness) {
      const late = makeMessage({ orderBy: "o-3" });
      const next = makeMessage({ orderBy: "o-3" });
      whyRetried(harness, late, await harness.publisher.publish(late, AbortSignal.abort()));
      assert.deepEqual(await publish(harness, next), DELIVERED);
      await arrivedOf(harness, [next]);
      assert.ok(!(await harness.arrived()).some(({ id }) => id === late.id));
    },
  },
  {
    name: "gives a message up that is too large, and goes on with the next",
    async run(harness) {
      const large = makeMessage({ payload: JSON.stringify("x".repeat(harness.tooLarge)) });
      const result = await publish(harness, large);
      assert.equal(result.kind, "dead", JSON.stringify(result));
      assertQuiet(harness, large, (result as Extract<Published, { kind: "dead" }>).why);
      const next = makeMessage();
      await deliver(harness, next);
      await arrivedOf(harness, [next]);
      assert.ok(!(await harness.arrived()).some(({ id }) => id === large.id));
    },
  },
];

const grouped = (group: string, cases: readonly PublisherCase[]): PublisherCase[] =>
  cases.map((entry) => ({ ...entry, group }));

/**
 * The contract of a `Publisher`: what arrives is what was sent, under an id that a redelivery keeps; an other side that is
 * away, silent or refusing is an answer, never a throw, and nothing secret is in it.
 */
export const publisherSuite = defineSuite<PublisherHarness>("publisher", [
  ...grouped("arriving", arriving),
  ...grouped("redelivery", again),
  ...grouped("failures", failing),
]);
