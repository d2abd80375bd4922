import fc from "fast-check";
import { canonicalJson, canonicalValue, unsafeNumberPath } from "../../src/core/json/canonical.ts";
import { parseJson } from "../../src/core/json/parse.ts";
import { stringifyJson } from "../../src/core/json/stringify.ts";
import { jsonValue } from "../../src/core/json/value.ts";
import { must, mustEqual, outcomeOf } from "./finding.ts";
import { digitsOf, isFraction, sameNumber } from "./reference-canonical.ts";
import {
  type Fraction,
  REFERENCE_LIMITS,
  type ReferenceObject,
  type ReferenceValue,
  referenceJson,
} from "./reference-json.ts";
import { type FuzzTarget, numbered, propertyOf, type Verdict } from "./target.ts";
import { jsonTarget } from "./target-json.ts";
import { jsonText } from "./written-json.ts";

const REFUSES = ["idempotency_request_invalid"];
const MODES = ["exact", "text", "nearest"] as const;
/** More zeros than this are not appended to an integer. */
const MOST_ZEROS = 400;

/** The values that handlers get of a JSON text: nothing may be lost on the way. */
export const jsonValueTarget: FuzzTarget = {
  ...jsonTarget,
  name: "json-value",
  about: "the values of JSON texts, number by number against exact fractions",
  run: (input) => canonicalValue(jsonValue(parseJson(input), { fractions: "nearest" })),
  try: tryValue,
  properties: [
    propertyOf(
      "values lose nothing",
      fc.property(jsonText, (text) => void tryValue(Buffer.from(text))),
    ),
  ],
  families: [
    ...jsonTarget.families,
    numbered("integers that become bigint", "[", () => `${"9".repeat(400)},`, "0]"),
    numbered("names that are indexes of arrays", "{", (at) => `"${at * 4_000_037}":0,`, '"":0}'),
  ],
};

function tryValue(input: Uint8Array): Verdict {
  const expected = referenceJson(input);
  if (expected === undefined) return "refused";
  const node = parseJson(input);
  for (const fractions of MODES) {
    const outcome = outcomeOf(REFUSES, () => jsonValue(node, { fractions }));
    const holds = isKept(expected, fractions);
    must((outcome.kind === "value") === holds, `the value (${fractions}) was ${outcome.kind}`);
    if (outcome.kind === "refused") continue;
    mustFit(outcome.value, expected, fractions);
    if (fractions !== "exact") continue;
    const canonical = Buffer.from(canonicalJson(node));
    mustEqual(Buffer.from(canonicalValue(outcome.value)), canonical, "the canonical form of the value");
    const written = parseJson(Buffer.from(stringifyJson(outcome.value)), { maxExponent: 20_000 });
    mustEqual(Buffer.from(canonicalJson(written)), canonical, "the value written again");
  }
  tryParsed(input, expected);
  return "accepted";
}

/** What another parser made of it is either equal, or its number was refused, or it lost digits behind the point only. */
function tryParsed(input: Uint8Array, expected: ReferenceValue): void {
  const value = JSON.parse(
    Buffer.from(input)
      .toString("utf8")
      .replace(/^\ufeff/, ""),
  ) as unknown;
  const unsafe = numbersOf(expected).some((number) => {
    const rounded = asNumber(number);
    return Math.abs(rounded) > Number.MAX_SAFE_INTEGER;
  });
  must((unsafeNumberPath(value) !== null) === unsafe, "a number beyond 2^53 is not told");
}

/** Whether every number can be given in the mode. */
export function isKept(value: ReferenceValue, fractions: (typeof MODES)[number]): boolean {
  return numbersOf(value).every((number) => {
    const { digits, power } = digitsOf(number);
    if (digits === 0n || power >= 0) return power <= MOST_ZEROS;
    return fractions !== "exact" || isShortest(number);
  });
}

/** Whether the double nearest to a number prints as that number. */
function isShortest(number: Fraction): boolean {
  const printed = referenceJson(Buffer.from(JSON.stringify(asNumber(number))));
  return printed !== undefined && isFraction(printed) && sameNumber(printed, number);
}

function numbersOf(value: ReferenceValue): Fraction[] {
  if (typeof value !== "object" || value === null) return [];
  if (isFraction(value)) return [value];
  return [...(value as readonly ReferenceValue[] | ReadonlyMap<string, ReferenceValue>).values()].flatMap(numbersOf);
}

// Digits and exponent, from which the engine makes the nearest double.
function asNumber(number: Fraction): number {
  const { digits, power } = digitsOf(number);
  return Number(`${number.numerator < 0n ? "-" : ""}${digits}e${power}`) + 0;
}

function mustFit(found: unknown, expected: ReferenceValue, fractions: string): void {
  if (typeof expected !== "object" || expected === null) must(found === expected, "another value");
  else if (isFraction(expected)) mustFitNumber(found, expected, fractions);
  else if (Array.isArray(expected)) {
    must(Array.isArray(found) && found.length === expected.length, "another array");
    for (const [at, one] of (expected as readonly ReferenceValue[]).entries()) mustFit(found[at], one, fractions);
  } else mustFitObject(found, expected as ReferenceObject, fractions);
}

function mustFitObject(found: unknown, expected: ReferenceObject, fractions: string): void {
  must(typeof found === "object" && found !== null && !Array.isArray(found), "no object");
  must(Object.getPrototypeOf(found) === Object.prototype, "another prototype");
  must(Object.keys(found).length === expected.size, "more or fewer members");
  for (const [name, one] of expected) {
    must(Object.hasOwn(found, name), "a member is missing");
    mustFit((found as Record<string, unknown>)[name], one, fractions);
  }
}

const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

function mustFitNumber(found: unknown, expected: Fraction, fractions: string): void {
  const { digits, power } = digitsOf(expected);
  const isInteger = digits === 0n || power >= 0;
  if (typeof found === "number") {
    must(!Object.is(found, -0) || !isInteger, "a minus zero");
    must(!isInteger || Number.isSafeInteger(found), "an integer that is not safe");
    must(found === asNumber(expected), "another number");
  } else if (isInteger) {
    must(typeof found === "bigint" && sameNumber({ numerator: found, decimals: 0 }, expected), "another integer");
    must(found > SAFE || found < -SAFE, "a small bigint");
  } else {
    must(fractions === "text" && typeof found === "string", "a fraction is no text");
    const text = referenceJson(Buffer.from(found), { ...REFERENCE_LIMITS, maxDigits: 2_000, maxExponent: 20_000 });
    must(text !== undefined && isFraction(text) && sameNumber(text, expected), "another fraction");
  }
}
