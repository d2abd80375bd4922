import { readFileSync } from "node:fs";
import type { Oncekey, SequenceResult } from "oncekey";

/** What runs SQL: a pg client or a PGlite transaction. */
export interface Queryable {
  query(sql: string, parameters?: unknown[]): Promise<{ rows: unknown[] }>;
}

/** One measured use of something, as its producer counted it. Never changed once it is recorded. */
export interface UsageEvent {
  readonly tenant: string;
  /** Who counts: a gateway, a node. It numbers its events without gaps. */
  readonly producer: string;
  /** Raised by one whenever the producer starts anew. */
  readonly epoch: bigint;
  /** 0, 1, 2 … within the epoch. */
  readonly sequence: bigint;
  readonly meter: string;
  readonly quantity: bigint;
  /** The event whose quantity this one takes back. */
  readonly corrects?: string;
  readonly occurredAt: Date;
}

/** What makes an event that event. */
type EventNumber = Pick<UsageEvent, "tenant" | "producer" | "epoch" | "sequence">;

/** Takes events in and adds them up. */
export interface Meter {
  /** Records the event if it is its producer's next one; tells what it was. */
  record(event: UsageEvent): Promise<SequenceResult<void>>;
  /** The sum of a tenant's meter. */
  total(tenant: string, meter: string): Promise<bigint>;
}

const SOURCE = "usage";

/**
 * The event's id, the same for ever: whoever holds an event can find its row. Every part is length-prefixed, so that no
 * choice of names makes two events one.
 */
export function eventId({ tenant, producer, epoch, sequence }: EventNumber): string {
  return [tenant, producer, String(epoch), String(sequence)].map((part) => `${part.length}:${part}`).join("/");
}

/**
 * Usage metering: events arrive at least once and in any order, and count once and in their order. What is remembered is
 * one row a producer (its last number), however many events there are; the ledger's primary key would catch the rest.
 */
export function createMeter<Tx extends Queryable>(once: Oncekey<Tx>, db: Queryable): Meter {
  return {
    record: ({ tenant, producer, epoch, sequence, ...event }) =>
      once.consumeNumbered({ tenant, source: SOURCE, producer, epoch, sequence }, async ({ tx }) => {
        const id = eventId({ tenant, producer, epoch, sequence });
        await tx.query(
          `insert into usage_events (id, tenant, meter, quantity, corrects, occurred_at)
           values ($1, $2, $3, $4::numeric, $5, $6)`,
          [id, tenant, event.meter, String(event.quantity), event.corrects ?? null, event.occurredAt],
        );
      }),
    async total(tenant, meter) {
      const { rows } = await db.query(
        "select coalesce(sum(quantity), 0)::text as total from usage_events where tenant = $1 and meter = $2",
        [tenant, meter],
      );
      return BigInt((rows[0] as { total: string }).total);
    },
  };
}

/** Makes the ledger where it is missing. `exec` runs several statements. */
export async function createLedger(exec: (sql: string) => Promise<unknown>): Promise<void> {
  await exec(readFileSync(new URL("./schema.sql", import.meta.url), "utf8"));
}
