import { createHash, randomUUID } from "node:crypto";
import type { OutboxMessage } from "oncekey/outbox";
import { expect } from "vitest";
import { query } from "../../support/postgres.ts";
import type { ConsumerLine, ConsumerProcess } from "./consumer-programs.ts";
import type { Queue } from "./consumer-queues.ts";

const TENANTS = ["acme", "globex", "ümlaut & co"];

/** One message for each of three tenants. */
export function makeMessages(): OutboxMessage[] {
  return TENANTS.map((tenant, index) => ({
    id: createHash("sha256").update(randomUUID()).digest("base64url"),
    topic: "invoice.created",
    payload: `{"amount":900719925474099${index}}`,
    key: null,
    orderBy: null,
    tenant,
    client: null,
    context: null,
    correlation: null,
    createdAt: new Date(),
    attempt: 1,
  }));
}

/** Publishes them one after the other. */
export async function publishAll({ publisher }: Queue, messages: readonly OutboxMessage[]): Promise<void> {
  for (const message of messages) {
    const published = await publisher.publish(message, AbortSignal.timeout(20_000));
    expect(published).toEqual({ kind: "delivered" });
  }
}

/** The effects of all messages. */
export const bookings = (url: string) => query(url, "SELECT tenant, delivery, payload FROM booking ORDER BY tenant");

/** Whether a consumer has begun. */
export const isReady = (lines: readonly ConsumerLine[]) => lines.some(({ ready }) => ready !== undefined);

/** What became of one delivery, in the order it was told. */
export const resultsOf = ({ lines }: Pick<ConsumerProcess, "lines">, { id }: OutboxMessage) =>
  lines.filter(({ delivery }) => delivery === id).map(({ result }) => result);
