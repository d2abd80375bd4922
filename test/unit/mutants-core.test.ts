import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FramedPart, frame, framedDigest } from "../../src/core/framing.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const textOf = (part: FramedPart) => (part === null ? "none" : hex(Buffer.from(part as Uint8Array)));

describe("the frame of a list of parts", () => {
  it("tells where one part ends and the next begins, however the same bytes are cut", () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(bytes, fc.nat(12), fc.nat(12), (all, one, other) => {
        const cut = (at: number) => [all.slice(0, at), all.slice(at)];
        const [a, b] = [Math.min(one, all.length), Math.min(other, all.length)];
        expect(hex(frame(1, cut(a))) === hex(frame(1, cut(b)))).toBe(a === b);
      }),
      { numRuns: 500 },
    );
  });

  it("is shared by no two lists, whatever lengths and marks their bytes imitate", () => {
    // The bytes that lengths and marks of presence are made of.
    const part = fc.option(fc.array(fc.constantFrom(0, 1, 2), { maxLength: 6 }).map((list) => Uint8Array.from(list)));
    const parts = fc.array(part, { maxLength: 3 });
    const shown = (list: readonly FramedPart[]) => JSON.stringify(list.map(textOf));
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        expect(hex(frame(1, one)) === hex(frame(1, other))).toBe(shown(one) === shown(other));
      }),
      { numRuns: 3_000 },
    );
    const [mark, length] = [[1], [0, 0, 0, 1]];
    const imitated = [Uint8Array.from([0]), Uint8Array.from([7])];
    expect(hex(frame(1, [Uint8Array.from([0, ...mark, ...length, 7])]))).not.toBe(hex(frame(1, imitated)));
  });

  it("is another one under another version, and for text equals that of its UTF-8", () => {
    expect(hex(frame(1, ["é", null]))).toBe("0101" + "00000002" + "c3a9" + "00");
    expect(hex(frame(2, []))).toBe("02");
    expect(hex(frame(1, ["é"]))).toBe(hex(frame(1, [new TextEncoder().encode("é")])));
  });

  it("holds every part whole, however long: bodies that differ far behind are two requests", () => {
    const framed = (text: string) => {
      const head = Buffer.alloc(5);
      head[0] = 1;
      head.writeUInt32BE(Buffer.byteLength(text), 1);
      return Buffer.concat([head, Buffer.from(text)]);
    };
    // The frame's own memory is taken from 16,384 bytes on; a unit of text takes up to three bytes.
    for (const unit of ["a", "é", "€", "😀"]) {
      for (const length of [1, 2_000, 5_458, 8_186, 16_378, 16_379, 16_384, 70_000]) {
        const text = unit.repeat(length / unit.length);
        const expected = Buffer.concat([Buffer.of(1), framed("b"), framed(text), framed(text), Buffer.of(0)]);
        const parts = ["b", text, new TextEncoder().encode(text), null];
        const what = `${length} of ${unit}`;
        const alone = Buffer.concat([Buffer.of(1), framed(text)]);
        expect(Buffer.compare(frame(1, [text]), alone), what).toBe(0);
        expect(Buffer.compare(frame(1, parts), expected), what).toBe(0);
        expect(hex(framedDigest(1, parts)), what).toBe(createHash("sha256").update(expected).digest("hex"));
      }
    }
  });

  it("is refused for text that UTF-8 cannot spell: all such texts would be one", () => {
    for (const text of ["\ud800", "a\udc00", "\udc00\ud800", `${"a".repeat(20_000)}\ud83d`]) {
      for (const run of [() => frame(1, ["a", text]), () => framedDigest(1, ["a", text])]) {
        expect(run).toThrow(expect.objectContaining({ code: "oncekey_value_unsupported" }));
      }
    }
    expect(hex(frame(1, ["\ud83d\ude00"]))).toBe("0101" + "00000004" + "f09f9880");
  });

  it("is the caller's own: the next one changes nothing of it", () => {
    const first = frame(1, ["first"]);
    const copy = hex(first);
    frame(1, ["other"]);
    expect(hex(first)).toBe(copy);
  });
});
