import { contentId } from "../../core/delivery.ts";
import { hmacScheme, textKey, type WebhookScheme } from "./scheme.ts";

const THREE_DAYS_MS = 3 * 24 * 3_600_000;

/** How GitHub's webhooks are read. */
export interface GithubWebhooksOptions {
  /**
   * `delivery` (default): `X-GitHub-Delivery`, the same when a delivery is sent again. GitHub signs neither this header nor
   * a time, so whoever has seen one signed body can send it under other ids; `content` makes the id from the signed body,
   * and two deliveries with equal bodies are then one event.
   */
  readonly id?: "delivery" | "content";
}

/**
 * GitHub's webhooks (`X-Hub-Signature-256`), content type `application/json`. GitHub redelivers nothing by itself; by hand
 * it can be done for three days. There is no timestamp, so `toleranceMs` has no effect.
 */
export function githubWebhooks({ id = "delivery" }: GithubWebhooksOptions = {}): WebhookScheme {
  return hmacScheme({
    name: "GitHub",
    redeliversForMs: THREE_DAYS_MS,
    algorithm: "sha256",
    encoding: "hex",
    key: textKey,
    claim(header, body) {
      const signature = header("x-hub-signature-256");
      if (!signature || !header("x-github-delivery")) return "header_missing";
      if (!signature.startsWith("sha256=")) return "header_malformed";
      return { kind: "claim", signatures: [signature.slice("sha256=".length)], signed: [body], timestampMs: null };
    },
    facts: (_payload, header, body) => ({
      id: id === "content" ? contentId(body) : header("x-github-delivery"),
      type: header("x-github-event"),
      occurredAt: null,
    }),
  });
}
