import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../src/core/json/canonical.ts";
import { parseJson } from "../../src/core/json/parse.ts";
import { canonicalPlain, plainJson } from "../../src/core/json/plain.ts";
import { readJson } from "../../src/core/json/read.ts";
import type { JsonLimits } from "../../src/core/json/scanner.ts";
import { jsonValue } from "../../src/core/json/value.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

type Options = Partial<JsonLimits> & { readonly fractions?: "exact" | "nearest" | "text" };

/** What reading a text comes to: the canonical form, and the value or the refusal of making it. */
function told(read: () => { canonical(): string; value(): unknown }): unknown {
  try {
    const { canonical, value } = read();
    return { canonical: canonical(), value: outcomeOf(value), again: outcomeOf(value) };
  } catch (error) {
    return String(error);
  }
}

function outcomeOf(value: () => unknown): unknown {
  try {
    return value();
  } catch (error) {
    return String(error);
  }
}

const short = (text: string, options: Options = {}) => told(() => readJson(encode(text), options));
const long = (text: string, options: Options = {}) =>
  told(() => {
    const node = parseJson(encode(text), options);
    return { canonical: () => decode(canonicalJson(node)), value: () => jsonValue(node, options) };
  });

/** Texts in which one thing is not as `JSON.stringify` writes it, each with what a careless short way would make of it. */
const TRAPS: readonly string[] = [
  '{"a":1,"a":2}',
  '{"a":1,"b":2,"a":1}',
  '{"a":1,"a!":2,"a ":3,"ab":4}',
  '{"a b":1,"a":2,"a\\n":3}',
  '{"i":1,"h":1,"g":1,"f":1,"e":1,"d":1,"c":1,"b":1,"a":1}',
  '{"i":1,"h":1,"g":1,"f":1,"e":1,"d":1,"c":1,"b":1,"i":1}',
  "[0.000001,0.0000001,-0.000001,123456789012345,1234567890123456,0.123456789012345,12345678901234.5]",
  `{${Array.from({ length: 40 }, (_, at) => `"k${(at * 17) % 40}":{"b":${at},"a":[{"d":1,"c":2}]}`).join(",")}}`,
  "[01,-01,00,-,.5,1.,+1,0x1]",
  "-01",
  "1.",
  "-",
  '{"a":1,"\\u0061":2}',
  '{"a":{"b":1},"a":{"b":1}}',
  "9007199254740993",
  "9007199254740992",
  "-9007199254740993",
  "[1e21,1e+21,1e-7,1e-400,1e400]",
  "1e+21",
  "123456789012345680000",
  "1.7976931348623157e+308",
  "[0.1,0.10,1.0,-0,-0.0,0.30000000000000004,0.1000000000000000055511151231257827]",
  '"\\ud800"',
  '"\\ud83d\\ude00"',
  '"\\u0000"',
  '"\\/"',
  '"\\b\\f\\n\\r\\t\\"\\\\"',
  '"C:\\\\users"',
  '{"10":1,"9":2}',
  '{"9":1,"10":2}',
  '{"1a":1,"a":2}',
  '{"b":1,"2":2}',
  '{"__proto__":{"a":1},"a":2}',
  '{"b":{"__proto__":1},"__proto__":null}',
  '{"":1," ":2}',
  '{"é":1,"z":2,"\u{1F600}":3,"\uFFFD":4}',
  '{"toJSON":1,"constructor":{"prototype":2}}',
  '\uFEFF{"a":1}',
  ' { "b" : [ 1 , "x y" , { } , [ ] ] , "a" : "  " } ',
  '{"a": 1,"b":\t2,\r\n"c":3}',
  '{"a":"x y","b":"x  y"}',
  "[1 2]",
  '{"a":1,}',
  '{"a"}',
  "",
  " ",
  "nul",
  "true",
  "null",
  '"\u2028\u007f"',
  "{} {}",
  "[1]\u00a0",
  "[".repeat(64) + "]".repeat(64),
  "[".repeat(65) + "]".repeat(65),
  "[".repeat(100_000),
  "[".repeat(50_000) + "]".repeat(50_000),
];

describe("a body that is read the short way", () => {
  it.each(TRAPS.map((text) => [text.slice(0, 60), text]))("equals the long way: %s", (_, text) => {
    expect(short(text)).toEqual(long(text));
  });

  it("is one that is written as JSON.stringify does, with blanks or without", () => {
    const canonical = ['{"b":[1,0.5,"x"],"a":null}', '{"a":null, "b":[1]}', '{"a":{"a":1,"b":[{"c":2}]},"b":3}'];
    expect(canonical.map((text) => plainJson(text, 64)?.unsorted)).toEqual([true, false, false]);
    expect(canonical.map((text) => plainJson(text, 64)?.spaced)).toEqual([false, true, false]);
    for (const text of ["1.50", "1e3", "-0", '"\\u0041"', '{"a":1,"a":1}', "[[1]]"])
      expect(plainJson(text, 1)).toBeNull();
  });

  it("is told by its numbers: digits that a double keeps, spelled as it prints them", () => {
    const plain = ["0", "7", "-7", "10", "123456789012345", "-123456789012345", "0.5", "-0.5", "1.05", "0.000001"];
    for (const text of [...plain, "12345678901234.5", "0.12345678901234", "-0.000001", "100.001"]) {
      for (const within of [text, `[${text}]`, `{"a":${text}}`]) expect(plainJson(within, 64), within).not.toBeNull();
    }
    const others = ["-0", "-0.0", "0.0", "1.0", "1.50", "1234567890123456", "0.1234567890123456", "0.0000001", "1e1"];
    for (const text of [
      ...others,
      "1E1",
      "0e0",
      "00",
      "01",
      "-01",
      "-",
      "1.",
      ".5",
      "-.5",
      "+1",
      "1.e1",
      "0x1",
      "1-",
      "--1",
    ]) {
      for (const within of [text, `[${text}]`]) expect(plainJson(within, 64), within).toBeNull();
    }
  });

  it("is told by its words and strings: whole ones, with the escapes of the canonical form", () => {
    const plain = ["true", "false", "null", '""', '"a"', '"\\\\"', '"\\"\\b\\f\\n\\r\\t"', '"é\u2028\u007f"', '"/"'];
    for (const text of plain) expect(plainJson(text, 64), text).not.toBeNull();
    const words = ["tru", "fals", "nul", "True", "truex", "", " ", "[", "]", "{", "}", ",", ":", "'a'"];
    const strings = ['"', '"a', '"\\', '"\\"', '"\\/"', '"\\u0041"', '"\\x"', '"\u001f"', '"a"b'];
    for (const text of [...words, ...strings]) expect(plainJson(text, 64), text).toBeNull();
  });

  it("is told by its lists and objects, as deep as is allowed", () => {
    for (const text of [
      "[]",
      "{}",
      "[[]]",
      "[{}]",
      '{"a":[]}',
      "[1,2]",
      '{"a":1,"b":2}',
      " [ 1 , 2 ] ",
      ' { "a" : 1 } ',
    ]) {
      expect(plainJson(text, 2), text).not.toBeNull();
    }
    for (const text of ["[[[]]]", "[[{}]]", '{"a":{"b":{}}}', '[{"a":[]}]'])
      expect(plainJson(text, 2), text).toBeNull();
    expect([plainJson("[]", 0), plainJson("{}", 0)]).toEqual([null, null]);
    expect(plainJson("1", 0)).not.toBeNull();
    const broken = [
      "[1,]",
      "[,1]",
      "[1 2]",
      "[1}",
      "[1",
      "[1,",
      '{"a":1,}',
      '{,"a":1}',
      '{"a":1 "b":2}',
      '{"a":1]',
      '{"a":1',
    ];
    for (const text of [
      ...broken,
      '{"a"}',
      '{"a" 1}',
      '{"a":}',
      "{1:2}",
      "{a:1}",
      '{"a":1,',
      '{"a"::1}',
      "[]]",
      "{}}",
      "1 1",
    ]) {
      expect(plainJson(text, 64), text).toBeNull();
    }
  });

  it("tells a name with an escape, which sorts by what it stands for, and a name given twice among few and among many", () => {
    for (const text of ['{"\\n":1}', '{"a\\"":1}', '{"a":{"\\\\":1}}']) expect(plainJson(text, 64), text).toBeNull();
    expect(plainJson('{"a":"\\n","b":1}', 64)).not.toBeNull();
    for (const count of [2, 7, 8, 9, 16, 17, 40]) {
      const names = Array.from({ length: count }, (_, at) => `n${(at * 7) % count}`);
      const distinct = [...new Set(names)].reverse();
      const textOf = (list: readonly string[]) => `{${list.map((name, at) => `"${name}":${at}`).join(",")}}`;
      const plain = plainJson(textOf(distinct), 64);
      if (plain === null) throw new Error("must be plain");
      expect(canonicalPlain(plain)).toBe(decode(canonicalJson(parseJson(encode(textOf(distinct))))));
      expect(plainJson(textOf([...distinct, distinct[0] as string]), 64)).toBeNull();
      expect(plainJson(textOf([distinct[0] as string, ...distinct]), 64)).toBeNull();
    }
  });

  it("tells whether it has to be written anew: for its blanks, or for the order of any of its objects", () => {
    const told = (text: string) => {
      const plain = plainJson(text, 64);
      return plain === null ? null : [plain.spaced, plain.unsorted, canonicalPlain(plain)];
    };
    expect(told('{"a":1,"b":[{"c":1,"d":2}]}')).toEqual([false, false, '{"a":1,"b":[{"c":1,"d":2}]}']);
    for (const blank of [" ", "\n", "\r", "\t"]) {
      for (const text of [`${blank}[1]`, `[${blank}1]`, `[1${blank}]`, `[1]${blank}`]) {
        expect(told(text), JSON.stringify(text)).toEqual([true, false, "[1]"]);
      }
      expect(told(`{${blank}"b"${blank}:${blank}"x y"${blank},"a":{${blank}},"c":[${blank}]}`)).toEqual([
        ...[true, true, '{"a":{},"b":"x y","c":[]}'],
      ]);
    }
    expect(told('{"A":1,"B":2}')).toEqual([false, false, '{"A":1,"B":2}']);
    expect(told('{"b":1,"a":2}')).toEqual([false, true, '{"a":2,"b":1}']);
    expect(told('[{"b":{"d":true,"c":null},"a":[{"f":"x","e":-1.5}]}]')).toEqual([
      ...[false, true, '[{"a":[{"e":-1.5,"f":"x"}],"b":{"c":null,"d":true}}]'],
    ]);
    expect(told('{"b":[],"a":{}}')).toEqual([false, true, '{"a":{},"b":[]}']);
    expect(told('{"a":1,"":2}')).toEqual([false, true, '{"":2,"a":1}']);
  });

  it("equals the long way for every value, however it is written, and with every limit", () => {
    const written = fc
      .tuple(fc.json({ maxDepth: 5 }), fc.constantFrom(undefined, 1, "\t"))
      .map(([text, indent]) => (indent === undefined ? text : JSON.stringify(JSON.parse(text), null, indent)));
    const options = fc.record(
      {
        maxDepth: fc.integer({ min: 1, max: 5 }),
        maxDigits: fc.constantFrom(1, 3, 14, 15, 1_000),
        maxExponent: fc.constantFrom(1, 323, 324, 10_000),
        allowNul: fc.boolean(),
        fractions: fc.constantFrom("exact" as const, "nearest" as const, "text" as const),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(written, options, (text, given) => {
        expect(short(text, given)).toEqual(long(text, given));
      }),
      { numRuns: 1_000 },
    );
  });

  it("equals the long way for texts that are spoiled in one place", () => {
    const tokens = fc.constantFrom(...'{}[]:,"\\u0e+-. \n1a', '"a":1,', "\\ud800", "1e2", "-0", "0.10");
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.nat({ max: 2 }), tokens, (text, place, dropped, token) => {
        const at = place % (text.length + 1);
        const spoiled = text.slice(0, at) + token + text.slice(at + dropped);
        expect(short(spoiled)).toEqual(long(spoiled));
      }),
      { numRuns: 3_000 },
    );
  });

  it("gives each that asks a value of its own, and none that could change the canonical form", () => {
    for (const text of ['{"b":{"c":1},"a":2}', '{"a":2,"b":{"c":1}}']) {
      const body = readJson(encode(text), {});
      const values = [body.value(), body.value()] as { b: { c: number } }[];
      for (const value of values) value.b.c = 7;
      expect(body.canonical()).toBe('{"a":2,"b":{"c":1}}');
      const later = [body.value(), body.value()] as { b: { c: number } }[];
      expect(later.map(({ b }) => b.c)).toEqual([1, 1]);
      expect(later[0]).not.toBe(later[1]);
    }
  });

  it("refuses UTF-8 that is none, also after it has refused another one", () => {
    for (const bytes of [[0x22, 0xff, 0x22], [0xc3], [0x22, 0xc3]]) {
      expect(() => readJson(Uint8Array.from(bytes), {})).toThrow(/not valid UTF-8/);
    }
    expect(readJson(encode('"é"'), {}).value()).toBe("é");
  });

  it("is taken only where all limits are those of plain texts", () => {
    const isShort = (text: string, options: Options = {}) => readJson(encode(text), options).ordinaryNumbers;
    expect(isShort('{"a":[1]}')).toBe(true);
    expect(isShort('{"a":1e0}')).toBe(false);
    for (const options of [{ maxDepth: 2 }, { maxDepth: 1_000 }, { maxDigits: 15 }, { fractions: "exact" } as const]) {
      expect(isShort('{"a":[1]}', options), JSON.stringify(options)).toBe(true);
    }
    expect(isShort("[1]", { maxDepth: 1 })).toBe(true);
    expect(isShort('{"a":[1]}', { fractions: "nearest" })).toBe(true);
    for (const options of [{ maxDigits: 14 }, { fractions: "text" } as const]) {
      expect(isShort('{"a":[1]}', options), JSON.stringify(options)).toBe(false);
    }
    expect(short("[0.5]", { fractions: "text" })).toMatchObject({ value: ["0.5"] });
    expect(short("123", { maxDigits: 2 })).toMatch(/too many digits/);
    expect(short("[[1]]", { maxDepth: 1 })).toMatch(/nested too deeply/);
  });

  it("refuses limits that there are not, as the long way does", () => {
    for (const maxDepth of [0, 1_001, Number.NaN]) {
      expect(() => readJson(encode("1"), { maxDepth })).toThrow(/maxDepth must be from 1/);
    }
  });
});
