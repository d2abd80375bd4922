import { describe, expect, it } from "vitest";
import { referenceCanonical } from "../../lab/fuzz/reference-canonical.ts";
import { referencePairs } from "../../lab/fuzz/reference-form.ts";
import { referenceString, trimmed } from "../../lab/fuzz/reference-header.ts";
import { referenceJson } from "../../lab/fuzz/reference-json.ts";
import { referenceMultipart } from "../../lab/fuzz/reference-multipart.ts";
import { inputOf, readVectors } from "../../lab/fuzz/vectors.ts";
import { parsePairs } from "../../src/core/body/form.ts";
import { decodeText } from "../../src/core/body/invalid.ts";
import { parseMultipart } from "../../src/core/body/multipart.ts";
import { OncekeyError } from "../../src/core/errors.ts";
import { canonicalJson } from "../../src/core/json/canonical.ts";
import { parseJson } from "../../src/core/json/parse.ts";
import { parseKey } from "../../src/core/key.ts";

/** What it gives, or `null` where it refuses; another error is one. */
function orNull<T>(run: () => T): T | null {
  try {
    return run();
  } catch (error) {
    if (error instanceof OncekeyError) return null;
    throw error;
  }
}

const media = { type: "multipart/form-data", parameters: new Map([["boundary", "XX"]]) };

/** Each file of vectors: what the code makes of an input, and what the fuzzer's reference makes of it. */
const READERS: Readonly<Record<string, readonly [(input: Buffer) => unknown, (input: Buffer) => unknown]>> = {
  "json-texts": [
    (input) => orNull(() => Buffer.from(canonicalJson(parseJson(input))).toString()),
    (input) => {
      const value = referenceJson(input);
      return value === undefined ? null : referenceCanonical(value);
    },
  ],
  "structured-strings": [
    (input) => {
      const parsed = parseKey([input.toString("latin1")]);
      return parsed.kind === "key" ? parsed.key : null;
    },
    (input) => {
      const line = trimmed(input.toString("latin1"));
      const key = referenceString(line) ?? (/^[^"\\\s]+$/.test(line) ? line : "");
      return key.trim() === "" || key.includes(",") || key.length > 255 ? null : key;
    },
  ],
  forms: [(input) => orNull(() => parsePairs(decodeText(input, "The form"))), (input) => referencePairs(input) ?? null],
  multipart: [
    (input) =>
      orNull(() => parseMultipart(media, input).map(({ name, filename, bytes }) => [name, filename, latin1(bytes)])),
    (input) => referenceMultipart(input, "XX")?.map(({ name, filename, bytes }) => [name, filename, bytes]) ?? null,
  ],
};

const latin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

for (const [file, [read, reference]] of Object.entries(READERS)) {
  describe(`the vectors of ${file}`, () => {
    for (const vector of readVectors(file)) {
      it(`${vector.want === null ? "refuses" : "reads"} ${vector.name}`, () => {
        expect(read(inputOf(vector))).toEqual(vector.want);
        expect(reference(inputOf(vector)), "the reference").toEqual(vector.want);
      });
    }
  });
}
