import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OncekeyError } from "../../src/core/errors.ts";
import { canonicalJson } from "../../src/core/json/canonical.ts";
import { parseJson } from "../../src/core/json/parse.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const canonical = (text: string) => new TextDecoder().decode(canonicalJson(parseJson(bytes(text))));
const refusal = (run: () => unknown): OncekeyError => {
  try {
    run();
  } catch (error) {
    if (error instanceof OncekeyError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
};
const refused = (text: string) => refusal(() => parseJson(bytes(text)));

describe("the JSON parser", () => {
  const malformed: Record<string, string> = {
    "an empty text": "",
    "spaces only": " \n",
    "a trailing comma in an object": '{"a":1,}',
    "a trailing comma in an array": "[1,]",
    "a leading comma": "[,1]",
    "a missing comma": "[1 2]",
    "a missing colon": '{"a" 1}',
    "another sign than a colon": '{"a";1}',
    "a member without a name": "{1:2}",
    "a name with another sign than its first quote": '{xa":1}',
    "an open object": '{"a":1',
    "an open array": "[1",
    "a wrong bracket": '{"a":1]',
    "trailing text": "{} {}",
    "a leading zero": "01",
    "a leading zero after a minus": "-01",
    "a plus sign": "+1",
    "a bare minus": "-",
    "a bare point": ".5",
    "a point without digits": "1.",
    "a point before the exponent": "1.e3",
    "an exponent without digits": "1e",
    "an exponent with a sign only": "1e+",
    "a hexadecimal number": "0x10",
    NaN: "NaN",
    Infinity: "-Infinity",
    "a capital literal": "True",
    "a cut literal": "tru",
    "a longer literal": "nullx",
    "single quotes": "{'a':1}",
    "a comment": "[1/**/]",
    "an open string": '"a',
    "a string that ends in an escape": '"a\\',
    "an unknown escape": '"\\x41"',
    "another escape with four digits": '"\\x0041"',
    "an unicode escape that ends in other characters": '"\\u12g4"',
    "a short unicode escape": '"\\u12"',
    "an unicode escape of other characters": '"\\u00g0"',
    "a raw tab in a string": '"a\tb"',
    "a raw line feed in a string": '"a\nb"',
    "a raw NUL in a string": '"\0"',
    "a form feed between tokens": "[1,\f2]",
    "a no-break space between tokens": "[1,\u00a02]",
    "two byte order marks": "\ufeff\ufeff{}",
    "a byte order mark at the end": "{}\ufeff",
  };
  for (const [what, text] of Object.entries(malformed)) {
    it(`refuses ${what}`, () => {
      expect(refused(text).code).toBe("idempotency_request_invalid");
    });
  }

  it("says what is missing", () => {
    const said: Record<string, string> = {
      '{"a";1}': 'character 4: expected ":"',
      "{a:1}": 'character 1: expected """',
      "[1;2]": 'character 2: expected "," or "]"',
      '{"a":1;': 'character 6: expected "," or "}"',
      "[,1]": "character 1: expected a value",
      "[": "character 1: expected a value",
      '"a': "character 2: a string does not end",
      '"a\tb"': "character 2: a control character stands in a string",
    };
    for (const [text, message] of Object.entries(said)) expect(refused(text).message, text).toContain(message);
  });

  it("refuses a repeated member name, also when only unescaping makes it equal", () => {
    expect(refused('{"a":1,"a":2}').message).toContain("repeated");
    expect(refused('{"a":1,"\\u0061":2}').message).toContain("repeated");
    expect(refused('{"x":[{"b":1,"b":1}]}').message).toContain("repeated");
    expect(refused('{"__proto__":1,"__proto__":2}').message).toContain("repeated");
    expect(canonical('{"a":{"a":1},"b":{"a":1}}')).toBe('{"a":{"a":1},"b":{"a":1}}');
  });

  it("refuses lone surrogates in values and names, and takes pairs in every spelling", () => {
    for (const text of ['"\\ud83d"', '"\\ude00"', '"\\ude00\\ud83d"', '{"\\ud800":1}', '"\\ud83d😀"']) {
      expect(refused(text).message).toContain("lone surrogate");
    }
    expect(canonical('"\\ud83d\\ude00"')).toBe('"😀"');
    expect(canonical('"😀"')).toBe('"😀"');
  });

  it("refuses malformed UTF-8 instead of replacing it", () => {
    for (const broken of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
      const text = new Uint8Array([0x22, ...broken, 0x22]);
      expect(refusal(() => parseJson(text)).code).toBe("idempotency_request_invalid");
    }
    expect(refusal(() => parseJson(new Uint8Array([0xff, 0xfe, 0x31, 0x00]))).message).toContain("UTF-8");
  });

  it("refuses the NUL character unless it is allowed", () => {
    expect(refused('"a\\u0000"').message).toContain("U+0000");
    expect(refused('{"\\u0000":1}').message).toContain("U+0000");
    expect(parseJson(bytes('"\\u0000"'), { allowNul: true })).toEqual({ kind: "string", text: "\0" });
  });

  it("skips one leading byte order mark", () => {
    expect(canonical('\ufeff{"a":1}')).toBe('{"a":1}');
  });

  it("names the position and never the content", () => {
    const error = refused('{"secret_name":"secret_value" oops}');
    expect(error.message).toContain("character 30");
    expect(error.message).not.toMatch(/secret|oops/);
  });

  it("holds the depth limit exactly and survives hostile depth", () => {
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    expect(canonical(nested(64))).toBe(nested(64));
    expect(refused(nested(65)).message).toContain("deep");
    expect(refused("[".repeat(10_000)).message).toContain("deep");
    expect(refused('{"a":'.repeat(10_000)).message).toContain("deep");
    expect(parseJson(bytes(nested(1000)), { maxDepth: 1000 }).kind).toBe("array");
    expect(refusal(() => parseJson(bytes("1"), { maxDepth: 1001 })).code).toBe("oncekey_config_invalid");
    expect(refusal(() => parseJson(bytes("1"), { maxDepth: Number.NaN })).code).toBe("oncekey_config_invalid");
  });

  it("refuses absurd digits and exponents without expanding them", () => {
    for (const text of ["1e999999999", "1e-999999999", "1e10001", "0e10001", `1e${"9".repeat(1_000_000)}`]) {
      expect(refused(text).message).toContain("exponent");
    }
    for (const text of ["1".repeat(1001), `0.${"0".repeat(1000)}1`, "9".repeat(1_000_000)]) {
      expect(refused(text).message).toContain("digits");
    }
    expect(canonical("1e10000")).toBe("1e+10000");
    // Zeros in front count: so many digits are nobody's exponent.
    expect(canonical(`1e${"0".repeat(19)}1`)).toBe("10");
    expect(refused(`1e${"0".repeat(20)}1`).message).toContain("exponent");
    expect(canonical("1".repeat(1000))).toHaveLength(1 + 1 + 999 + 5);
  });

  it("accepts and refuses the same texts as JSON.parse, but for its own stricter rules", () => {
    const fragment = fc.constantFrom(
      ...["{", "}", "[", "]", ",", ":", '"a"', '"b"', "1", "-", "0", ".5", "e1", "true", "null", " ", "\\", '"'],
    );
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 12 }), (fragments) => {
        const text = fragments.join("");
        let expected = true;
        try {
          JSON.parse(text);
        } catch {
          expected = false;
        }
        let actual = true;
        try {
          parseJson(bytes(text));
        } catch (error) {
          actual = (error as Error).message.includes("repeated");
        }
        expect(actual).toBe(expected);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("the canonical form of JSON", () => {
  it("is RFC 8785's own for the examples of that RFC", () => {
    const sample = `{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`;
    // The first number has one digit more than a double keeps: RFC 8785 gives …333, exact decimals keep it.
    expect(canonical(sample)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
    const names = '{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7}';
    expect(canonical(names)).toBe('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}');
  });

  it("escapes only what must be escaped", () => {
    expect(canonical('"\\b\\t\\n\\f\\r\\u001f\\u007f\\u2028\\/\\u003c"')).toBe(
      '"\\b\\t\\n\\f\\r\\u001f\u007f\u2028/<"',
    );
  });

  it("spells numbers as ECMAScript does, at every border of its format", () => {
    const spellings: Record<string, string> = {
      "0": "0",
      "-0": "0",
      "-0.0e5": "0",
      "100": "100",
      "1e20": "100000000000000000000",
      "1e21": "1e+21",
      "123456789012345678901": "123456789012345678901",
      "1234567890123456789012": "1.234567890123456789012e+21",
      "123456789012345678901.5": "123456789012345678901.5",
      "1234567890123456789012.5": "1.2345678901234567890125e+21",
      "0.12": "0.12",
      "0.0000012": "0.0000012",
      "0.00000012": "1.2e-7",
      "0.000001": "0.000001",
      "0.0000001": "1e-7",
      "-1.5E-7": "-1.5e-7",
      "12.50": "12.5",
      "0.10": "0.1",
      "1e400": "1e+400",
    };
    for (const [written, spelled] of Object.entries(spellings)) expect(canonical(written)).toBe(spelled);
  });

  it("is RFC 8785's text for every number that a double holds", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(canonical(JSON.stringify(value))).toBe(JSON.stringify(value));
        if (value !== 0) expect(canonical(value.toExponential())).toBe(JSON.stringify(value));
      }),
      { numRuns: 2_000 },
    );
  });

  it("is equal for two numbers exactly if their decimal values are equal", () => {
    const number = fc.record({
      negative: fc.boolean(),
      whole: fc.nat({ max: 1000 }),
      fraction: fc.string({ unit: fc.constantFrom("0", "1", "5"), maxLength: 4 }),
      exponent: fc.integer({ min: -5, max: 5 }),
    });
    type Written = { negative: boolean; whole: number; fraction: string; exponent: number };
    const text = ({ negative, whole, fraction, exponent }: Written) =>
      `${negative ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}e${exponent}`;
    // The reference: the number times 10^20, in integer arithmetic.
    const scaled = ({ negative, whole, fraction, exponent }: Written) =>
      BigInt(`${whole}${fraction}`) * 10n ** BigInt(20 + exponent - fraction.length) * (negative ? -1n : 1n);
    fc.assert(
      fc.property(number, number, (a, b) => {
        expect(canonical(text(a)) === canonical(text(b))).toBe(scaled(a) === scaled(b));
      }),
      { numRuns: 3_000 },
    );
    fc.assert(
      fc.property(number, fc.integer({ min: 0, max: 6 }), (a, zeros) => {
        const respelled = { ...a, fraction: a.fraction + "0".repeat(zeros) };
        expect(canonical(text(respelled))).toBe(canonical(text(a)));
        expect(scaled(respelled)).toBe(scaled(a));
      }),
    );
  });

  it("keeps apart integers of any size that differ in one digit", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n }), fc.bigInt({ min: 1n, max: 9n }), (a, step) => {
        expect(canonical(String(a))).not.toBe(canonical(String(a + step)));
        expect(canonical(String(a))).toBe(canonical(`${a}.0e0`));
      }),
    );
  });

  it("does not depend on the order of members, and parses back to the same value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4, stringUnit: "grapheme" }), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!text.includes("\\u0000"));
        const other = JSON.stringify(reversed(value));
        expect(canonical(other)).toBe(canonical(text));
        expect(JSON.stringify(reversed(JSON.parse(canonical(text))))).toBe(other);
      }),
    );
  });
});

// The same value with the members of every object in descending order.
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const out = Object.create(null) as Record<string, unknown>;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? 1 : -1));
  for (const [name, member] of entries) out[name] = reversed(member);
  return out;
}
