import { createHmac } from "node:crypto";
import { OncekeyError } from "../../core/errors.ts";

/** `whsec_` and base64, as Standard Webhooks writes it, or the bytes themselves. */
export type WebhookSecret = string | Uint8Array;

const PREFIX = "whsec_";
/** Standard Webhooks: 24 to 64 bytes. Longer ones do no harm. */
const SHORTEST_SECRET = 24;

/**
 * The value of `webhook-signature`: one `v1` signature (HMAC-SHA256, base64) a secret, separated by spaces. Raises
 * `oncekey_webhook_invalid` where there is no secret, or a malformed or short one.
 */
export function signatures(secrets: readonly WebhookSecret[], content: string): string {
  if (!Array.isArray(secrets) || secrets.length === 0) throw refused("it has no secret");
  const sign = (secret: WebhookSecret) => createHmac("sha256", secretBytes(secret)).update(content).digest("base64");
  return secrets.map((secret) => `v1,${sign(secret)}`).join(" ");
}

function secretBytes(secret: WebhookSecret): Uint8Array {
  const bytes = typeof secret === "string" ? decoded(secret) : secret;
  if (!(bytes instanceof Uint8Array)) throw refused("a secret is neither text nor bytes");
  if (bytes.length < SHORTEST_SECRET) throw refused(`a secret is shorter than ${SHORTEST_SECRET} bytes`);
  return bytes;
}

function decoded(secret: string): Uint8Array {
  const base64 = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : "";
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) throw refused(`a secret as text is ${PREFIX} and base64`);
  return Buffer.from(base64, "base64");
}

function refused(why: string): OncekeyError {
  return new OncekeyError(
    "oncekey_webhook_invalid",
    `A webhook cannot be signed: ${why}. The message was kept and is tried again; correct what endpoint() gives.`,
  );
}
