import type { Answered } from "../profile.ts";
import { refusalRetry, stripeProfile } from "./_stripe.ts";

/**
 * Stripe's API v2 ("API v2 overview", idempotency). Documented: header, POST and DELETE, 30 days, keys of the account or
 * sandbox; what succeeded is not repeated, what failed is carried out again under the same key and answered anew. Chosen,
 * where Stripe is silent: all else as in v1; a key on another API is refused, not run.
 */
export const stripeV2 = stripeProfile({
  name: "stripe-v2",
  key: { place: { in: "header", name: "idempotency-key" }, required: false },
  provisional: "refused",
  afterFailure: "runAgain",
  retentionMs: 30 * 86_400_000,
  retry: retryOf,
});

/** A failure is worth another try: it runs again. Only one that is replayed after all (the operation's choice) is not. */
function retryOf(answered: Answered): string | null {
  if (answered.kind === "refused") return refusalRetry(answered);
  return answered.kind === "replayed" && answered.status >= 500 ? "false" : null;
}
