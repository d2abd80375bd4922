import { OncekeyError } from "../../core/errors.ts";
import type { ConsumeOptions, ConsumeResult, Unsettled } from "../../engine/arrival.ts";
import type { Oncekey } from "../../engine/oncekey.ts";
import { checkConsuming, checkWebhook } from "./check.ts";
import type { WebhookEvent, WebhookOptions } from "./endpoint.ts";
import type { WebhookHeaders } from "./headers.ts";
import { DEFAULT_TOLERANCE_MS, type RefusalReason, webhookInvalid } from "./scheme.ts";

/** A webhook as it arrived. */
export interface IncomingWebhook {
  /** Whose endpoint it came to: from the route or host, never from the body. */
  readonly tenant: string;
  readonly headers: WebhookHeaders;
  /** The raw bytes. */
  readonly body: Uint8Array;
}

/** What became of a webhook; for logs and counters. */
export type WebhookResult =
  | { readonly kind: "done" }
  | { readonly kind: "duplicate"; readonly receivedAt: Date }
  | { readonly kind: "refused"; readonly why: RefusalReason | "tenant_unknown" | "tenant_wrong" | "body_too_large" }
  | Unsettled
  /** The handler or the store failed; rolled back. Also told to the instance's `onError`. */
  | { readonly kind: "failed"; readonly error: unknown };

/** The answer to give to the provider. It says nothing that helps to forge. */
export interface WebhookAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly result: WebhookResult;
}

/** A webhook endpoint, free of any framework. */
export interface Webhook {
  /**
   * Verifies, then acts once. 200 once the effect is committed, now or by an earlier delivery; 400, 401, 403 or 413 for what
   * was refused, of which nothing is stored; 503 with `Retry-After` while nothing is known; 500 after a throw of the
   * handler. Raises `oncekey_webhook_invalid`, and what `secrets`, `belongsTo` and functions of the scheme throw.
   */
  receive(incoming: IncomingWebhook): Promise<WebhookAnswer>;
  /** @internal */
  readonly internals: { readonly maxBodyBytes: number; failed(error: unknown): WebhookAnswer };
}

const DEFAULT_REMEMBER_MS = 30 * 24 * 3_600_000;

/** Creates an endpoint. Raises `oncekey_webhook_invalid` for options that would let an event act twice, or anybody sign. */
export function createWebhook<Tx>(once: Oncekey<Tx>, options: WebhookOptions<Tx>): Webhook {
  const rememberMs = options.rememberMs ?? DEFAULT_REMEMBER_MS;
  const toleranceMs = options.toleranceMs ?? DEFAULT_TOLERANCE_MS;
  const { context } = once.internals;
  const { settings } = context;
  const maxBodyBytes = options.maxBodyBytes ?? settings.maxBodyBytes;
  checkWebhook({ ...options, rememberMs, toleranceMs, maxBodyBytes });
  const consuming = consumingOf(options, rememberMs);
  checkConsuming(context, options.source, consuming);
  const endpoint: Endpoint<Tx> = { once, options, consuming, toleranceMs, maxBodyBytes };
  const failed = (error: unknown) => {
    settings.onError(error, { operation: options.source, at: "webhook" });
    return answerTo({ kind: "failed", error });
  };
  return {
    receive: async (incoming) => {
      const event = await accepted(endpoint, incoming);
      if (typeof event === "string") {
        context.emit?.({ kind: "webhook_refused", source: options.source, why: event });
        return answerTo({ kind: "refused", why: event });
      }
      try {
        return answerTo(await act(endpoint, incoming.tenant, event));
      } catch (error) {
        return failed(error);
      }
    },
    internals: { maxBodyBytes, failed },
  };
}

function consumingOf({ maxDurationMs, waitMs }: WebhookOptions<never>, rememberMs: number): ConsumeOptions {
  return {
    rememberMs,
    ...(maxDurationMs === undefined ? {} : { maxDurationMs }),
    ...(waitMs === undefined ? {} : { waitMs }),
  };
}

interface Endpoint<Tx> {
  readonly once: Oncekey<Tx>;
  readonly options: WebhookOptions<Tx>;
  readonly consuming: ConsumeOptions;
  readonly toleranceMs: number;
  readonly maxBodyBytes: number;
}

type Refusal = Extract<WebhookResult, { kind: "refused" }>["why"];

/** The verified event, or why it is refused. Nothing is looked up or stored before the signature has been checked. */
async function accepted<Tx>(
  { options, toleranceMs, maxBodyBytes }: Endpoint<Tx>,
  { tenant, headers, body }: IncomingWebhook,
): Promise<WebhookEvent | Refusal> {
  if (!(body instanceof Uint8Array)) throw webhookInvalid(`Webhook ${options.source} got a body that is no bytes`);
  if (body.length > maxBodyBytes) return "body_too_large";
  const secrets = await options.secrets(tenant);
  if (secrets === null) return "tenant_unknown";
  const nowMs = (options.now ?? Date.now)();
  const verified = options.scheme.verify({ headers, body, secrets, toleranceMs, nowMs });
  if (verified.kind === "refused") return verified.why;
  const { eventId, type, occurredAt, payload } = verified;
  const event: WebhookEvent = { id: eventId, type, occurredAt, payload, body };
  // Only a plain yes: a look-up that finds no such account gives undefined.
  const isTenants = options.belongsTo === undefined || (await options.belongsTo(event, tenant)) === true;
  return isTenants ? event : "tenant_wrong";
}

async function act<Tx>(endpoint: Endpoint<Tx>, tenant: string, event: WebhookEvent): Promise<WebhookResult> {
  const { once, options, consuming } = endpoint;
  const { source, handler } = options;
  const consumed: ConsumeResult<void> = await once.consume(
    { tenant, source, id: event.id, correlation: event.id },
    (step) => handler.call(options, { ...step, event, payload: event.payload, tenant }),
    consuming,
  );
  switch (consumed.kind) {
    case "done":
      return { kind: "done" };
    case "unsettled":
      return consumed;
    default:
      return { kind: "duplicate", receivedAt: consumed.receivedAt };
  }
}

const REFUSAL_STATUS: Readonly<Record<Refusal, number>> = {
  header_missing: 400,
  header_malformed: 400,
  body_not_json: 400,
  id_missing: 400,
  signature_wrong: 401,
  timestamp_outside: 401,
  // As a wrong signature: who is a tenant here is nobody's business.
  tenant_unknown: 401,
  tenant_wrong: 403,
  body_too_large: 413,
};

function answerTo(result: WebhookResult): WebhookAnswer {
  switch (result.kind) {
    case "done":
    case "duplicate":
      return answer(200, "accepted", result);
    case "refused":
      return answer(REFUSAL_STATUS[result.why], "refused", result);
    case "unsettled":
      return answer(503, "try again", result, result.retryAfterMs);
    case "failed":
      return isClosing(result.error) ? answer(503, "try again", result, 1_000) : answer(500, "failed", result);
  }
}

function isClosing(error: unknown): boolean {
  return error instanceof OncekeyError && (error.code === "oncekey_closed" || error.code === "idempotency_closing");
}

function answer(status: number, text: string, result: WebhookResult, retryAfterMs?: number): WebhookAnswer {
  const headers = {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    ...(retryAfterMs === undefined ? {} : { "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) }),
  };
  return { status, headers, body: new TextEncoder().encode(`${text}\n`), result };
}
