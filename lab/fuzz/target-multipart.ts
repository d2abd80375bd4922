import fc from "fast-check";
import { type BodyPart, canonicalMultipart, multipartValue, parseMultipart } from "../../src/core/body/multipart.ts";
import { MARKER, must, mustEqual, outcomeOf } from "./finding.ts";
import { referenceMultipart } from "./reference-multipart.ts";
import { bytesOfAll, type FuzzTarget, numbered, propertyOf, repeated, type Verdict } from "./target.ts";
import { inputOf, readVectors } from "./vectors.ts";

const REFUSES = ["idempotency_request_invalid", "idempotency_request_unsupported"];
const BOUNDARY = "XX";
const media = (boundary: string) => ({ type: "multipart/form-data", parameters: new Map([["boundary", boundary]]) });
/** Growth is measured without the limits that would end it. */
const WIDE = { maxParts: 1e9, maxPartHeaderBytes: 1e9 };
const head = (disposition: string) => `--XX\r\nContent-Disposition: ${disposition}\r\n\r\n`;

/** `multipart/form-data` bodies, under the boundary `XX`. */
export const multipartTarget: FuzzTarget = {
  name: "multipart",
  about: "multipart/form-data bodies, against a reader that goes line by line",
  seeds: [
    ...readVectors("multipart").map(inputOf),
    ...bytesOfAll([`--XX\r\nContent-Disposition: form-data; name="${MARKER}"\r\n\r\n${MARKER}\r\n--XX--`]),
  ],
  words: [
    ...["\r\n", "\r\n\r\n", "--XX", "--XX--", "\r\n--XX\r\n", "\r\n--XX--\r\n", "--", "XX", "\r", "\n", ";", '"', "\\"],
    ...[
      "Content-Disposition: form-data; ",
      'name="a"',
      'filename="f"',
      "Content-Type: text/plain",
      "filename*=UTF-8''x",
    ],
    ...["Content-Transfer-Encoding: ", "base64", "binary", "%22", "é", "\xff", MARKER, "\0", " \t"],
  ],
  run: (input) => multipartValue(parseMultipart(media(BOUNDARY), input, WIDE), WIDE),
  try: tryMultipart,
  properties: [
    propertyOf("what is written comes back, under any boundary", fc.property(partList(), partList(), tryWritten)),
  ],
  families: [
    repeated("lines that begin like a delimiter", head('form-data; name="a"'), "\r\n--X"),
    repeated("delimiters that go on", "", "\r\n--XXY"),
    repeated("line breaks", "--XX", "\r\n"),
    repeated("blanks behind a delimiter", "--XX", " ", "\r\n"),
    repeated("blanks in a header before a bare line feed", "--XX\r\nx:", " ", "\n\r\n\r\n\r\n--XX--"),
    repeated("blanks behind a header", "--XX\r\nx: a", " ", "\r\n\r\n\r\n--XX--"),
    repeated("a header without an end", "--XX\r\nx: ", "a"),
    numbered("headers", "--XX\r\n", (at) => `h${at}: 1\r\n`, "\r\n\r\n--XX--"),
    repeated("an open quoted name", '--XX\r\nContent-Disposition: form-data; name="', "\\a", "\r\n\r\n\r\n--XX--"),
    repeated("parts of one name", "", `${head('form-data; name="a"')}1\r\n`, "--XX--"),
    numbered("parts", "", (at) => `${head(`form-data; name="a[${at}]"`)}\r\n`, "--XX--"),
    repeated("brackets in a name", '--XX\r\nContent-Disposition: form-data; name="a', "[b]", '"\r\n\r\n\r\n--XX--'),
  ],
};

function tryMultipart(input: Uint8Array): Verdict {
  const expected = referenceMultipart(input, BOUNDARY);
  const outcome = outcomeOf(REFUSES, () => parseMultipart(media(BOUNDARY), input));
  must((outcome.kind === "value") === (expected !== undefined), `the body was ${outcome.kind}`);
  if (outcome.kind === "refused" || expected === undefined) return "refused";
  mustEqual(shown(outcome.value), JSON.stringify(expected), "the parts");
  outcomeOf(REFUSES, () => multipartValue(outcome.value));
  return "accepted";
}

const shown = (parts: readonly BodyPart[]) =>
  JSON.stringify(
    parts.map(({ name, filename, bytes }) => ({ name, filename, bytes: Buffer.from(bytes).toString("latin1") })),
  );

interface WrittenPart {
  readonly name: string;
  readonly filename: string | null;
  readonly bytes: Uint8Array;
}

function partList(): fc.Arbitrary<WrittenPart[]> {
  const text = fc.string({ unit: fc.constantFrom(..."ab[]é;='/:"), minLength: 1, maxLength: 5 });
  const bytes = fc.array(fc.constantFrom(0x0d, 0x0a, 0x2d, 0x58, 0x59, 0xff, 0x61), { maxLength: 12 });
  const part = fc.record({
    name: text,
    filename: fc.option(text),
    bytes: bytes.map((all) => Uint8Array.from(all)),
  });
  return fc.array(part, { maxLength: 4 });
}

function tryWritten(one: readonly WrittenPart[], other: readonly WrittenPart[]): void {
  const boundary = (name: string, parts: readonly WrittenPart[]) =>
    parts.some(({ bytes }) => Buffer.from(bytes).includes(name)) ? "not-in-there" : name;
  const read = (parts: readonly WrittenPart[], name: string) => parseMultipart(media(name), written(parts, name));
  const [first, second, third] = [
    read(one, boundary("XX", one)),
    read(one, boundary("Y Y", one)),
    read(other, boundary("XX", other)),
  ];
  mustEqual(shown(first), JSON.stringify(one.map(plain)), "the parts");
  const forms = [first, second, third].map((parts) => Buffer.from(canonicalMultipart(parts)));
  mustEqual(forms[1] as Buffer, forms[0] as Buffer, "the canonical form under another boundary");
  const same = JSON.stringify(one.map(plain)) === JSON.stringify(other.map(plain));
  must((forms[0] as Buffer).equals(forms[2] as Buffer) === same, "two forms are equal unlike the parts");
}

const plain = ({ name, filename, bytes }: WrittenPart) => ({
  name,
  filename,
  bytes: Buffer.from(bytes).toString("latin1"),
});

function written(parts: readonly WrittenPart[], boundary: string): Buffer {
  const pieces = parts.flatMap(({ name, filename, bytes }) => {
    const file = filename === null ? "" : `; filename="${filename}"`;
    return [`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`, bytes, "\r\n"];
  });
  return Buffer.concat([...pieces, `--${boundary}--`].map((piece) => Buffer.from(piece as string)));
}
