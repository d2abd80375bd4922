import fc from "fast-check";
import { canonicalJson } from "../../src/core/json/canonical.ts";
import { parseJson } from "../../src/core/json/parse.ts";
import { MARKER, must, mustEqual, outcomeOf } from "./finding.ts";
import { referenceCanonical, sameValue } from "./reference-canonical.ts";
import { referenceJson } from "./reference-json.ts";
import { type FuzzTarget, numbered, propertyOf, repeated, type Verdict } from "./target.ts";
import { inputOf, readVectors } from "./vectors.ts";
import { jsonText, respelled } from "./written-json.ts";

const REFUSES = ["idempotency_request_invalid"];
/** Stands between two texts that are compared with each other; no JSON text holds it. */
const BETWEEN = 0x1e;

/** JSON bodies: the parser, and the canonical form that retries are compared by. */
export const jsonTarget: FuzzTarget = {
  name: "json",
  about: "JSON texts and their canonical form, against exact fractions of integers",
  seeds: [...readVectors("json-texts").map(inputOf), ...pairs()],
  words: [
    ...["{", "}", "[", "]", ",", ":", '"', "\\", '"a":', '{"a":1}', "[[", "]]", '"":', "true", "false", "null", " \n"],
    ...["1", "-0", "1.0", "10e-1", "1e-7", "1e21", "9007199254740993", "0.1000000000000000055", "1E400", "-"],
    ...[
      "\\u0061",
      "\\u0000",
      "\\ud83d\\ude00",
      "\\ud800",
      "😀",
      "é",
      "\ufeff",
      "\\/",
      `"${MARKER}"`,
      "__proto__",
      "\x1e",
    ],
  ],
  run: (input) => canonicalJson(parseJson(input)),
  try: tryJson,
  properties: [
    propertyOf(
      "a text in another spelling has the same canonical form, and another value has another",
      fc.property(jsonText, respelled, jsonText, (one, spelling, other) => {
        tryPair(Buffer.from(one), Buffer.from(spelling(one)), true);
        tryPair(Buffer.from(one), Buffer.from(other));
      }),
    ),
    propertyOf(
      "one digit more or less in any number is another value",
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 40n }), fc.integer({ min: -60, max: 60 }), (digits, power) => {
        tryPair(Buffer.from(`[${digits}e${power}]`), Buffer.from(`[${digits + 1n}e${power}]`), false);
      }),
    ),
  ],
  families: [
    repeated("open arrays", "", "["),
    repeated("open objects", "", '{"a":'),
    repeated("commas", "[", ","),
    repeated("elements", "[", "0,", "0]"),
    numbered("members in falling order", "{", (at) => `"${String(1e9 - at)}":0,`, '"":0}'),
    // The engine's hash of such names is the number itself.
    numbered("members whose names are numbers a power of two apart", "{", (at) => `"${at * 65_536}":0,`, '"":0}'),
    numbered("members that differ at the end of a long name", "{", (at) => `"${"n".repeat(200)}${at}":0,`, '"":0}'),
    repeated("digits", "", "9"),
    repeated("zeros before a digit", "0.", "0", "1"),
    repeated("digits of an exponent", "1e", "9"),
    numbered("numbers of a thousand digits", "[", () => `${"7".repeat(1_000)},`, "0]"),
    numbered("numbers of the largest exponent", "[", (at) => `${at}e9999,`, "0]"),
    repeated("white space", "", " \t\r\n", "1"),
    repeated("backslashes", '"', "\\\\"),
    repeated("escapes", '"', "\\u0041", '"'),
    repeated("surrogate pairs", '"', "\\ud83d\\ude00", '"'),
    repeated("surrogates the wrong way round", '"', "\\ude00\\ud83d", '"'),
    repeated("characters of four bytes", '"', "😀", '"'),
  ],
};

function pairs(): Buffer[] {
  const texts: readonly (readonly [string, string])[] = [
    ["1", "1.0"],
    ["[9007199254740993]", "[9007199254740992]"],
    ['{"a":1,"b":2}', '{"b":2,"a":1}'],
    ['"\\u00e9"', '"é"'],
    ["1e400", "1e401"],
  ];
  return texts.map(([a, b]) => Buffer.from(`${a}\x1e${b}`));
}

function tryJson(input: Uint8Array): Verdict {
  const at = input.indexOf(BETWEEN);
  return at === -1 ? tryText(input) : tryPair(input.subarray(0, at), input.subarray(at + 1));
}

function tryText(text: Uint8Array): Verdict {
  const expected = referenceJson(text);
  const outcome = outcomeOf(REFUSES, () => Buffer.from(canonicalJson(parseJson(text))));
  must((outcome.kind === "value") === (expected !== undefined), `the text was ${outcome.kind}`);
  if (outcome.kind === "refused" || expected === undefined) return "refused";
  mustEqual(outcome.value.toString(), referenceCanonical(expected), "the canonical form");
  // The digits of 10e10000 move into the exponent.
  const again = parseJson(outcome.value, { maxExponent: 20_000 });
  mustEqual(Buffer.from(canonicalJson(again)), outcome.value, "the canonical form of itself");
  return "accepted";
}

/** Tries two texts, and that their canonical forms are equal exactly if their values are. */
function tryPair(a: Uint8Array, b: Uint8Array, expected?: boolean): Verdict {
  const [one, other] = [referenceJson(a), referenceJson(b)];
  const verdicts = [tryText(a), tryText(b)];
  if (one === undefined || other === undefined || verdicts.includes("refused")) return "refused";
  const same = sameValue(one, other);
  if (expected !== undefined) must(same === expected, `the values are ${same ? "equal" : "different"}`);
  const forms = [a, b].map((text) => Buffer.from(canonicalJson(parseJson(text))));
  must(
    (Buffer.compare(forms[0] as Buffer, forms[1] as Buffer) === 0) === same,
    "two forms are equal unlike the values",
  );
  return "accepted";
}
