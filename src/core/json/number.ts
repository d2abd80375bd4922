/**
 * An exact decimal number: `digits` × 10^`exponent`, negated where `negative`. Normal form: digits without leading or
 * trailing zeros, and zero (also "-0") is `{ negative: false, digits: "0", exponent: 0 }`. Equal numbers have equal parts,
 * however they were written: 1, 1.0, 1e0 and 10e-1 are one number.
 */
export interface Decimal {
  readonly negative: boolean;
  readonly digits: string;
  readonly exponent: number;
}

const ZERO = 0x30;

/** Normalises digits and exponent. Loops, not `/0+$/`: that expression takes quadratic time on "000…01". */
export function decimal(negative: boolean, digits: string, exponent: number): Decimal {
  let start = 0;
  while (digits.charCodeAt(start) === ZERO) start++;
  if (start === digits.length) return { negative: false, digits: "0", exponent: 0 };
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === ZERO) end--;
  return { negative, digits: digits.slice(start, end), exponent: exponent + digits.length - end };
}

/** The exact decimal of an integer. */
export function integerDecimal(value: bigint): Decimal {
  const text = value.toString();
  return value < 0n ? decimal(true, text.slice(1), 0) : decimal(false, text, 0);
}

// ECMAScript's Number::toString (RFC 8785 §3.2.2.3) spells a number out while its point stands within these places.
const MAX_WHOLE_DIGITS = 21;
const MAX_LEADING_ZEROS = 6;

/**
 * The one text of an exact decimal: ECMAScript's Number::toString, applied to all digits instead of a double's. So it is
 * RFC 8785's text for every number that a double holds, exact for all others, and never longer than the digits + 26.
 */
export function decimalText(value: Decimal): string {
  const { digits, exponent } = value;
  const sign = value.negative ? "-" : "";
  const point = digits.length + exponent;
  if (exponent >= 0 && point <= MAX_WHOLE_DIGITS) return sign + digits + "0".repeat(exponent);
  if (point > 0 && point <= MAX_WHOLE_DIGITS) return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
  if (point > -MAX_LEADING_ZEROS && point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
  return `${sign}${digits.charAt(0)}${fraction}e${point > 0 ? "+" : "-"}${Math.abs(point - 1)}`;
}
