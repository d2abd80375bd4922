import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { OutboxMessage, Published, Publisher } from "../downstream/index.ts";
import type { SuiteCase, SuiteHarness } from "./suite.ts";

/** A message as it was found at the other side. */
export interface ArrivedMessage {
  readonly id: string;
  readonly topic: string;
  /** The bytes, as text. */
  readonly payload: string;
  readonly tenant: string;
  readonly correlation: string | null;
}

/** What a publisher brings to its contract suite: itself, connected to a broker through something that can cut it off. */
export interface PublisherHarness extends SuiteHarness {
  readonly publisher: Publisher;
  /** All that has arrived so far, oldest first, redeliveries included. */
  arrived(): Promise<readonly ArrivedMessage[]>;
  /** The broker is away: connections are cut and refused. */
  goAway(): Promise<void>;
  /** The broker is silent: connections stay and nothing is answered. */
  fallSilent(): Promise<void>;
  /** The end of it. */
  comeBack(): Promise<void>;
  /** Bytes that the broker does not accept in one message. */
  readonly tooLarge: number;
  /** Texts that must not be in any `why`: passwords, addresses with credentials. */
  readonly secrets: readonly string[];
}

/** A case of the publisher suite. */
export type PublisherCase = SuiteCase<PublisherHarness>;

/** The topic of every message: an implementation's harness makes queues for it. */
export const SUITE_TOPIC = "oncekey.suite";

/** Longest that a case waits for a broker, in milliseconds. */
const PATIENCE_MS = 20_000;

/** A message of its own, with what the case is about. */
export function makeMessage(given: Partial<OutboxMessage> = {}): OutboxMessage {
  return {
    id: createHash("sha256").update(randomUUID()).digest("base64url"),
    topic: SUITE_TOPIC,
    payload: '{"amount":1}',
    key: null,
    orderBy: null,
    tenant: "acme",
    client: null,
    context: null,
    correlation: null,
    createdAt: new Date("2026-01-02T03:04:05.678Z"),
    attempt: 1,
    ...given,
  };
}

/** One attempt, with all the time that a case has. */
export function publish({ publisher }: PublisherHarness, message: OutboxMessage): Promise<Published> {
  return publisher.publish(message, AbortSignal.timeout(PATIENCE_MS));
}

/** Attempts until it is delivered, as the relay would. */
export async function deliver(harness: PublisherHarness, message: OutboxMessage): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  for (let last: Published; ; ) {
    last = await harness.publisher.publish(message, AbortSignal.timeout(500));
    if (last.kind === "delivered") return;
    assert.equal(last.kind, "retry", `It must be tried again: ${JSON.stringify(last)}`);
    assert.ok(Date.now() < deadline, `It was not delivered in time: ${JSON.stringify(last)}`);
    await pause(50);
  }
}

/** What has arrived of these messages, once each of them has. */
export async function arrivedOf(
  harness: PublisherHarness,
  messages: readonly Pick<OutboxMessage, "id">[],
): Promise<readonly ArrivedMessage[]> {
  const deadline = Date.now() + PATIENCE_MS;
  const ids = new Set(messages.map(({ id }) => id));
  for (;;) {
    const found = (await harness.arrived()).filter(({ id }) => ids.has(id));
    if (new Set(found.map(({ id }) => id)).size === ids.size) return found;
    assert.ok(Date.now() < deadline, `Of ${ids.size} messages only these arrived: ${JSON.stringify(found)}`);
    await pause(20);
  }
}

/** The reason of an attempt that must be tried again, checked to give nothing away. */
export function whyRetried(harness: PublisherHarness, message: OutboxMessage, result: Published): string {
  assert.equal(result.kind, "retry", JSON.stringify(result));
  const { why } = result as Extract<Published, { kind: "retry" }>;
  assert.notEqual(why, "");
  assertQuiet(harness, message, why);
  return why;
}

/** Neither payload, key, ids, nor a password is in a reason: operators see it, and logs. */
export function assertQuiet({ secrets }: PublisherHarness, message: OutboxMessage, why: string): void {
  const { payload, key, orderBy, tenant, correlation } = message;
  const hidden = [payload, key, orderBy, tenant, correlation, ...secrets].filter(
    (text) => text !== null && text !== "",
  );
  for (const text of hidden) assert.ok(!why.includes(String(text)), `The reason gives something away: ${why}`);
  assert.ok(why.length <= 200, `The reason is long: ${why}`);
}
