import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { canonicalPairs, formValue, type Pair, parsePairs, sortPairs } from "../../src/core/body/form.ts";
import { decodeText } from "../../src/core/body/invalid.ts";
import { canonicalQuery } from "../../src/core/request-form.ts";
import { MARKER, must, mustEqual, outcomeOf } from "./finding.ts";
import { referenceNested, referencePairs } from "./reference-form.ts";
import { bytesOfAll, type FuzzTarget, numbered, propertyOf, repeated, type Verdict } from "./target.ts";
import { unframed } from "./unframed.ts";
import { inputOf, readVectors } from "./vectors.ts";

const REFUSES = ["idempotency_request_invalid"];
/** Growth is measured without the limits that would end it. */
const WIDE = { maxPairs: 1e9, maxDepth: 999 };
const pairsOf = (input: Uint8Array) => parsePairs(decodeText(input, "The form body"));

/** Forms and queries: pairs, their canonical form, and the value that bracketed names spell. */
export const formTarget: FuzzTarget = {
  name: "form",
  about: "forms and queries with nested names, against a reader that goes byte by byte",
  seeds: [
    ...readVectors("forms").map(inputOf),
    ...bytesOfAll([
      "a[b][c]=1&a[b][d]=2&a[e][]=3&a[e][]=4",
      "a[0][n]=x&a[1][n]=y",
      "a[]=1&a=2",
      "a[b]=1&a=2",
      "[a]=1&a[b=2&a]b[c]=3&a[b]c=4",
      "__proto__[a]=1&constructor[prototype][b]=2",
      `${MARKER}=${MARKER}&a=%`,
    ]),
  ],
  words: [
    "&",
    "=",
    "[",
    "]",
    "[]",
    "a[b]",
    "[0]",
    "[1]",
    "%5B",
    "%5D",
    "%",
    "%25",
    "%C3%A9",
    "%00",
    "+",
    "é",
    "[__proto__]",
    MARKER,
  ],
  run: (input) => formValue(parsePairs(Buffer.from(input).toString(), WIDE), WIDE),
  try: tryForm,
  properties: [
    propertyOf(
      "pairs come back however they are encoded, and other pairs have another canonical form",
      fc.property(pairList(), pairList(), fc.boolean(), tryPairs),
    ),
    propertyOf(
      "a query's order counts within a name only",
      fc.property(pairList(), pairList(), (one, other) => {
        const forms = [one, other].map((pairs) => Buffer.from(canonicalPairs(canonicalQuery(pairs))));
        must((forms[0] as Buffer).equals(forms[1] as Buffer) === sameByName(one, other), "equal unlike its names");
        must(isDeepStrictEqual(sortPairs(sortPairs(one)), sortPairs(one)), "sorted again is another order");
      }),
    ),
  ],
  families: [
    repeated("separators", "", "&"),
    repeated("equals signs", "a", "="),
    repeated("percent encodings", "a=", "%41"),
    repeated("open brackets", "a", "["),
    repeated("closing brackets", "a", "]"),
    repeated("levels of names", "a", "[b]"),
    repeated("brackets crossed", "a[", "]["),
    repeated("pairs of one name", "", "a=1&"),
    repeated("pairs of one list", "", "a[]=1&"),
    numbered("pairs of different names", "", (at) => `n${at}=1&`),
    numbered("an array from its end", "", (at) => `a[${1e6 - at}]=1&`),
    numbered("an array from its beginning", "", (at) => `a[${at}]=1&`),
    numbered("deep names with one beginning", "", (at) => `a${"[b]".repeat(50)}[${at}]=1&`),
    repeated("plus signs", "a=", "+"),
    repeated("characters of four bytes", "a=", "%F0%9F%98%80"),
  ],
};

function tryForm(input: Uint8Array): Verdict {
  const expected = referencePairs(input);
  const outcome = outcomeOf(REFUSES, () => pairsOf(input));
  const isTooMany = (expected?.length ?? 0) > 1_000;
  must((outcome.kind === "value") === (expected !== undefined && !isTooMany), `the form was ${outcome.kind}`);
  if (outcome.kind === "refused" || expected === undefined) return "refused";
  must(isDeepStrictEqual(outcome.value, expected), "other pairs");
  mustEqual(
    JSON.stringify(unframed(canonicalPairs(outcome.value))),
    JSON.stringify(expected.flat()),
    "the canonical form",
  );
  const nested = outcomeOf(REFUSES, () => formValue(outcome.value));
  const value = referenceNested(expected);
  must((nested.kind === "value") === (value !== undefined), `the value was ${nested.kind}`);
  if (nested.kind === "value") must(isDeepStrictEqual(nested.value, value), "another value");
  return "accepted";
}

function pairList(): fc.Arbitrary<Pair[]> {
  const text = fc.string({
    unit: fc.constantFrom("a", "b", "é", "&", "=", "+", "%", " ", "[", "]", "0"),
    maxLength: 3,
  });
  const value = fc.oneof({ arbitrary: text, weight: 4 }, { arbitrary: fc.constant(null), weight: 1 });
  // An empty name alone writes nothing at all.
  return fc.array(
    fc.tuple(text, value).filter(([name, one]) => name !== "" || one !== null),
    { maxLength: 4 },
  );
}

function tryPairs(one: readonly Pair[], other: readonly Pair[], escapesAll: boolean): void {
  must(isDeepStrictEqual(parsePairs(written(one, escapesAll)), one), "other pairs");
  const forms = [one, other].map((pairs) => Buffer.from(canonicalPairs(pairs)));
  must((forms[0] as Buffer).equals(forms[1] as Buffer) === isDeepStrictEqual(one, other), "equal unlike the pairs");
}

function written(pairs: readonly Pair[], escapesAll: boolean): string {
  const all = (text: string) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
  const few = (text: string) => encodeURIComponent(text).replaceAll("%20", "+").replaceAll("%5B", "[");
  const encode = escapesAll ? all : few;
  return pairs.map(([name, value]) => (value === null ? encode(name) : `${encode(name)}=${encode(value)}`)).join("&");
}

function sameByName(one: readonly Pair[], other: readonly Pair[]): boolean {
  const grouped = (pairs: readonly Pair[]) => {
    const names = [...new Set(pairs.map(([name]) => name))].sort();
    return names.map((name) => [name, pairs.filter(([its]) => its === name).map(([, value]) => value)]);
  };
  return isDeepStrictEqual(grouped(one), grouped(other));
}
