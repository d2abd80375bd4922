import { OncekeyError } from "../errors.ts";
import { type Decimal, decimal } from "./number.ts";

/** What a JSON body may hold. Everything beyond is refused before any claim. */
export interface JsonLimits {
  /** Deepest nesting of arrays and objects, 1–1000. Default 64. */
  readonly maxDepth: number;
  /** Most digits of one number. Default 1,000. */
  readonly maxDigits: number;
  /** Largest exponent of one number, either sign. Default 10,000. */
  readonly maxExponent: number;
  /** Whether strings may hold U+0000. Default `false`: PostgreSQL's text and jsonb cannot store it. */
  readonly allowNul: boolean;
}

/** A position in a JSON text. Each `scan…` function reads one token and moves past it. */
export interface Scanner {
  readonly text: string;
  readonly limits: JsonLimits;
  at: number;
}

/** Refuses the text. Says where and why, never what stands there. */
export function refuse(at: number, why: string): never {
  throw new OncekeyError(
    "idempotency_request_invalid",
    `The JSON body is not acceptable at character ${at}: ${why}. Nothing was run or stored. Correct the body and send it again with the same key.`,
  );
}

/** Moves past insignificant whitespace (RFC 8259 §2: these four only). */
export function skipSpace(scanner: Scanner): void {
  for (;;) {
    const char = scanner.text.charCodeAt(scanner.at);
    if (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09) return;
    scanner.at++;
  }
}

/** Moves past one expected character. */
export function expect(scanner: Scanner, char: string): void {
  if (scanner.text[scanner.at] !== char) refuse(scanner.at, `expected "${char}"`);
  scanner.at++;
}

/** Moves past `true`, `false` or `null`; gives `undefined` where none of them stands. */
export function scanLiteral(scanner: Scanner): true | false | null | undefined {
  for (const [word, value] of LITERALS) {
    if (!scanner.text.startsWith(word, scanner.at)) continue;
    scanner.at += word.length;
    return value;
  }
  return undefined;
}

const LITERALS: readonly (readonly [string, true | false | null])[] = [
  ["true", true],
  ["false", false],
  ["null", null],
];

/** Reads a number as an exact decimal (RFC 8259 §6), within the limits and without ever expanding its exponent. */
export function scanNumber(scanner: Scanner): Decimal {
  const { text, limits } = scanner;
  const start = scanner.at;
  const negative = text[start] === "-";
  if (negative) scanner.at++;
  const leadingZero = text[scanner.at] === "0";
  const whole = scanDigits(scanner);
  if (leadingZero && whole.length > 1) refuse(start, "a number has a leading zero");
  let fraction = "";
  if (text[scanner.at] === ".") {
    scanner.at++;
    fraction = scanDigits(scanner);
  }
  if (whole.length + fraction.length > limits.maxDigits) refuse(start, "a number has too many digits");
  return decimal(negative, whole + fraction, scanExponent(scanner, start) - fraction.length);
}

function scanDigits(scanner: Scanner): string {
  const start = scanner.at;
  for (;;) {
    const char = scanner.text.charCodeAt(scanner.at);
    if (!(char >= 0x30 && char <= 0x39)) break;
    scanner.at++;
  }
  if (scanner.at === start) refuse(start, "expected a digit");
  return scanner.text.slice(start, scanner.at);
}

function scanExponent(scanner: Scanner, start: number): number {
  const { text, limits } = scanner;
  if (text[scanner.at] !== "e" && text[scanner.at] !== "E") return 0;
  scanner.at++;
  const sign = text[scanner.at];
  if (sign === "+" || sign === "-") scanner.at++;
  const digits = scanDigits(scanner);
  // Number() of a very long run of digits is Infinity, which the limit refuses too.
  if (digits.length > 20 || Number(digits) > limits.maxExponent) refuse(start, "a number has too large an exponent");
  return sign === "-" ? -Number(digits) : Number(digits);
}

/** Reads a string, unescaped (RFC 8259 §7). Refuses lone surrogates, control characters and, by default, U+0000. */
export function scanString(scanner: Scanner): string {
  const { text, limits } = scanner;
  const start = scanner.at;
  expect(scanner, '"');
  let out = "";
  for (;;) {
    out += scanPlain(scanner);
    const stop = text[scanner.at];
    if (stop === '"') break;
    if (stop !== "\\")
      refuse(scanner.at, stop === undefined ? "a string does not end" : "a control character stands in a string");
    out += scanEscape(scanner);
  }
  scanner.at++;
  if (!out.isWellFormed()) refuse(start, "a string holds a lone surrogate");
  if (!limits.allowNul && out.includes("\0"))
    refuse(start, "a string holds the NUL character (U+0000), which cannot be stored");
  return out;
}

function scanPlain(scanner: Scanner): string {
  const start = scanner.at;
  for (;;) {
    const char = scanner.text.charCodeAt(scanner.at);
    // Also stops at the end of the text, where charCodeAt gives NaN.
    if (!(char >= 0x20) || char === 0x22 || char === 0x5c) return scanner.text.slice(start, scanner.at);
    scanner.at++;
  }
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

function scanEscape(scanner: Scanner): string {
  const letter = scanner.text.charAt(scanner.at + 1);
  const short = ESCAPES.get(letter);
  if (short !== undefined) {
    scanner.at += 2;
    return short;
  }
  const hex = scanner.text.slice(scanner.at + 2, scanner.at + 6);
  if (letter !== "u" || !/^[0-9a-fA-F]{4}$/.test(hex)) refuse(scanner.at, "an escape is malformed");
  scanner.at += 6;
  return String.fromCharCode(Number.parseInt(hex, 16));
}
