import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HeaderLine } from "../../src/core/outcome.ts";
import {
  contentSummary,
  decodeContent,
  type ElsewhereContent,
  encodeContent,
  encodePacked,
} from "../../src/core/stored-outcome.ts";

const headers: HeaderLine[] = [["a", "b"]];
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, "hex"));

const elsewhere = (over: Partial<ElsewhereContent["elsewhere"]> = {}): ElsewhereContent => ({
  headers,
  elsewhere: {
    length: 300_000,
    digest: new Uint8Array(32).fill(7),
    storedLength: 100_016,
    compressed: true,
    key: new Uint8Array(32).fill(9),
    ...over,
  },
});

const HEAD = hex(new TextEncoder().encode('[["a","b"]]'));
const FORMS = [
  ["plain", encodeContent({ headers, body: Uint8Array.of(1, 2) }), `010000000b${HEAD}0102`],
  [
    "compressed",
    encodePacked({ headers, body: Uint8Array.of(1, 2), length: 5_000 }),
    `02010000000b${HEAD}00000000000013880102`,
  ],
  [
    "elsewhere, compressed and sealed",
    encodePacked(elsewhere()),
    `02070000000b${HEAD}00000000000493e000000000000186b0${"07".repeat(32)}${"09".repeat(32)}`,
  ],
  [
    "elsewhere as it is",
    encodePacked(elsewhere({ compressed: false, key: null })),
    `02020000000b${HEAD}00000000000493e000000000000186b0${"07".repeat(32)}`,
  ],
] as const;

describe("stored content", () => {
  it.each(FORMS)("has a frozen form: %s", (_name, encoded, frozen) => {
    expect(hex(encoded)).toBe(frozen);
    const decoded = decodeContent(bytesOf(frozen));
    expect(hex(encodePacked(decoded))).toBe(frozen);
  });

  it("that is not packed has the form of version 1, which older releases read", () => {
    const body = Uint8Array.of(1, 2);
    expect(encodePacked({ headers, body, length: null })).toEqual(encodeContent({ headers, body }));
  });

  it("gives back any headers and bytes, and shares nothing with what was stored", () => {
    const line = fc.tuple(fc.string(), fc.string()) as fc.Arbitrary<HeaderLine>;
    fc.assert(
      fc.property(fc.array(line), fc.uint8Array(), (lines, body) => {
        const stored = encodeContent({ headers: lines, body });
        const decoded = decodeContent(stored);
        stored.fill(0);
        expect(decoded).toEqual({ headers: lines, body, length: null });
      }),
    );
  });

  it("of a newer release is left to it", () => {
    for (const stored of ["03", "0208", "0204000000025b5d", "0200000000025b5d", "ff00", "8101"]) {
      expect(() => decodeContent(bytesOf(stored)), stored).toThrow(
        expect.objectContaining({ code: "idempotency_version_unknown" }),
      );
    }
  });

  it("that was cut anywhere is refused, or is another body", () => {
    for (const [name, encoded] of FORMS) {
      for (let length = 0; length < encoded.length; length++) {
        const cut = encoded.subarray(0, length);
        try {
          const decoded = decodeContent(cut);
          expect("body" in decoded, `${name} ${length}`).toBe(true);
        } catch (error) {
          expect(["oncekey_store_broken", "idempotency_version_unknown"]).toContain((error as { code: unknown }).code);
        }
      }
    }
    expect(() => decodeContent(encodePacked(elsewhere({ storedLength: 15 })))).toThrow("cannot be decoded");
    expect(() => decodeContent(bytesOf(`010000000b${"00".repeat(11)}`))).toThrow("cannot be decoded");
  });

  it.each([
    ["nothing at all", ""],
    ["headers that are longer than what is there", "010000000c5b5d"],
    ["no headers", "0100000000"],
    ["headers that are not UTF-8", "010000000b5b5b2261222c22ff225d5d"],
    ["headers behind a byte order mark", "0100000005efbbbf5b5d"],
    ["a length beyond whole numbers", "0201000000025b5dffffffffffffffff00"],
    ["half of a length", "0201000000025b5d00000000"],
  ])("that is %s was damaged", (_, stored) => {
    expect(() => decodeContent(bytesOf(stored))).toThrow(expect.objectContaining({ code: "oncekey_store_broken" }));
  });

  it("may have no bytes: behind its length, or sealed elsewhere", () => {
    const compressed = { headers, body: new Uint8Array(), length: 5 };
    expect(decodeContent(encodePacked(compressed))).toEqual(compressed);
    const sealed = elsewhere({ length: 0, storedLength: 16, compressed: false });
    expect(decodeContent(encodePacked(sealed))).toEqual(sealed);
  });

  it("whose headers are no lines is refused, not answered by an error that nobody expects", () => {
    for (const json of [
      "null",
      "{}",
      "1",
      '"ab"',
      "[1]",
      '["ab"]',
      '[["a"]]',
      '[["a",1]]',
      '[["a","b","c"]]',
      "[null]",
    ]) {
      const block = new TextEncoder().encode(json);
      const stored = Uint8Array.of(1, 0, 0, 0, block.length, ...block, 7);
      expect(() => decodeContent(stored), json).toThrow(expect.objectContaining({ code: "oncekey_store_broken" }));
    }
  });

  it("tells operators all but the body", () => {
    const summaries = FORMS.map(([, encoded]) => contentSummary(encoded));
    expect(summaries).toEqual([
      {
        headers,
        bodyBytes: 2,
        bodySha256: "a12871fee210fb8619291eaea194581cbd2531e4b23759d225f6806923f63222",
        compressed: false,
        elsewhere: false,
      },
      { headers, bodyBytes: 5_000, bodySha256: null, compressed: true, elsewhere: false },
      { headers, bodyBytes: 300_000, bodySha256: "07".repeat(32), compressed: true, elsewhere: true },
      { headers, bodyBytes: 300_000, bodySha256: "07".repeat(32), compressed: false, elsewhere: true },
    ]);
  });
});
