import type { Answered } from "../profile.ts";
import { refusalRetry, stripeProfile } from "./_stripe.ts";

/**
 * Stripe's API v1 ("Idempotent requests", "Advanced error handling"). Documented: header, 255 characters, POST only, keys
 * of the account, parameters and endpoint compared, status and body of whatever came once the work had begun are kept (500s
 * too) for at least 24 hours, `Idempotent-Replayed`, `Stripe-Should-Retry`. Chosen: see `_stripe.ts` and docs/dialects/stripe.md.
 */
export const stripe = stripeProfile({
  name: "stripe",
  key: { place: { in: "header", name: "idempotency-key" }, required: false, ignoredOn: ["DELETE"] },
  provisional: "replayed",
  afterFailure: "replay",
  retentionMs: 24 * 3_600_000,
  retry: retryOf,
});

/** A kept 5xx is what each retry would get again: "false". One of which nothing is kept had not begun: "true". */
function retryOf(answered: Answered): string | null {
  if (answered.kind === "refused") return refusalRetry(answered);
  if (answered.status < 500) return null;
  return answered.kind === "not_begun" ? "true" : "false";
}
