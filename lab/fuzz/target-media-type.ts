import fc from "fast-check";
import { bodyKindOf, comparedType, parseContentType } from "../../src/core/body/content-type.ts";
import { MARKER, must, mustEqual, outcomeOf } from "./finding.ts";
import { isToken, referenceParameters, withoutBackslashes } from "./reference-header.ts";
import { bytesOfAll, type FuzzTarget, numbered, propertyOf, repeated, type Verdict } from "./target.ts";

const REFUSES = ["idempotency_request_unsupported"];
const textOf = (input: Uint8Array) => Buffer.from(input).toString("latin1");

/** A `Content-Type`: the type and its parameters, and what of them takes part in comparisons. */
export const mediaTypeTarget: FuzzTarget = {
  name: "media-type",
  about: "Content-Type values and their parameters, against RFC 9110 read character by character",
  seeds: bytesOfAll([
    "application/json",
    'Multipart/Form-Data; boundary="a b"; x=1',
    "text/plain ;charset=UTF-8;; y=2 ;",
    'application/vnd.a+json;v="1\\"2\\\\"',
    "a/b;a=1;A=2",
    "application/json, text/plain",
    `a/b; x="${MARKER}"`,
    'a/b; x="',
  ]),
  words: [
    ";",
    "=",
    '"',
    "\\",
    '\\"',
    "; charset=utf-8",
    ";boundary=x",
    "application/",
    "+json",
    "/",
    MARKER,
    "\x85",
    "\xa0",
    "x=1",
  ],
  run: (input) => comparedType(parseContentType(textOf(input)), "raw"),
  try: tryMediaType,
  properties: [
    propertyOf(
      "parameters come back however they are written, and equal ones compare as equal",
      fc.property(parameterList(), fc.boolean(), fc.nat(), (parameters, isQuoted, turn) => {
        const plain = written(parameters, isQuoted);
        const at = parameters.length === 0 ? 0 : turn % parameters.length;
        const turned = written([...parameters.slice(at), ...parameters.slice(0, at)], true).replace("a/b", "A/B");
        mustEqual(compared(turned), compared(plain), "the compared type of another spelling");
      }),
    ),
    propertyOf(
      "other parameters compare as different",
      fc.property(parameterList(), parameterList(), (one, other) => {
        const same = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
        must((compared(written(one, true)) === compared(written(other, true))) === same, "equal unlike the parameters");
      }),
    ),
  ],
  families: [
    repeated("semicolons", "a/b", ";"),
    repeated("blanks between semicolons", "a/b", "; \t"),
    repeated("blanks and no end", "a/b;", " ", "?"),
    repeated("an open quoted string", 'a/b;x="', "a"),
    repeated("backslashes", 'a/b;x="', "\\\\"),
    repeated("escaped quotes", 'a/b;x="', '\\"', '"'),
    repeated("a long type", "", "a", "/b"),
    repeated("a long name", "a/b;", "n"),
    repeated("slashes", "a", "/"),
    numbered("parameters", "a/b", (at) => `;p${at}=${at}`),
    repeated("one name again and again", "a/b", ";a=1"),
  ],
};

function tryMediaType(input: Uint8Array): Verdict {
  const text = textOf(input);
  const expected = referenceType(text);
  const outcome = outcomeOf(REFUSES, () => parseContentType(text));
  must((outcome.kind === "value") === (expected !== undefined), `the type was ${outcome.kind}`);
  if (outcome.kind === "refused" || expected === undefined || outcome.value === null) return "refused";
  const { type, parameters } = outcome.value;
  mustEqual(JSON.stringify([type, ...parameters]), JSON.stringify([expected.type, ...expected.parameters]), "the type");
  const kinds = { json: /^(application|text)\/json$|\+json$|^application\/x-amz-json-1\.[01]$/ };
  must((bodyKindOf(outcome.value) === "json") === kinds.json.test(type), "read as JSON unlike its type");
  return "accepted";
}

/** What a media type says; `undefined`: it is malformed. */
function referenceType(text: string): { type: string; parameters: (readonly [string, string])[] } | undefined {
  const read = referenceParameters(text, withoutBackslashes);
  const [type = "", subtype = "", ...more] = read?.value.split("/") ?? [];
  if (read === undefined || more.length > 0 || !isToken(type) || !isToken(subtype)) return undefined;
  const parameters = read.parameters.map(
    ([name, value]) => [name, name === "charset" ? value.toLowerCase() : value] as const,
  );
  return { type: read.value.toLowerCase(), parameters };
}

type Parameter = readonly [name: string, value: string];

function parameterList(): fc.Arbitrary<Parameter[]> {
  const name = fc.string({ unit: fc.constantFrom(..."abc-"), minLength: 1, maxLength: 2 });
  const value = fc.string({ unit: fc.constantFrom(...'ab;=", \\'), maxLength: 4 });
  return fc.uniqueArray(fc.tuple(name, value), { maxLength: 4, selector: ([one]) => one });
}

function written(parameters: readonly Parameter[], isQuoted: boolean): string {
  const values = parameters.map(([name, value]) => {
    const bare = !isQuoted && isToken(value);
    return `${name}=${bare ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`;
  });
  return ["a/b", ...values].join(";");
}

const compared = (text: string) => comparedType(parseContentType(text), "raw") ?? "";
const sorted = (parameters: readonly Parameter[]) => [...parameters].sort(([a], [b]) => (a < b ? -1 : 1));
