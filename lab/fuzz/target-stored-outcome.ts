import { isDeepStrictEqual } from "node:util";
import { deflateRawSync } from "node:zlib";
import fc from "fast-check";
import {
  contentSummary,
  decodeContent,
  encodeContent,
  encodePacked,
  type StoredContent,
} from "../../src/core/stored-outcome.ts";
import { decompressed } from "../../src/engine/compress.ts";
import { laterOutcomeOf, must, mustEqual, outcomeOf } from "./finding.ts";
import { utf8Text } from "./reference-json.ts";
import { type Family, type FuzzTarget, propertyOf, type Verdict } from "./target.ts";

const REFUSES = ["oncekey_store_broken", "idempotency_version_unknown"];
const line = fc.tuple(fc.string({ unit: "binary", maxLength: 5 }), fc.string({ unit: "binary", maxLength: 5 }));
const headers = fc.array(line, { maxLength: 3 });
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

const content: fc.Arbitrary<StoredContent> = fc.oneof(
  fc.record({ headers, body: fc.uint8Array(), length: fc.option(fc.nat()) }),
  fc.record({
    headers,
    elsewhere: fc.record({
      length: fc.nat(),
      storedLength: fc.integer({ min: 16, max: 2 ** 31 - 1 }),
      digest: bytes(32),
      compressed: fc.boolean(),
      key: fc.option(bytes(32)),
    }),
  }),
);

/** What a store keeps of an outcome: headers with the body, or with what a body elsewhere must turn out to be. */
export const storedOutcomeTarget: FuzzTarget = {
  name: "stored-outcome",
  about: "stored outcomes: what decodes is what some release has written, but for the spelling of its JSON",
  seeds: [
    Buffer.from(encodeContent({ headers: [], body: new Uint8Array() })),
    Buffer.from(encodeContent({ headers: [["content-type", "text/é"]], body: Buffer.from("body") })),
    Buffer.from(encodePacked({ headers: [["a", "b"]], body: Buffer.from("packed"), length: 70_000 })),
    Buffer.from(encodePacked({ headers: [], body: Buffer.from("packed"), length: 2 ** 52 })),
    Buffer.from(encodePacked({ headers: [], body: deflateRawSync("body ".repeat(9)), length: 45 })),
    ...[true, false].map((compressed) => Buffer.from(encodePacked(elsewhere(compressed, null)))),
    ...[true, false].map((compressed) => Buffer.from(encodePacked(elsewhere(compressed, new Uint8Array(32))))),
  ],
  words: ['[["a","b"]]', "[]", '["a"]', '["a","b","c"]', " ", "\ufeff", '","', "\xff", "\u0000", "\u0001", "\u0002"],
  run: (input) => decodeContent(input),
  try: tryStored,
  properties: [
    propertyOf(
      "what is written comes back",
      fc.property(content, (written) => {
        const stored = encodePacked(written);
        mustEqual(Buffer.from(encodePacked(decodeContent(stored))), Buffer.from(stored), "written again");
      }),
    ),
    propertyOf(
      "the header's length leads nowhere outside",
      fc.asyncProperty(fc.nat({ max: 0xffff_ffff }), fc.string({ maxLength: 30 }), (length, rest) => {
        const head = Buffer.alloc(5, 1);
        head.writeUInt32BE(length, 1);
        return tryStored(Buffer.concat([head, Buffer.from(rest)])).then(() => {});
      }),
    ),
  ],
  families: [
    storedFamily("open brackets for headers", "["),
    storedFamily("header lines", '["a","b"],', "[", '["a","b"]]'),
    storedFamily("a long header", "a", '[["a","', '"]]'),
    storedFamily("backslashes", "\\\\", '[["a","', '"]]'),
  ],
};

function elsewhere(compressed: boolean, key: Uint8Array | null): StoredContent {
  const digest = new Uint8Array(32).fill(7);
  return { headers: [["a", "b"]], elsewhere: { length: 100, storedLength: 90, digest, compressed, key } };
}

async function tryStored(input: Uint8Array): Promise<Verdict> {
  const outcome = outcomeOf(REFUSES, () => decodeContent(input));
  if (outcome.kind === "refused") {
    outcomeOf(REFUSES, () => contentSummary(input));
    return "refused";
  }
  const [again, given] = [encodePacked(outcome.value), input].map(pieces);
  must(isDeepStrictEqual(again, given), "bytes that no release wrote were read");
  const summary = contentSummary(input);
  must(summary.headers.length === outcome.value.headers.length, "the summary tells of other headers");
  return unpacked(outcome.value);
}

/** The head, the header lines and the rest of stored content. Raises where the lines are no UTF-8. */
function pieces(stored: Uint8Array): unknown[] {
  const at = stored[0] === 1 ? 1 : 2;
  const bytes = Buffer.from(stored);
  const end = at + 4 + bytes.readUInt32BE(at);
  const text = utf8Text(bytes.subarray(at + 4, end));
  return [bytes.subarray(0, at), text === undefined ? text : JSON.parse(text), bytes.subarray(end)];
}

async function unpacked(stored: StoredContent): Promise<Verdict> {
  if ("elsewhere" in stored || stored.length === null) return "accepted";
  const { body, length } = stored;
  const original = await laterOutcomeOf(REFUSES, () => decompressed(body, length));
  if (original.kind === "refused") return "refused";
  must(original.value.length === length, "a body of another length");
  return "accepted";
}

function storedFamily(name: string, piece: string, before = "", after = ""): Family {
  return {
    name,
    make(size) {
      const text = Buffer.from(before + piece.repeat(Math.ceil(size / piece.length)) + after);
      const head = Buffer.alloc(5, 1);
      head.writeUInt32BE(text.length, 1);
      return Buffer.concat([head, text]);
    },
  };
}
