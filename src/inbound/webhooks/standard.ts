import {
  bytesKey,
  hmacScheme,
  instantOf,
  memberOf,
  secondsText,
  type WebhookScheme,
  type WebhookSecret,
  webhookInvalid,
} from "./scheme.ts";

/** How Standard Webhooks are read. */
export interface StandardWebhooksOptions {
  /** First part of the three header names. `svix` for senders that kept the older names. Default `webhook`. */
  readonly headerPrefix?: string;
  /** How long the sender goes on redelivering, in milliseconds. Default 271,800,000: the 75.5 h of the specification's example. */
  readonly redeliversForMs?: number;
}

const PREFIX = "whsec_";

/**
 * Standard Webhooks 1.0 (`webhook-id`, `webhook-timestamp`, `webhook-signature`), symmetric signatures `v1`. The id and
 * the timestamp are signed. Secrets are base64, with or without `whsec_`.
 */
export function standardWebhooks(options: StandardWebhooksOptions = {}): WebhookScheme {
  const { headerPrefix = "webhook", redeliversForMs = 75.5 * 3_600_000 } = options;
  return hmacScheme({
    name: "Standard Webhooks",
    redeliversForMs,
    algorithm: "sha256",
    encoding: "base64",
    key: base64Key,
    claim(header, body) {
      const id = header(`${headerPrefix}-id`);
      const timestamp = header(`${headerPrefix}-timestamp`);
      const signature = header(`${headerPrefix}-signature`);
      if (!id || !timestamp || !signature) return "header_missing";
      const timestampMs = secondsText(timestamp);
      const versioned = signature.split(" ").filter((one) => one.startsWith("v1,"));
      // A dot in the id would let id and timestamp be cut apart elsewhere (specification, "webhook-id").
      if (timestampMs === null || versioned.length === 0 || id.includes(".")) return "header_malformed";
      const signatures = versioned.map((one) => one.slice("v1,".length));
      return { kind: "claim", signatures, signed: [`${id}.${timestamp}.`, body], timestampMs };
    },
    facts: (payload, header) => ({
      id: header(`${headerPrefix}-id`),
      type: memberOf(payload, "type"),
      occurredAt: instantOf(memberOf(payload, "timestamp")),
    }),
  });
}

function base64Key(secret: WebhookSecret): Uint8Array {
  if (typeof secret !== "string") return bytesKey(secret);
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw webhookInvalid("A Standard Webhooks secret is not base64");
  return new Uint8Array(Buffer.from(text, "base64"));
}
