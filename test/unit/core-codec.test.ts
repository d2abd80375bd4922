import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeValue, encodeValue } from "../../src/core/codec.ts";
import { stringifyJson } from "../../src/core/json/stringify.ts";

const text = (value: unknown) => new TextDecoder().decode(encodeValue(value).subarray(1));
const raw = (version: number, body: string) => new Uint8Array([version, ...new TextEncoder().encode(body)]);

const date = fc.date({ noInvalidDate: true });
const bytes = fc.uint8Array({ maxLength: 20 });
const wellFormed = fc.string({ unit: "grapheme", maxLength: 8 });
const name = fc.oneof(
  wellFormed,
  fc.constantFrom("$", "$$", "$date", "$$date", "$bytes", "$undefined", "__proto__", "0"),
);
const recordable = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(wellFormed, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
    fc.oneof(fc.bigInt(), date, bytes),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie("value")), { maxLength: 4 }).map((members) => Object.fromEntries(members)),
  ),
})).value;

describe("the value codec", () => {
  it("gives back what it took", () => {
    fc.assert(
      fc.property(recordable, (value) => assert.deepStrictEqual(decodeValue(encodeValue(value)), value)),
      { numRuns: 1_000 },
    );
    assert.equal(decodeValue(encodeValue(undefined)), undefined);
    assert.ok(Object.is(decodeValue(encodeValue(-0)), -0));
  });

  it("gives equal bytes for equal values whatever the order of their members", () => {
    const a = { b: 1, a: { d: new Date(5), c: 2n } };
    const b = { a: { c: 2n, d: new Date(5) }, b: 1 };
    assert.deepEqual(encodeValue(a), encodeValue(b));
    fc.assert(
      fc.property(recordable, (value) => {
        assert.deepEqual(encodeValue(decodeValue(encodeValue(value))), encodeValue(value));
      }),
    );
  });

  it("gives different bytes for different values", () => {
    const different = [undefined, null, "", 0, -0, 0n, "0", [], {}, new Date(0), new Uint8Array(), { $date: "x" }];
    expect(new Set(different.map(text)).size).toBe(different.length);
  });

  it("never takes a user's object for a tag", () => {
    for (const value of [
      { $date: "2026-01-01T00:00:00.000Z" },
      { $$date: 1 },
      { $undefined: true },
      { $bigint: "1", a: 1 },
    ]) {
      assert.deepStrictEqual(decodeValue(encodeValue(value)), value);
    }
  });

  it("has one frozen layout", () => {
    const value = { when: new Date(0), big: -12n, raw: new Uint8Array([0, 255]), $x: [1.5, "é", null], n: -0 };
    expect(encodeValue(value)[0]).toBe(1);
    expect(text(value)).toBe(
      '{"$$x":[1.5,"é",null],"big":{"$bigint":"-12"},"n":-0,"raw":{"$bytes":"AP8="},' +
        '"when":{"$date":"1970-01-01T00:00:00.000Z"}}',
    );
    expect(text(undefined)).toBe('{"$undefined":true}');
  });

  it("drops undefined members, takes objects without a prototype, and gives a Buffer back as plain bytes", () => {
    assert.deepStrictEqual(decodeValue(encodeValue({ a: undefined, b: 1 })), { b: 1 });
    assert.deepStrictEqual(decodeValue(encodeValue(Object.assign(Object.create(null), { a: 1 }))), { a: 1 });
    assert.deepStrictEqual(decodeValue(encodeValue(Buffer.from([1, 2]))), new Uint8Array([1, 2]));
  });

  it("refuses everything else, naming the path and not the value", () => {
    class Row {
      readonly secret = "secret";
    }
    const loop: unknown[] = [];
    loop.push({ inside: loop });
    const cases: [unknown, RegExp][] = [
      [{ a: { b: () => "secret" } }, /function.*\$\.a\.b/],
      [[Symbol("secret")], /symbol.*\$\[0\]/],
      [{ [Symbol("secret")]: 1 }, /symbol/],
      [{ row: new Row() }, /class.*\$\.row/],
      [new Map([["secret", 1]]), /class/],
      [new Set(["secret"]), /class/],
      [new Uint16Array(1), /class/],
      [Promise.resolve("secret"), /class/],
      [{ a: Number.NaN }, /NaN.*\$\.a/],
      [Number.POSITIVE_INFINITY, /Infinity/],
      [new Date(Number.NaN), /invalid/],
      ["secret\ud800", /surrogate/],
      [{ "\udc00": 1 }, /surrogate/],
      [[1, undefined], /undefined.*\$\[1\]/],
      [loop, /contains itself.*\$\[0\]\.inside/],
      [JSON.parse("[".repeat(5_000) + "]".repeat(5_000)), /deep/],
    ];
    for (const [value, message] of cases) {
      assert.throws(
        () => encodeValue(value),
        (error: Error & { code?: string }) => {
          assert.equal(error.code, "oncekey_value_unsupported");
          assert.match(error.message, message);
          return !error.message.includes("secret");
        },
      );
    }
  });

  it("takes the same object in two places, which is not a cycle", () => {
    const shared = { a: 1 };
    assert.deepStrictEqual(decodeValue(encodeValue([shared, shared])), [shared, shared]);
  });

  it("keeps __proto__ as data", () => {
    const value = JSON.parse('{"__proto__":{"admin":true}}') as object;
    const decoded = decodeValue(encodeValue(value)) as { admin?: boolean };
    assert.ok(Object.hasOwn(decoded, "__proto__"));
    assert.equal(decoded.admin, undefined);
  });

  it("knows a newer version from a broken value", () => {
    assert.throws(() => decodeValue(raw(2, "1")), { code: "idempotency_version_unknown" });
    const broken = [new Uint8Array(), raw(0, "1"), raw(1, ""), raw(1, "{"), raw(1, '{"$date":"never"}')];
    broken.push(raw(1, '{"$what":"1"}'), raw(1, '{"$bigint":"1.5"}'), raw(1, '{"$bigint":"1","a":1}'));
    broken.push(raw(1, '{"$undefined":false}'), new Uint8Array([1, 0x22, 0xff, 0x22]));
    for (const bytes of broken) assert.throws(() => decodeValue(bytes), { code: "oncekey_store_broken" });
  });

  it.each([
    ["a number that JSON cannot hold", "1e999"],
    ["a byte order mark", "\ufeff1"],
    ["undefined in an array", '[{"$undefined":true}]'],
    ["undefined in a member", '{"a":{"$undefined":true}}'],
    ["a tag with the content of another", '{"$date":true}'],
    ["a tag that there is not, around bytes", '{"$what":"AQ=="}'],
    ["a tag that there is not, around a date", '{"$what":"1970-01-01T00:00:00.000Z"}'],
    ["bytes that are not spelled as they were written", '{"$bytes":"AR=="}'],
    ["bytes without their padding", '{"$bytes":"AQ"}'],
    ["a date that is not spelled as it was written", '{"$date":"1970-01-01"}'],
    ["a whole number with a leading zero", '{"$bigint":"01"}'],
    ["a negative zero", '{"$bigint":"-0"}'],
    ["a tag without content", '{"$date":null}'],
  ])("takes %s for damage, and for no other value", (_, text) => {
    assert.throws(() => decodeValue(raw(1, text)), { code: "oncekey_store_broken" });
  });

  it("reads as deep as it writes, and no deeper", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    assert.deepEqual(decodeValue(raw(1, nested(1_000))), JSON.parse(nested(1_000)));
    assert.deepEqual(encodeValue(JSON.parse(nested(1_000))), raw(1, nested(1_000)));
    assert.throws(() => decodeValue(raw(1, nested(1_001))), { code: "oncekey_store_broken" });
    assert.throws(() => encodeValue(JSON.parse(nested(1_001))), /deep/);
  });
});

describe("writing JSON", () => {
  it("writes what JSON.stringify writes", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        expect(stringifyJson(value)).toBe(JSON.stringify(value));
      }),
    );
    const value = {
      when: new Date(0),
      gone: undefined,
      call: () => 1,
      list: [undefined, () => 1, -0],
      boxed: [Object(1), Object("a"), Object(true)],
      custom: { toJSON: (name: string) => `as ${name}` },
      buffer: Buffer.from("a"),
      url: new URL("http://localhost/a"),
      __proto: 1,
    };
    expect(stringifyJson(value)).toBe(JSON.stringify(value));
  });

  it("writes a bigint with its exact digits, even where somebody patched BigInt", () => {
    expect(stringifyJson({ amount: 9007199254740993n, boxed: Object(-5n) })).toBe(
      '{"amount":9007199254740993,"boxed":-5}',
    );
    const prototype = BigInt.prototype as { toJSON?: () => string };
    prototype.toJSON = () => "patched";
    try {
      expect(stringifyJson([1n])).toBe("[1]");
    } finally {
      delete prototype.toJSON;
    }
  });

  it("refuses what JSON.stringify would spoil or lose", () => {
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    const spoiled = [Number.NaN, [Number.POSITIVE_INFINITY], new Date(Number.NaN), "\ud800", { "\udc00": 1 }, loop];
    const lost = [
      new Map(),
      new Set(),
      Promise.resolve(),
      /a/,
      new Uint8Array(1),
      new ArrayBuffer(1),
      new DataView(new ArrayBuffer(1)),
    ];
    const nothing = [undefined, () => 1, Symbol("a"), { toJSON: () => undefined }];
    for (const value of [...spoiled, ...lost, ...nothing]) {
      assert.throws(() => stringifyJson(value), { code: "oncekey_value_unsupported" });
    }
  });
});
