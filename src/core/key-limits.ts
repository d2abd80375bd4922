import type { KeyForm } from "./intent.ts";

/** What one provider takes as an idempotency key. */
export interface KeyLimit {
  /** Where the key travels. */
  readonly carrier: string;
  readonly maxLength: number;
  /** The characters it documents, as the source of a regular expression for the whole key. */
  readonly characters: string;
  /** The `keyForm` that stays within the limit, the one with the most bits first. */
  readonly form: KeyForm;
}

/** Any character that a header carries safely. */
const VISIBLE_ASCII = "[\\x21-\\x7e]+";
const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/**
 * The limits that providers document for their keys, and the `keyForm` that fits each. Read in their public documentation
 * in 2026; where one says different things for different requests the narrowest stands here. A provider that is missing:
 * `uuid` is what most examples show.
 */
export const providerKeyLimits = {
  stripe: { carrier: "Idempotency-Key", maxLength: 255, characters: VISIBLE_ASCII, form: "base64url" },
  adyen: { carrier: "Idempotency-Key", maxLength: 64, characters: VISIBLE_ASCII, form: "base64url" },
  /** Some of its requests take 108; 38 is safe for all of them. */
  paypal: { carrier: "PayPal-Request-Id", maxLength: 38, characters: VISIBLE_ASCII, form: "uuid" },
  /** CreatePayment; other requests take 64 to 192. */
  square: { carrier: "idempotency_key in the body", maxLength: 45, characters: VISIBLE_ASCII, form: "base64url" },
  awsEc2: { carrier: "ClientToken", maxLength: 64, characters: "[\\x00-\\x7f]+", form: "base64url" },
  awsSqs: {
    carrier: "MessageDeduplicationId",
    maxLength: 128,
    characters: "[A-Za-z0-9!-/:-@\\[-`{-~]+",
    form: "base64url",
  },
  worldline: { carrier: "X-GCS-Idempotence-Key", maxLength: 40, characters: VISIBLE_ASCII, form: "uuid" },
  amazonPay: { carrier: "x-amz-pay-idempotency-key", maxLength: 32, characters: "[A-Za-z0-9_-]+", form: "hex" },
  razorpayX: { carrier: "X-Payout-Idempotency", maxLength: 36, characters: "[A-Za-z0-9_ -]{4,}", form: "uuid" },
  /** AIP-155; the zero UUID is refused. */
  google: { carrier: "request_id", maxLength: 36, characters: UUID, form: "uuid" },
  azure: { carrier: "Repeatability-Request-ID", maxLength: 36, characters: UUID, form: "uuid" },
} as const satisfies Record<string, KeyLimit>;
