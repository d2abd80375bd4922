import type { IncomingMessage, ServerResponse } from "node:http";
import { OncekeyError } from "../../core/errors.ts";
import type { Webhook, WebhookAnswer } from "./webhook.ts";

/** Whose endpoint a request came to: from its route or host, never from its body. */
export type TenantOf<Request> = (request: Request) => string | Promise<string>;

/** The webhook as a Fetch handler: `Request` in, `Response` out. Rejects with what `receive` raises. */
export function fetchWebhook(webhook: Webhook, tenantOf: TenantOf<Request>): (request: Request) => Promise<Response> {
  return async (request) => {
    const tenant = await tenantOf(request);
    const body = await boundedBody(request, webhook.internals.maxBodyBytes);
    const { status, headers, body: text } = await webhook.receive({ tenant, headers: request.headers, body });
    return new Response(Uint8Array.from(text).buffer, { status, headers });
  };
}

/** Reads one byte beyond the limit at most: enough for `receive` to see that it is too large. */
async function boundedBody(request: Request, limitBytes: number): Promise<Uint8Array> {
  if (request.bodyUsed) throw consumed();
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    chunks.push(read.value);
    size += read.value.length;
    if (size <= limitBytes) continue;
    reader?.cancel().catch(() => {});
    break;
  }
  return new Uint8Array(Buffer.concat(chunks));
}

/** What is used of a request of Node's http server, or of Express (4 and 5). */
export interface NodeWebhookRequest extends IncomingMessage {
  /** The bytes, where an earlier parser kept them. */
  readonly rawBody?: unknown;
  /** The bytes, where `express.raw()` came first. */
  readonly body?: unknown;
}

/**
 * The webhook as a handler for Node's http server and for Express. It reads the raw bytes itself: mount it before
 * `express.json()`, or let that keep them in `req.rawBody`. What `receive` raises goes to `next`; without one it is told to
 * the instance's `onError` and answered 500.
 */
export function nodeWebhook<Req extends NodeWebhookRequest>(
  webhook: Webhook,
  tenantOf: TenantOf<Req>,
): (req: Req, res: ServerResponse, next?: (error: unknown) => void) => void {
  return (req, res, next) => {
    receiveNode(webhook, tenantOf, req).then(
      (answer) => write(req, res, answer),
      (error: unknown) => (next === undefined ? write(req, res, webhook.internals.failed(error)) : next(error)),
    );
  };
}

async function receiveNode<Req extends NodeWebhookRequest>(
  webhook: Webhook,
  tenantOf: TenantOf<Req>,
  req: Req,
): Promise<WebhookAnswer> {
  // Asked for together with the body: a stream that nobody listens to may end unheard.
  const [tenant, body] = await Promise.all([tenantOf(req), rawBody(req, webhook.internals.maxBodyBytes)]);
  return webhook.receive({ tenant, headers: req.headers, body });
}

async function rawBody(req: NodeWebhookRequest, limitBytes: number): Promise<Uint8Array> {
  for (const kept of [req.rawBody, req.body]) if (kept instanceof Uint8Array) return kept;
  // Flowing with nothing read yet: another reader listens and will take the bytes away from us.
  if (req.readableDidRead || req.readableEnded || req.readableFlowing === true) throw consumed();
  // Its end was told before anybody listened, and is never told again.
  if (req.destroyed) throw incomplete();
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const settle = (give: () => void) => {
      req.off("data", take).off("end", ended).off("error", broken).off("close", broken);
      give();
    };
    const ended = () => settle(() => resolve(Buffer.concat(chunks)));
    const broken = () => settle(() => reject(incomplete()));
    const take = (chunk: Uint8Array) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > limitBytes) settle(() => resolve(Buffer.concat(chunks)));
    };
    req.on("data", take).on("end", ended).on("error", broken).on("close", broken);
  });
}

function write(req: IncomingMessage, res: ServerResponse, { status, headers, body }: WebhookAnswer): void {
  // A middleware's time-out has answered: the next delivery meets what this one did.
  if (res.headersSent) return;
  // Nothing of the rest is wanted, and the connection cannot be used again while it is still coming.
  if (!req.complete) res.setHeader("connection", "close");
  res.writeHead(status, headers).end(body);
  req.resume();
}

function consumed(): OncekeyError {
  return new OncekeyError(
    "oncekey_body_consumed",
    "Another parser read the webhook's body, so its signature cannot be checked. Nothing was accepted or stored. Mount the webhook before that parser, or let it keep the bytes in req.rawBody.",
  );
}

function incomplete(): OncekeyError {
  return new OncekeyError(
    "idempotency_request_invalid",
    "The connection broke before the webhook's body was complete. Nothing was accepted or stored. The provider will deliver it again.",
  );
}
