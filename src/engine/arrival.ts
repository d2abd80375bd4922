import type { Delivery, Producer } from "../core/delivery.ts";
import type { SequenceNumber } from "../core/sequence.ts";
import type { NumberedSpan } from "../core/sequence-batch.ts";
import type { Step } from "./definition.ts";

/** A delivery as a consumer hands it in. */
export interface IncomingDelivery extends Delivery {
  /** The sender says that it may have sent this before (FIX PossResend): then even `onDuplicate: "reject"` acknowledges. */
  readonly possibleResend?: boolean;
  /** What ties it to the sender's logs; messages that the handler sends carry it on. */
  readonly correlation?: string | null;
}

/** How deliveries are consumed. Durations in milliseconds. */
export interface ConsumeOptions {
  /**
   * What a duplicate gives: `acknowledge` (default): `duplicate`; `replay`: the value that the first one's handler gave,
   * which is then stored; `reject`: `rejected`, unless it says that it may be a resend.
   */
  readonly onDuplicate?: "acknowledge" | "replay" | "reject";
  /**
   * How long a delivery is remembered. Must be longer than the other side goes on redelivering. Default 604,800,000
   * (7 days). SQS FIFO's window is 300,000.
   */
  readonly rememberMs?: number;
  /** Longest time the handler may take. Default 60,000. */
  readonly maxDurationMs?: number;
  /** How long a duplicate of a running delivery waits for its end. Default: the instance's `waitMs`. */
  readonly waitMs?: number;
}

/** What the handler of a delivery gets. */
export interface DeliveryStep<Tx> extends Step<Tx> {
  /**
   * Runs `update` only if `version` is newer than the newest one seen for `subject` (in this tenant and source), so that
   * an older state that arrives late changes nothing. Dates count by their milliseconds. Tells whether it ran.
   */
  ifNewer(subject: string, version: Date | bigint | number, update: () => Promise<void>): Promise<boolean>;
  /** Aborts at `maxDurationMs`. */
  readonly signal: AbortSignal;
}

/** What the handler of a batch gets. `send` is for batches of one tenant; else whose message it is must be said: `of`. */
export interface BatchStep<Tx, D> extends Omit<DeliveryStep<Tx>, "reference" | "ifNewer"> {
  /** The deliveries that are new, in their order; each only once. */
  readonly fresh: readonly D[];
  /** {@link DeliveryStep.ifNewer} for one of the fresh deliveries. */
  ifNewer(delivery: D, subject: string, version: Date | bigint | number, update: () => Promise<void>): Promise<boolean>;
  /** What a handler of one of the fresh deliveries alone would get: its reference, messages of its tenant and correlation. */
  of(delivery: D): DeliveryStep<Tx>;
}

/**
 * What consuming gave. Acknowledge `done`, `duplicate`, `replayed` and (as your protocol has it) `rejected`; leave
 * `unsettled` to redelivery. A throw of the handler rolls back and is raised.
 */
export type ConsumeResult<Value> =
  | { readonly kind: "done"; readonly value: Value }
  | { readonly kind: "duplicate"; readonly receivedAt: Date }
  | { readonly kind: "replayed"; readonly value: Value; readonly receivedAt: Date }
  | { readonly kind: "rejected"; readonly receivedAt: Date }
  | Unsettled;

/** Nothing is known to be done: do not acknowledge. Redelivery settles it. */
export interface Unsettled {
  readonly kind: "unsettled";
  readonly why: "busy" | "contention" | "store_unavailable" | "commit_unknown" | "time_out";
  readonly retryAfterMs: number;
}

/** A message that its producer numbered. */
export interface NumberedMessage extends Producer, SequenceNumber {
  readonly correlation?: string | null;
}

/** A batch that its producer numbered, as Kafka's idempotent producers do it: 32-bit numbers that begin at 0 again. */
export interface NumberedBatch extends Producer, NumberedSpan {
  readonly correlation?: string | null;
}

/** How numbered batches are consumed. Durations in milliseconds. */
export interface NumberedBatchOptions extends Pick<ConsumeOptions, "maxDurationMs" | "waitMs"> {
  /**
   * How long a producer's last batches are remembered after its latest one: must be longer than it goes on repeating them.
   * Default 86,400,000 (24 h), as `producer.id.expiration.ms` of Kafka's broker. Its number is kept for ever.
   */
  readonly rememberMs?: number;
}

/**
 * What consuming a numbered batch gave. Acknowledge `done` and `duplicate`, both with the value that the handler gave for
 * that batch; everything else did nothing.
 */
export type NumberedBatchResult<Value> =
  | { readonly kind: "done" | "duplicate"; readonly value: Value }
  /** A gap, an overlap, or older than the five that are remembered. `expected`: the next number of this epoch. */
  | { readonly kind: "out_of_order"; readonly expected: bigint }
  /** Nothing is known of the producer, and its batch is not the first one. */
  | { readonly kind: "unknown_producer" }
  | { readonly kind: "fenced"; readonly epoch: bigint }
  | Unsettled;

/** What consuming a numbered message gave. */
export type SequenceResult<Value> =
  | { readonly kind: "done"; readonly value: Value }
  | { readonly kind: "duplicate" }
  | { readonly kind: "out_of_order"; readonly expected: bigint }
  | { readonly kind: "fenced"; readonly epoch: bigint }
  | Unsettled;
