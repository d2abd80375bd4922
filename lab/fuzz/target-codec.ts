import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { decodeValue, encodeValue } from "../../src/core/codec.ts";
import { must, outcomeOf } from "./finding.ts";
import { bytesOfAll, type FuzzTarget, numbered, propertyOf, repeated, type Verdict } from "./target.ts";

const REFUSES = ["oncekey_store_broken", "idempotency_version_unknown"];
const V1 = "\u0001";

/** Recorded values: inputs, contexts, results of phases and calls. */
export const codecTarget: FuzzTarget = {
  name: "codec",
  about: "recorded values: what decodes is what some release has written, but for the spelling of its JSON",
  seeds: bytesOfAll(
    [
      ...[
        "null",
        "1",
        "-0",
        '"é"',
        "[]",
        "{}",
        "true",
        '{"a":[1,{"$$b":2}]}',
        '{"$undefined":true}',
        "1e+21",
        "5e-324",
      ],
      ...['{"$date":"2026-01-31T12:00:00.000Z"}', '{"$bigint":"-12"}', '{"$bytes":"AQID"}', '{"$$date":"x"}'],
    ].map((text) => V1 + text),
  ),
  words: [
    ...[
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"',
      "null",
      "$",
      '"$date":',
      '"$bigint":',
      '"$bytes":',
      '"$undefined":true',
      "$$",
    ],
    ...[
      '"2026-01-31T12:00:00.000Z"',
      '"-0"',
      '"007"',
      '"AQ=="',
      '"A"',
      '"a b"',
      '{"$bytes":""}',
      "1.0",
      "\ufeff",
      " ",
      V1,
    ],
  ],
  run: (input) => decodeValue(input),
  try: tryRecorded,
  properties: [
    propertyOf(
      "a changed byte is refused, or is what another value is written as",
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.nat(), fc.integer({ min: 1, max: 255 }), (value, at, flip) => {
        const bytes = Buffer.from(encodeValue(value));
        bytes.writeUInt8(bytes.readUInt8(at % bytes.length) ^ flip, at % bytes.length);
        tryRecorded(bytes);
      }),
    ),
  ],
  families: [
    repeated("open arrays", V1, "["),
    { name: "nested arrays", make: (size) => Buffer.from(V1 + "[".repeat(size / 2) + "]".repeat(size / 2)) },
    repeated("nested objects", V1, '{"a":'),
    numbered("members", `${V1}{`, (at) => `"${String(1e9 + at)}":0,`, '"a":0}'),
    repeated("bytes", `${V1}{"$bytes":"`, "AAAA", '"}'),
    repeated("dollars", `${V1}{"`, "$", '":0}'),
    repeated("elements", `${V1}[`, '{"$undefined":true},', "0]"),
  ],
};

function tryRecorded(input: Uint8Array): Verdict {
  const outcome = outcomeOf(REFUSES, () => decodeValue(input));
  if (outcome.kind === "refused") return "refused";
  const again = outcomeOf(["oncekey_value_unsupported"], () => encodeValue(outcome.value));
  must(again.kind === "value", "a value was read that cannot be recorded");
  must(isDeepStrictEqual(parsed(again.value), parsed(input)), "bytes that no release wrote were read");
  return "accepted";
}

const parsed = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes.subarray(1)).toString());
