import { describe, expect, it } from "vitest";
import { OncekeyError } from "../../src/core/errors.ts";
import { canonicalJson } from "../../src/core/json/canonical.ts";
import { parseJson } from "../../src/core/json/parse.ts";
import { canonicalPlain, plainJson } from "../../src/core/json/plain.ts";

// Beside the tests of the core: mutation testing runs those on code in which each step is counted, where a megabyte takes
// most of a minute. No time is asserted: what is quadratic would not come to an end.

const bytes = (text: string) => new TextEncoder().encode(text);
const canonical = (text: string) => new TextDecoder().decode(canonicalJson(parseJson(bytes(text))));
const refused = (text: string): OncekeyError => {
  try {
    parseJson(bytes(text));
  } catch (error) {
    if (error instanceof OncekeyError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
};

describe("a long JSON body", () => {
  it("is read to its end: a megabyte of the inputs that make careless parsers quadratic", () => {
    const size = 1_000_000;
    expect(canonical(`[${"0,".repeat(size / 2)}0]`)).toHaveLength(size + 3);
    expect(canonical(`"${"\\n".repeat(size / 2)}"`)).toHaveLength(size + 2);
    expect(canonical(`${" ".repeat(size)}1`)).toBe("1");
    expect(refused(`"${"\\\\".repeat(size / 2)}`).message).toContain("does not end");
    const names = Array.from({ length: 100_000 }, (_, index) => `"n${index}":0`);
    expect(parseJson(bytes(`{${names.join(",")}}`)).kind).toBe("object");
    expect(refused(`{${names.join(",")},"n0":1}`).message).toContain("repeated");
  });

  it("is written in order however many members it has, all in the wrong one", () => {
    const names = Array.from({ length: 400_000 }, (_, at) => `"${String(at).padStart(6, "0")}":0`);
    const plain = plainJson(`{${names.toReversed().join(",")}}`, 64);
    expect(plain !== null && canonicalPlain(plain) === `{${names.join(",")}}`).toBe(true);
  });
});
