import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, canonicalValue, unsafeNumberPath } from "../../src/core/json/canonical.ts";
import { parseJson } from "../../src/core/json/parse.ts";
import { stringifyJson } from "../../src/core/json/stringify.ts";
import { type JsonValueOptions, jsonValue } from "../../src/core/json/value.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const value = (text: string, options?: JsonValueOptions) => jsonValue(parseJson(encode(text)), options);
const canonical = (given: unknown) => decode(canonicalValue(given));

describe("the value of a JSON text", () => {
  it("is a number for integers up to 2^53 - 1 and a bigint beyond", () => {
    expect(value("[9007199254740991, -9007199254740991]")).toEqual([9007199254740991, -9007199254740991]);
    expect(value("[9007199254740992, 9007199254740993]")).toEqual([9007199254740992n, 9007199254740993n]);
    expect(value("-9007199254740993")).toBe(-9007199254740993n);
    expect(value("[1.0, 1e3, 10e-1, 0e5]")).toEqual([1, 1000, 1, 0]);
    assert.ok(Object.is(value("-0"), 0));
    expect(value("1e30")).toBe(10n ** 30n);
  });

  it("takes a fraction whose double prints as the same decimal, and refuses any other with its path", () => {
    expect(value("[0.1, 1.50, 1e-7, -2.5]")).toEqual([0.1, 1.5, 1e-7, -2.5]);
    for (const text of ["0.1000000000000000055", "1e-400", "123456789012345678.5", "0.30000000000000004001"]) {
      expect(() => value(`{"items":[{"price":${text}}]}`)).toThrow(/\$\.items\[0\]\.price has more digits/);
    }
  });

  it("gives every number that is not an integer as exact text where the operation asks for it", () => {
    expect(value("[0.1000000000000000055, 2.50, 1e-400, 3.0, 7]", { fractions: "text" })).toEqual([
      "0.1000000000000000055",
      "2.5",
      "1e-400",
      3,
      7,
    ]);
  });

  it("is the nearest number for what was not written for us", () => {
    const text = "[0.1000000000000000055, 2.50, 1e-400, 123456789012345678.5]";
    expect(value(text, { fractions: "nearest" })).toEqual([0.1, 2.5, 0, 123456789012345680]);
    expect(value("9007199254740993", { fractions: "nearest" })).toBe(9007199254740993n);
    expect(() => value(text, { fractions: "exact" })).toThrow(/more digits/);
  });

  it("does not let a few bytes grow into a huge integer", () => {
    expect(() => value("[1e401]")).toThrow(/\$\[0\] is too large/);
    expect(value("1e400")).toBe(10n ** 400n);
  });

  it("keeps __proto__ and constructor as data and pollutes nothing", () => {
    const parsed = value('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}') as object;
    expect(Object.hasOwn(parsed, "__proto__")).toBe(true);
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    expect((parsed as { admin?: boolean }).admin).toBeUndefined();
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it("equals JSON.parse wherever JSON.parse loses nothing", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (given) => {
        const text = JSON.stringify(given);
        fc.pre(!text.includes("\\u0000") && unsafeNumberPath(given) === null);
        assert.deepStrictEqual(value(text), JSON.parse(text));
      }),
    );
  });

  it("survives being written again, digits included", () => {
    const digits = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n });
    fc.assert(
      fc.property(digits, (number) => {
        expect(stringifyJson(value(`{"n":${number}}`))).toBe(`{"n":${number}}`);
      }),
    );
  });
});

describe("the canonical form of a value", () => {
  it("equals the canonical form of the same JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (given) => {
        const text = JSON.stringify(given);
        fc.pre(!text.includes("\\u0000"));
        expect(canonical(JSON.parse(text))).toBe(decode(canonicalJson(parseJson(encode(text)))));
      }),
    );
    const exact = '{"n":123456789012345678901234567890,"a":[1e400,-9007199254740993]}';
    expect(canonical(value(exact))).toBe(decode(canonicalJson(parseJson(encode(exact)))));
  });

  it("makes a bigint equal to the number of the same value, and -0 to 0", () => {
    expect(canonical(10n)).toBe(canonical(10));
    expect(canonical(10n ** 21n)).toBe(canonical(1e21));
    expect(canonical(-0)).toBe(canonical(0));
    expect(canonical(0n)).toBe(canonical(-0));
    expect(canonical(-(10n ** 21n))).toBe("-1e+21");
    expect(canonical(-1234567890123456789012n)).toBe("-1.234567890123456789012e+21");
    expect([canonical(-12n), canonical(0n), canonical(-0)]).toEqual(["-12", "0", "0"]);
  });

  it("is frozen for what JSON lacks: two dates, or two pieces of bytes, are never one", () => {
    expect(canonical(new Date(0))).toBe('@"1970-01-01T00:00:00.000Z"');
    expect(canonical(new Uint8Array([1]))).toBe('#"AQ=="');
    expect(canonical(undefined)).toBe("undefined");
    expect(canonical({ b: [undefined], a: new Date(1) })).toBe('{"a":@"1970-01-01T00:00:00.001Z","b":[undefined]}');
  });

  it("keeps every two different things apart", () => {
    const different = [
      undefined,
      null,
      "undefined",
      "null",
      "1",
      1,
      true,
      "true",
      "",
      [],
      {},
      [undefined],
      [null],
      [[]],
      new Date(0),
      new Date(0).toISOString(),
      `@"${new Date(0).toISOString()}"`,
      0,
      new Uint8Array([1]),
      [1],
      "AQ==",
      '#"AQ=="',
      { $date: new Date(0).toISOString() },
      { a: null },
      { a: "" },
    ];
    expect(new Set(different.map(canonical)).size).toBe(different.length);
  });

  it("takes undefined members as absent", () => {
    expect(canonical({ a: 1, b: undefined })).toBe(canonical({ a: 1 }));
  });

  it("refuses what it cannot compare, naming the path and not the value", () => {
    class Money {
      readonly secret = "secret";
    }
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    const cases: [unknown, string, RegExp][] = [
      [{ a: [new Money()] }, "oncekey_value_unsupported", /\$\.a\[0\]/],
      [new Map([["secret", 1]]), "oncekey_value_unsupported", /class/],
      [{ f: () => 1 }, "oncekey_value_unsupported", /\$\.f/],
      [{ a: Number.NaN }, "oncekey_value_unsupported", /\$\.a/],
      [{ a: new Date(Number.NaN) }, "oncekey_value_unsupported", /invalid/],
      [loop, "oncekey_value_unsupported", /contains itself/],
      [{ "secret name": "\ud800" }, "idempotency_request_invalid", /\$\[\?\]/],
    ];
    for (const [given, code, message] of cases) {
      const error = thrown(() => canonicalValue(given));
      expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
      expect((error as Error).message).not.toContain("secret");
    }
  });

  it("refuses hostile depth as the client's fault", () => {
    const deep = JSON.parse("[".repeat(5_000) + "]".repeat(5_000)) as unknown;
    expect(thrown(() => canonicalValue(deep))).toMatchObject({ code: "idempotency_request_invalid" });
    expect(unsafeNumberPath(deep)).toBeNull();
  });
});

describe("the search for unsafe numbers", () => {
  it("goes as deep as any form can be written, and no deeper", () => {
    const inside = (levels: number) => JSON.parse(`${"[".repeat(levels)}1e400${"]".repeat(levels)}`) as unknown;
    expect(unsafeNumberPath(inside(1_000))).toBe(`$${"[0]".repeat(1_000)}`);
    expect(unsafeNumberPath(inside(1_001))).toBeNull();
    expect(thrown(() => canonicalValue(inside(1_001)))).toMatchObject({ code: "idempotency_request_invalid" });
  });

  it("finds what an ordinary parser may have changed", () => {
    expect(unsafeNumberPath(JSON.parse('{"a":[1,{"amount":9007199254740993}]}'))).toBe("$.a[1].amount");
    expect(unsafeNumberPath(JSON.parse("[1e400]"))).toBe("$[0]");
    expect(unsafeNumberPath(JSON.parse("-9007199254740992"))).toBe("$");
    expect(unsafeNumberPath(JSON.parse('{"a":[9007199254740991,0.1,null,"9007199254740993"]}'))).toBeNull();
  });
});

function thrown(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
