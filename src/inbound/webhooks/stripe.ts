import { hmacScheme, instantOf, memberOf, secondsText, textKey, type WebhookScheme } from "./scheme.ts";

const THREE_DAYS_MS = 3 * 24 * 3_600_000;

/**
 * Stripe's webhooks (`Stripe-Signature: t=…,v1=…`). Secrets as Stripe shows them, `whsec_` included. The id is the event's
 * own, which is signed; in live mode Stripe redelivers for three days.
 */
export function stripeWebhooks(): WebhookScheme {
  return hmacScheme({
    name: "Stripe",
    redeliversForMs: THREE_DAYS_MS,
    algorithm: "sha256",
    encoding: "hex",
    key: textKey,
    claim(header, body) {
      const line = header("stripe-signature");
      if (!line) return "header_missing";
      const items = line.split(",").map((item) => item.trim());
      const valuesOf = (name: string) =>
        items.filter((item) => item.startsWith(`${name}=`)).map((item) => item.slice(name.length + 1));
      const [timestamp, another] = valuesOf("t");
      const timestampMs = secondsText(timestamp ?? "");
      // Only v1: an older version that somebody could still forge must not count (Stripe's own v0 is for tests).
      const signatures = valuesOf("v1");
      if (timestampMs === null || another !== undefined || signatures.length === 0) return "header_malformed";
      return { kind: "claim", signatures, signed: [`${timestamp}.`, body], timestampMs };
    },
    facts: (payload) => ({
      id: memberOf(payload, "id"),
      type: memberOf(payload, "type"),
      occurredAt: instantOf(memberOf(payload, "created")),
    }),
  });
}
