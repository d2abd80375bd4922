import { OncekeyError } from "../../core/errors.ts";
import { dead, delivered, type OutboxMessage, type Published, type Publisher, retry } from "../publisher.ts";
import { afterMsOf } from "./_retry-after.ts";
import { signatures, type WebhookSecret } from "./_standard-webhooks.ts";

export type { WebhookSecret } from "./_standard-webhooks.ts";

/** Where a message goes, and whose secret signs it. */
export interface WebhookEndpoint {
  /** `https:` (or `http:`). Where customers choose it, see the page on server-side request forgery in docs/outbox.md. */
  readonly url: string | URL;
  /** Newest first. Several during a rotation: each signs, and the receiver accepts whichever it has. */
  readonly secrets: readonly WebhookSecret[];
  /** Further request headers. Those that Oncekey sets itself cannot be changed. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** How webhooks are sent. */
export interface WebhookPublisherOptions {
  /**
   * The endpoint of the message's tenant, looked up for every delivery; `null`: nobody wants the message, and it counts
   * as delivered. A throw is a retry.
   */
  endpoint(message: OutboxMessage): WebhookEndpoint | null | Promise<WebhookEndpoint | null>;
  /** Told that the endpoint answered 410: switch the subscription off. A throw is a retry. */
  onGone?(message: OutboxMessage): void | Promise<void>;
  /**
   * What is sent. `envelope` (default): `{"type": topic, "timestamp": …, "data": payload}` as Standard Webhooks has it,
   * the same bytes on every attempt; `payload`: the payload alone. Numbers keep their digits in both.
   */
  readonly body?: "envelope" | "payload";
  /** Longest time until the answer's headers, in milliseconds; the relay's own time-out counts too. Default 10,000. */
  readonly timeoutMs?: number;
  /** For an egress proxy or an agent of your own. Must not follow redirects. Default: the global one. */
  readonly fetch?: typeof fetch;
  /** Default `webhook`. */
  readonly name?: string;
}

/** An answer's body is of no use; so much is read to keep the connection, then it is cut. */
const MOST_READ_BYTES = 16_384;
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Sends messages as HTTP requests with the signature of Standard Webhooks (`webhook-id`: the message's id, the same on
 * every attempt; `webhook-timestamp`; `webhook-signature`). 2xx is delivered; 410 and 413 are dead; everything else is tried
 * again, after `Retry-After` where that is given. Redirects are not followed. Raises `oncekey_config_invalid` for bad
 * options; a delivery raises `oncekey_webhook_invalid` for an endpoint that cannot be signed for or sent to.
 */
export function webhookPublisher(options: WebhookPublisherOptions): Publisher {
  const { timeoutMs = 10_000, name = "webhook" } = options;
  checkOptions(options);
  return {
    name,
    async publish(message, signal) {
      const endpoint = await options.endpoint(message);
      if (endpoint === null) return delivered();
      const request = requestOf(message, endpoint, options.body ?? "envelope");
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const answer = await answerOf(options.fetch ?? fetch, request, bounded);
      return "kind" in answer ? answer : publishedBy(answer, message, options);
    },
  };
}

interface WebhookRequest {
  readonly url: URL;
  readonly headers: Headers;
  readonly body: string;
}

function requestOf(message: OutboxMessage, endpoint: WebhookEndpoint, form: "envelope" | "payload"): WebhookRequest {
  const url = urlOf(endpoint.url);
  const body = form === "payload" ? message.payload : envelope(message);
  const timestamp = Math.floor(Date.now() / 1_000);
  const headers = headersOf(endpoint.headers ?? {});
  headers.set("content-type", "application/json");
  headers.set("webhook-id", message.id);
  headers.set("webhook-timestamp", String(timestamp));
  headers.set("webhook-signature", signatures(endpoint.secrets, `${message.id}.${timestamp}.${body}`));
  if (isTraceparent(message.correlation)) headers.set("traceparent", message.correlation);
  return { url, headers, body };
}

/** Written around the payload's own text: parsing it would lose digits. */
function envelope({ topic, createdAt, payload }: OutboxMessage): string {
  return `{"type":${JSON.stringify(topic)},"timestamp":"${createdAt.toISOString()}","data":${payload}}`;
}

async function answerOf(
  send: typeof fetch,
  { url, headers, body }: WebhookRequest,
  signal: AbortSignal,
): Promise<Response | Published> {
  try {
    return await send(url, { method: "POST", headers, body, redirect: "manual", signal });
  } catch (error) {
    // What the client says may name the address, which is the tenant's; a code does not.
    return retry(`the endpoint gave no answer (${codeOf(error)})`);
  }
}

async function publishedBy(
  answer: Response,
  message: OutboxMessage,
  { onGone }: WebhookPublisherOptions,
): Promise<Published> {
  // Not waited for: the status says it all, and a body that trickles must not hold the relay's place.
  drain(answer.body).catch(() => {});
  if (answer.ok) return delivered();
  if (answer.status === 410) {
    await onGone?.(message);
    return dead("the endpoint is gone (410)");
  }
  const afterMs = afterMsOf(answer.headers);
  // RFC 9110, 15.5.14: only where the condition is temporary does it say when to come again. The bytes never change.
  if (answer.status === 413 && afterMs === undefined) return dead("the endpoint says that it is too large (413)");
  // A client that hides redirects gives 0.
  const redirected = answer.status === 0 || (answer.status >= 300 && answer.status < 400);
  const why = redirected ? "the endpoint redirects, which is not followed" : `the endpoint answered ${answer.status}`;
  return retry(why, afterMs);
}

async function drain(body: Response["body"]): Promise<void> {
  if (body === null) return;
  const reader = body.getReader();
  let read = 0;
  while (read < MOST_READ_BYTES) {
    const { done, value } = await reader.read();
    if (done) return;
    read += value.byteLength;
  }
  await reader.cancel();
}

function urlOf(given: string | URL): URL {
  const url = URL.canParse(String(given)) ? new URL(given) : null;
  if (url === null || !["http:", "https:"].includes(url.protocol)) throw refused("its url is not http(s)");
  if (url.username !== "" || url.password !== "") throw refused("its url holds credentials; give them as headers");
  return url;
}

function headersOf(given: Readonly<Record<string, string>>): Headers {
  try {
    return new Headers(given);
  } catch {
    // Not handed on as the cause: it quotes the value.
    throw refused("a header has a malformed name or value");
  }
}

function isTraceparent(correlation: string | null): correlation is string {
  return correlation !== null && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(correlation);
}

/** The network's code, which fetch hides behind a TypeError, or that the time was up. */
function codeOf(error: unknown): string {
  const { name, code, cause } = (error ?? {}) as { name?: unknown; code?: unknown; cause?: { code?: unknown } };
  if (name === "TimeoutError") return "time-out";
  const known = [cause?.code, code].find((one) => typeof one === "string" && /^[A-Z][A-Z0-9_]{1,60}$/.test(one));
  return typeof known === "string" ? known : "no connection";
}

function checkOptions({ endpoint, body, timeoutMs = 1 }: WebhookPublisherOptions): void {
  const soundTimeout = Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= LONGEST_TIMEOUT_MS;
  if (typeof endpoint === "function" && soundTimeout && ["envelope", "payload", undefined].includes(body)) return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    "webhookPublisher needs endpoint (a function), timeoutMs from 1, and body envelope or payload. Nothing was started.",
  );
}

function refused(why: string): OncekeyError {
  return new OncekeyError(
    "oncekey_webhook_invalid",
    `The endpoint of a webhook cannot be used: ${why}. The message was kept and is tried again; correct what endpoint() gives.`,
  );
}
