import * as z from "zod";
import { isFormRequest } from "./form-request.ts";

const DIGITS = /^[1-9]\d{0,29}$/;
const LIMIT = 10n ** 30n;

/**
 * An amount in the currency's minor unit: a positive integer, exact however many digits it has. Oncekey hands over JSON
 * integers beyond 2^53 as `bigint`; a form only has text, so its digits are read here. JSON text is refused: a client
 * that sends "100" for 100 has a bug worth hearing about.
 */
export const amountMinor = z
  .preprocess(
    (value) => (isFormRequest() && typeof value === "string" && DIGITS.test(value) ? BigInt(value) : value),
    z.union([z.int().positive(), z.bigint().positive().lt(LIMIT)]),
  )
  .transform((amount) => BigInt(amount));

/** Three letters (ISO 4217), in either case. */
export const currency = z.string().regex(/^[A-Za-z]{3}$/, "must be three letters");

/** An identifier or token: 1 to 255 characters, none of them a control character. */
export const label = z
  .string()
  .min(1)
  .max(255)
  .regex(/^\P{Cc}*$/u, "must not hold control characters");
