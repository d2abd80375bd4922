import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyDigest, parseKey, storedKey } from "../../src/core/key.ts";

const key = (...lines: string[]) => {
  const parsed = parseKey(lines);
  return parsed.kind === "key" ? parsed.key : parsed.kind;
};

describe("the key header", () => {
  it("is the same key quoted and bare", () => {
    for (const line of [
      "8e03978e-40d5",
      '"8e03978e-40d5"',
      "  8e03978e-40d5\t",
      ' "8e03978e-40d5" ',
      '\t"8e03978e-40d5" \t',
    ]) {
      expect(key(line)).toBe("8e03978e-40d5");
    }
    const visible = fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)) });
    fc.assert(
      fc.property(visible, (text) => {
        fc.pre(text !== "" && !/[",\\]/.test(text) && text.length <= 255);
        expect(key(text)).toBe(text);
        expect(key(`"${text}"`)).toBe(text);
      }),
    );
  });

  it("takes what looks like another structured-field type as it stands", () => {
    for (const line of ["12345", "@1700000000", "?1", ":YWJj:", "a;b", "*/*"]) expect(key(line)).toBe(line);
  });

  it("unescapes quoted strings and keeps spaces and case inside", () => {
    expect(key('"a\\"b\\\\c"')).toBe('a"b\\c');
    expect(key('"a b"')).toBe("a b");
    expect(key("ABC")).not.toBe(key("abc"));
  });

  it("is missing without a line, and malformed, never missing, when empty", () => {
    expect(key()).toBe("missing");
    for (const line of ["", " ", "\t ", '""', '"   "']) expect(key(line)).toBe("invalid");
  });

  it("is refused when it was sent twice, even with equal values", () => {
    expect(key("a", "a")).toBe("invalid");
    expect(key('"a"', '"b"')).toBe("invalid");
    expect(key("a", "")).toBe("invalid");
  });

  it("is refused with a comma in any form, which may be two joined lines", () => {
    for (const line of ["a,b", "a, b", '"a", "b"', '"a, b"', '"a,b"', ",", '"a","a"'])
      expect(key(line)).toBe("invalid");
  });

  it("is refused when it is not one string", () => {
    const malformed = [
      '"a";x=1',
      '"a" ;x',
      '"a',
      'a"',
      '"',
      '"a"b',
      '"a\\b"',
      '"a\\"',
      'a"b',
      "a\\b",
      "a b",
      '"a" "b"',
    ];
    for (const line of malformed) expect(key(line)).toBe("invalid");
  });

  it("is refused outside printable ASCII", () => {
    for (const line of ["é", "😀", "a\u00a0b", '"é"', "a\0b", '"a\0b"', '"a\tb"', "a\u007f", "a\nb", "\ufeffa", "Ã©"]) {
      expect(key(line)).toBe("invalid");
    }
  });

  it("may have 255 characters after unquoting, or the profile's length", () => {
    expect(key("k".repeat(255))).toBe("k".repeat(255));
    expect(key(`"${"k".repeat(255)}"`)).toBe("k".repeat(255));
    expect(key(`"${'\\"'.repeat(255)}"`)).toBe('"'.repeat(255));
    expect(key("k".repeat(256))).toBe("invalid");
    expect(parseKey(["k".repeat(65)], { maxLength: 64 }).kind).toBe("invalid");
    expect(parseKey(["k".repeat(64)], { maxLength: 64 }).kind).toBe("key");
  });

  it("is refused with a reason that says which rule it breaks", () => {
    const why = (...lines: string[]) => {
      const parsed = parseKey(lines);
      return parsed.kind === "invalid" ? parsed.why : parsed.kind;
    };
    for (const line of ["", " \t ", '""', '"  "']) expect(why(line)).toBe("it is empty");
    for (const line of ['"a', '"a";x=1', '"']) expect(why(line)).toContain("begins with a quote");
    for (const line of ['a"', "a\\b"]) expect(why(line)).toContain("a quote or a backslash outside");
    for (const line of ["a b", "é", "a\0"]) expect(why(line)).toContain("outside ASCII");
    expect(why("a", "b")).toContain("more than once");
    expect(why("a,b")).toContain("a comma");
    expect(why("a".repeat(256))).toBe("it is longer than 255 characters");
  });

  it("is never shown by the reason of a refusal", () => {
    for (const line of ["secret,secret", "secret secret", '"secret', "secret\\", "secret".repeat(50), "secretö"]) {
      const parsed = parseKey([line]);
      assert.equal(parsed.kind, "invalid");
      assert.doesNotMatch(parsed.kind === "invalid" ? parsed.why : "", /secret/);
    }
  });
});

describe("the stored key", () => {
  it("is the key itself, or a marked digest with a prefix of at most half of it", () => {
    expect(storedKey("order-4711-a", "raw")).toBe("order-4711-a");
    expect(storedKey("order-4711-a", "digest")).toBe(
      "order-…sha256:950e47bf62fbcb845dd8269f36965b8f2d0253ab31afbcd4953c6ad41e2315ea",
    );
    expect(storedKey("ab", "digest")).toMatch(/^a…sha256:[0-9a-f]{64}$/);
    expect(storedKey("a", "digest")).toMatch(/^…sha256:/);
  });

  it("fits its column, and no raw key can look like a digest", () => {
    expect(storedKey("k".repeat(255), "digest").length).toBeLessThanOrEqual(255);
    expect(key(storedKey("order-4711-a", "digest"))).toBe("invalid");
  });

  it("is named in logs by a short digest that does not contain it", () => {
    expect(keyDigest("order-4711-a")).toMatch(/^[0-9a-f]{16}$/);
    expect(keyDigest("order-4711-a")).not.toBe(keyDigest("order-4711-b"));
  });
});
