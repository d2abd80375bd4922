import type { DeliveryStep } from "../../engine/arrival.ts";
import type { WebhookScheme, WebhookSecret } from "./scheme.ts";

/** A verified event. */
export interface WebhookEvent {
  /** The provider's id, the same on every redelivery. */
  readonly id: string;
  readonly type: string | null;
  /** When it happened, by the provider. */
  readonly occurredAt: Date | null;
  /** The body's JSON: integers beyond ±(2^53 − 1) as `bigint`, fractions as the nearest number. */
  readonly payload: unknown;
  /** The bytes that were signed. */
  readonly body: Uint8Array;
}

/** What the handler of a webhook gets. */
export interface WebhookStep<Tx> extends DeliveryStep<Tx> {
  readonly event: WebhookEvent;
  /** `event.payload`. */
  readonly payload: unknown;
  readonly tenant: string;
}

/** A webhook endpoint. Durations in milliseconds. */
export interface WebhookOptions<Tx> {
  /** Name of the endpoint; event ids are unique within it and the tenant. Stable, 1 to 255 characters. */
  readonly source: string;
  /** How the provider signs: `standardWebhooks()`, `stripeWebhooks()`, `githubWebhooks()`, `hmacWebhooks({ … })`, or one of your own. */
  readonly scheme: WebhookScheme;
  /** The secrets that are valid for the tenant now, several during a rotation. `null`: there is no such tenant. */
  readonly secrets: (tenant: string) => readonly WebhookSecret[] | null | Promise<readonly WebhookSecret[] | null>;
  /** Whether the event is the tenant's, where one secret serves many (`event.payload.account`). Default: it is. */
  readonly belongsTo?: (event: WebhookEvent, tenant: string) => boolean | Promise<boolean>;
  /** How long an event id is remembered; must exceed the scheme's `redeliversForMs`. Default 2,592,000,000 (30 days). */
  readonly rememberMs?: number;
  /** Largest body in bytes. Default: the instance's `maxBodyBytes`. */
  readonly maxBodyBytes?: number;
  /** How far the signed timestamp may lie from this machine's wall clock, in either direction. Default 300,000. */
  readonly toleranceMs?: number;
  /** Longest time the handler may take. Keep it under the provider's time-out (10 to 30 s). Default 60,000. */
  readonly maxDurationMs?: number;
  /** How long a duplicate of a running event waits for its end. Default: the instance's `waitMs`. */
  readonly waitMs?: number;
  /** The wall clock, in milliseconds since the epoch, for tests. Default `Date.now`. */
  readonly now?: () => number;
  /** Acts on the event through `tx`, in the transaction that remembers it. A throw rolls back; the provider delivers again. */
  handler(step: WebhookStep<Tx>): Promise<void>;
}
