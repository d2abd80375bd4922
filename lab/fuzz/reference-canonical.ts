import { type Fraction, powerOfTen, type ReferenceObject, type ReferenceValue } from "./reference-json.ts";

/** Whether two fractions are one number: multiplied crosswise, no digit is looked at. */
export function sameNumber(a: Fraction, b: Fraction): boolean {
  return a.numerator * powerOfTen(b.decimals) === b.numerator * powerOfTen(a.decimals);
}

/** Whether two values are equal: members in any order, numbers by their value. */
export function sameValue(a: ReferenceValue, b: ReferenceValue): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, at) => sameValue(one, b[at]));
  if (a instanceof Map && b instanceof Map) {
    return a.size === b.size && [...a].every(([name, one]) => b.has(name) && sameValue(one, b.get(name)));
  }
  return isFraction(a) && isFraction(b) ? sameNumber(a, b) : a === b;
}

/** Whether a value is a number. */
export function isFraction(value: ReferenceValue): value is Fraction {
  return typeof value === "object" && value !== null && "numerator" in value;
}

/** The canonical text (RFC 8785, with exact numbers). */
export function referenceCanonical(value: ReferenceValue): string {
  if (typeof value === "string") return quoted(value);
  if (value === null || typeof value === "boolean") return String(value);
  if (isFraction(value)) return numberText(value);
  if (value instanceof Map) return objectText(value);
  return `[${(value as readonly ReferenceValue[]).map(referenceCanonical).join()}]`;
}

function objectText(value: ReferenceObject): string {
  const names = [...value.keys()].sort(byCodeUnits);
  return `{${names.map((name) => `${quoted(name)}:${referenceCanonical(value.get(name) ?? null)}`).join()}}`;
}

// Big-endian UTF-16 sorts as its bytes do.
function byCodeUnits(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a, "utf16le").swap16(), Buffer.from(b, "utf16le").swap16());
}

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\f": "\\f",
  "\r": "\\r",
};

function quoted(text: string): string {
  const escaped = [...text].map((char) => {
    const code = char.charCodeAt(0);
    return SHORT[char] ?? (code < 0x20 ? `\\u00${code < 16 ? "0" : ""}${code.toString(16)}` : char);
  });
  return `"${escaped.join("")}"`;
}

/** The digits of a fraction, none of them a trailing zero, and the power of ten that goes with them. */
export function digitsOf({ numerator, decimals }: Fraction): { digits: bigint; power: number } {
  let digits = numerator < 0n ? -numerator : numerator;
  let power = -decimals;
  if (digits === 0n) return { digits, power: 0 };
  // Halving steps: one zero at a time would take a minute for 1e10000.
  for (let step = 16_384; step > 0; step >>= 1) {
    const tens = powerOfTen(step);
    while (digits >= tens && digits % tens === 0n) {
      digits /= tens;
      power += step;
    }
  }
  return { digits, power };
}

// ECMA-262 Number::toString, step by step: k digits s, with s × 10^(n−k).
function numberText(fraction: Fraction): string {
  const { digits, power } = digitsOf(fraction);
  if (digits === 0n) return "0";
  const s = digits.toString();
  const k = s.length;
  const n = k + power;
  const sign = fraction.numerator < 0n ? "-" : "";
  if (k <= n && n <= 21) return sign + s.padEnd(n, "0");
  if (0 < n && n <= 21) return `${sign}${s.slice(0, n)}.${s.slice(n)}`;
  if (-6 < n && n <= 0) return `${sign}0.${s.padStart(k - n, "0")}`;
  const exponent = `e${n - 1 < 0 ? "-" : "+"}${Math.abs(n - 1)}`;
  return k === 1 ? sign + s + exponent : `${sign}${s.slice(0, 1)}.${s.slice(1)}${exponent}`;
}
