/**
 * What a JSON text means, worked out another way than `src/core/json` does: tokens by regular expressions, a stack in place
 * of recursion, numbers as fractions of two integers. Slow on purpose, and exact.
 */

/** A number as `numerator` / 10^`decimals`: not reduced, compare by `sameNumber`. */
export interface Fraction {
  readonly numerator: bigint;
  /** 0 or more. */
  readonly decimals: number;
}

const powers = new Map<number, bigint>();

/** 10^`exponent`, remembered: the large ones take long to make. */
export function powerOfTen(exponent: number): bigint {
  const known = powers.get(exponent);
  if (known !== undefined) return known;
  const made = 10n ** BigInt(exponent);
  if (powers.size < 2_000) powers.set(exponent, made);
  return made;
}

/** A JSON value; objects as maps, numbers as fractions. */
export type ReferenceValue = null | boolean | string | Fraction | readonly ReferenceValue[] | ReferenceObject;
/** Members by their names. */
export type ReferenceObject = ReadonlyMap<string, ReferenceValue>;

/** What the reference refuses by its limits, as the parser's own defaults have it. */
export interface ReferenceLimits {
  readonly maxDepth: number;
  readonly maxDigits: number;
  readonly maxExponent: number;
  readonly allowNul: boolean;
}

/** The parser's documented defaults. */
export const REFERENCE_LIMITS: ReferenceLimits = {
  maxDepth: 64,
  maxDigits: 1_000,
  maxExponent: 10_000,
  allowNul: false,
};

interface Open {
  /** `null`: an array. */
  readonly names: string[] | null;
  readonly values: ReferenceValue[];
}

const TOKEN =
  /[\t\n\r ]*(?:([[\]{}:,])|(true|false|null)|"((?:[ !#-[\]-\u{10ffff}]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)"|(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?|($))/uy;

/** The value of a text; `undefined`: it is none, or beyond the limits. */
export function referenceJson(bytes: Uint8Array, limits = REFERENCE_LIMITS): ReferenceValue | undefined {
  const text = utf8Text(bytes);
  if (text === undefined) return undefined;
  const tokens = tokensOf(text.startsWith("\ufeff") ? text.slice(1) : text, limits);
  return tokens === undefined ? undefined : readTokens(tokens, limits.maxDepth);
}

/** The text of UTF-8 bytes, `undefined` where they are none. */
export function utf8Text(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes).toString("utf8");
  return Buffer.from(text).equals(bytes) ? text : undefined;
}

type Token = { readonly sign: string } | { readonly value: string | boolean | null | Fraction };

function tokensOf(text: string, limits: ReferenceLimits): Token[] | undefined {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (;;) {
    const match = TOKEN.exec(text);
    if (match === null) return undefined;
    const [, sign, literal, string, minus, whole, fraction = "", exponent = "0", end] = match;
    if (end !== undefined) return tokens;
    if (sign !== undefined) tokens.push({ sign });
    else if (literal !== undefined) tokens.push({ value: { true: true, false: false, null: null }[literal] ?? null });
    else if (string !== undefined) {
      const value = JSON.parse(`"${string}"`) as string;
      if (!limits.allowNul && value.includes("\0")) return undefined;
      if (!isWellFormed(value)) return undefined;
      tokens.push({ value });
    } else {
      const value = fractionOf(minus === "-", whole ?? "", fraction, exponent, limits);
      if (value === undefined) return undefined;
      tokens.push({ value });
    }
  }
}

function fractionOf(
  negative: boolean,
  whole: string,
  fraction: string,
  exponent: string,
  limits: ReferenceLimits,
): Fraction | undefined {
  const power = BigInt(exponent.replace("+", ""));
  if (whole.length + fraction.length > limits.maxDigits) return undefined;
  // 20 digits are more than any limit, also where all of them are zeros.
  if (exponent.replace(/^[-+]/, "").length > 20) return undefined;
  if (power > BigInt(limits.maxExponent) || -power > BigInt(limits.maxExponent)) return undefined;
  const mantissa = BigInt(whole + fraction) * (negative ? -1n : 1n);
  const shift = Number(power) - fraction.length;
  return shift < 0
    ? { numerator: mantissa, decimals: -shift }
    : { numerator: mantissa * powerOfTen(shift), decimals: 0 };
}

function isWellFormed(text: string): boolean {
  return [...text].every((char) => char.length === 2 || !/[\ud800-\udfff]/.test(char));
}

type Expected = "value" | "value_or_end" | "name" | "name_or_end" | "colon" | "comma_or_end" | "nothing";

interface Machine {
  readonly stack: Open[];
  readonly maxDepth: number;
  result: ReferenceValue | undefined;
  expected: Expected;
}

// A machine of states: what may come next is told by the token before.
function readTokens(tokens: readonly Token[], maxDepth: number): ReferenceValue | undefined {
  const machine: Machine = { stack: [], maxDepth, result: undefined, expected: "value" };
  const isRead = tokens.every((token) =>
    "value" in token ? readValue(machine, token.value) : readSign(machine, token.sign),
  );
  return isRead && machine.expected === "nothing" ? machine.result : undefined;
}

function readValue(machine: Machine, value: string | boolean | null | Fraction): boolean {
  const { expected, stack } = machine;
  const names = stack.at(-1)?.names;
  if (expected === "name" || expected === "name_or_end") {
    if (typeof value !== "string" || names?.includes(value)) return false;
    names?.push(value);
    machine.expected = "colon";
    return true;
  }
  return (expected === "value" || expected === "value_or_end") && put(machine, value);
}

function put(machine: Machine, value: ReferenceValue): true {
  const top = machine.stack.at(-1);
  if (top === undefined) machine.result = value;
  else top.values.push(value);
  machine.expected = top === undefined ? "nothing" : "comma_or_end";
  return true;
}

function readSign(machine: Machine, sign: string): boolean {
  const { expected, stack } = machine;
  const isInObject = stack.at(-1)?.names != null;
  if (sign === "[" || sign === "{") {
    if (expected !== "value" && expected !== "value_or_end") return false;
    stack.push({ names: sign === "{" ? [] : null, values: [] });
    machine.expected = sign === "{" ? "name_or_end" : "value_or_end";
    return stack.length <= machine.maxDepth;
  }
  if (sign === ":" || sign === ",") {
    if (expected !== (sign === ":" ? "colon" : "comma_or_end")) return false;
    machine.expected = sign === "," && isInObject ? "name" : "value";
    return true;
  }
  return expected.endsWith("_or_end") && (sign === "}") === isInObject && close(machine);
}

function close(machine: Machine): boolean {
  const closed = machine.stack.pop();
  if (closed === undefined) return false;
  const { names, values } = closed;
  return put(machine, names === null ? values : new Map(names.map((name, at) => [name, values[at] ?? null])));
}
