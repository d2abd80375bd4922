export type { WebhookEvent, WebhookOptions, WebhookStep } from "./endpoint.ts";
export { type GithubWebhooksOptions, githubWebhooks } from "./github.ts";
export { fetchWebhook, type NodeWebhookRequest, nodeWebhook, type TenantOf } from "./handlers.ts";
export type { ReadHeader, WebhookHeaders } from "./headers.ts";
export { type HmacSigning, type HmacWebhooksOptions, hmacWebhooks } from "./hmac.ts";
export type { RefusalReason, SignedRequest, Verification, WebhookScheme, WebhookSecret } from "./scheme.ts";
export { type StandardWebhooksOptions, standardWebhooks } from "./standard.ts";
export { stripeWebhooks } from "./stripe.ts";
export {
  createWebhook,
  type IncomingWebhook,
  type Webhook,
  type WebhookAnswer,
  type WebhookResult,
} from "./webhook.ts";
