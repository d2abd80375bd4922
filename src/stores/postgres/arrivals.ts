import type { KnownDelivery, NewDelivery } from "../../core/delivery.ts";
import type { SequenceNumber } from "../../core/sequence.ts";
import type { ArrivalSession } from "../../core/store.ts";
import type { Part, Run } from "./committing.ts";
import type { SqlRow } from "./driver-port.ts";
import { storeFailure } from "./errors.ts";
import { limitParameters } from "./limits.ts";
import { arrivalLockKey } from "./lock-keys.ts";
import { boolean, bytes, bytesOrNull, instant, number, text, textOrNull } from "./rows.ts";

/** What a session of arrivals shares with the rest of its transaction. */
export interface ArrivalScope {
  readonly schema: string;
  readonly run: Run;
  /** The transaction's own id, as its first statement gave it; `null`: that statement gained no lock. */
  xact(): string | null;
  remember(xact: string | null): void;
}

/** The statements for arrivals inside an open transaction. */
export function arrivalSession({ schema, run, xact, remember }: ArrivalScope): ArrivalSession {
  return {
    async tryLocks(digests, limits) {
      const keys = digests.map((digest) => arrivalLockKey(schema, digest));
      const rows = await run("try_locks", [JSON.stringify(keys), ...limitParameters(limits)]);
      remember(textOrNull(rows[0] ?? { xact: null }, "xact"));
      return rows.map((row) => boolean(row, "gained"));
    },
    deliveries: async (digests) => knownDeliveries(await run("deliveries", [hexList(digests)])),
    async accept(deliveries) {
      const [row] = await run("accept", [JSON.stringify(deliveries.map(deliveryRow)), xact()]);
      settled(row, number(row ?? {}, "accepted") === deliveries.length);
    },
    async forget(digests) {
      const [row] = await run("forget_deliveries", [hexList(digests), xact()]);
      settled(row, true);
    },
    async producer(digest) {
      const [row] = await run("producer", [digest]);
      return row === undefined ? null : sequenceNumber(row);
    },
    async moveProducer(digest, { tenant, source, producer }, from, to) {
      const seen = from === null ? [null, null] : [String(from.epoch), String(from.sequence)];
      const parameters = [digest, tenant, source, producer, ...seen, String(to.epoch), String(to.sequence), xact()];
      const [row] = await run("move_producer", parameters);
      settled(row, row?.matched === true);
    },
    async moveSubject(digest, { tenant, source, subject }, version) {
      return (await run("move_subject", [digest, tenant, source, subject, String(version)])).length > 0;
    },
  };
}

/** What is known of arrivals outside any transaction. */
export function arrivalStatements(run: Run): Part<never, "deliveries" | "purgeDeliveries"> {
  return {
    deliveries: async (digests) => knownDeliveries(await run("deliveries", [hexList(digests)])),
    async purgeDeliveries(limit) {
      const [row] = await run("purge_deliveries", [limit]);
      return number(row ?? {}, "purged");
    },
  };
}

function settled(row: SqlRow | undefined, isOurs: boolean): void {
  if (row?.same !== true) throw storeFailure("transaction_lost");
  if (!isOurs) throw storeFailure("conflict");
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** Lists travel as JSON text: array parameters do not pass every driver. */
const hexList = (digests: readonly Uint8Array[]) => JSON.stringify(digests.map(hex));

function deliveryRow({ digest, delivery, value, keepMs }: NewDelivery) {
  return {
    digest: hex(digest),
    tenant: delivery.tenant,
    source: delivery.source,
    delivery: delivery.id,
    value: value === null ? null : Buffer.from(value).toString("base64"),
    keep_ms: keepMs,
  };
}

function knownDeliveries(rows: readonly SqlRow[]): KnownDelivery[] {
  return rows.map((row) => ({
    digest: bytes(row, "id"),
    value: bytesOrNull(row, "value"),
    receivedAt: instant(row, "received_at"),
  }));
}

function sequenceNumber(row: SqlRow): SequenceNumber {
  return { epoch: BigInt(text(row, "epoch")), sequence: BigInt(text(row, "sequence")) };
}
