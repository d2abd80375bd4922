import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { changedBody, decimalBody, restyledBody, withKeyMember, withNumber } from "../../src/verify/bodies.ts";
import { literalPaths, parseJsonText, pathOfPointer, withLiteral, writeJsonText } from "../../src/verify/json-text.ts";

const json = (text: string) => ({ body: Buffer.from(text), contentType: "application/json; charset=utf-8" });
const form = (text: string) => ({ body: Buffer.from(text), contentType: "application/x-www-form-urlencoded" });
const textOf = (body: Buffer | null) => body?.toString("utf8") ?? null;

describe("JSON as text", () => {
  it("is written as it was read, whatever the value and however it is styled", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.boolean(), fc.boolean(), (value, reversed, spaced) => {
        const tree = parseJsonText(JSON.stringify(value, null, 1));
        expect(tree && writeJsonText(tree)).toBe(JSON.stringify(value));
        expect(JSON.parse(tree === null ? "" : writeJsonText(tree, { reversed, spaced }))).toEqual(
          JSON.parse(JSON.stringify(value)),
        );
      }),
    );
  });

  it("keeps digits, escapes and members of one name that a parser would lose", () => {
    const text = '{"a":9007199254740993,"b":1.50e+400,"a":"\\u0041\\"}{","":[[],{}]}';
    const tree = parseJsonText(text);
    expect(tree && writeJsonText(tree)).toBe(text);
  });

  it.each(["", "{", "[1,]", "{'a':1}", "nul", '"\u0001"', "1 2"])("is none: %j", (text) => {
    expect(parseJsonText(text)).toBeNull();
  });

  it("finds literals, those near the top first, and changes one of them", () => {
    const tree = parseJsonText('{"x":{"deep":1},"list":[true,"s"],"y/z":2}') ?? { kind: "literal" as const, text: "" };
    expect(literalPaths(tree).map(({ path }) => path.join("."))).toEqual(["y/z", "x.deep", "list.0", "list.1"]);
    const changed = withLiteral(tree, pathOfPointer("/list/1") ?? [], "null");
    expect(changed && writeJsonText(changed)).toBe('{"x":{"deep":1},"list":[true,null],"y/z":2}');
    const added = withLiteral(tree, pathOfPointer("/x/new") ?? [], "3");
    expect(added && writeJsonText(added)).toContain('"x":{"deep":1,"new":3}');
    expect(withLiteral(tree, ["list", "9"], "1")).toBeNull();
    expect(withLiteral(tree, ["y/z", "below"], "1")).toBeNull();
  });

  it("reads JSON Pointers, and refuses what is none", () => {
    expect(pathOfPointer("")).toEqual([]);
    expect(pathOfPointer("/a~1b/~0/0")).toEqual(["a/b", "~", "0"]);
    expect(pathOfPointer("a")).toBeNull();
    expect(pathOfPointer("/a~2")).toBeNull();
  });
});

describe("a body that was changed", () => {
  it.each([
    [json('{"name":"x","amount":100}'), '{"name":"x","amount":101}'],
    [json('{"amount":9007199254740992}'), '{"amount":9007199254740993}'],
    [json('{"name":"x"}'), '{"name":"xx"}'],
    [json("[]"), null],
    [form("name=a&amount=5"), "name=a&amount=6"],
    [form("name=a%20b"), "name=a%20bx"],
    [{ body: Buffer.from("plain"), contentType: "text/plain" }, null],
    [{ body: null, contentType: null }, null],
  ])("is another request (%#)", (given, expected) => {
    expect(textOf(changedBody(given))).toBe(expected);
  });

  it("is the same request in other bytes", () => {
    const given = json('{"a":1,"b":{"c":"x","d":2}}');
    expect(textOf(restyledBody(given, { reversed: true }))).toBe('{"b":{"d":2,"c":"x"},"a":1}');
    const spaced = textOf(restyledBody(given, { spaced: true })) ?? "";
    expect(spaced).toMatch(/\s/);
    expect(JSON.parse(spaced)).toEqual({ a: 1, b: { c: "x", d: 2 } });
    expect(textOf(decimalBody(given))).toBe('{"a":1.0,"b":{"c":"x","d":2}}');
    expect(restyledBody(json('{"a":1}'), { reversed: true })).toBeNull();
    expect(decimalBody(json('{"a":"1"}'))).toBeNull();
  });

  it("holds a number of all its digits where it is wanted", () => {
    const given = json('{"a":1,"b":{"c":"x"}}');
    expect(textOf(withNumber(given, null, "9007199254740993"))).toBe('{"a":9007199254740993,"b":{"c":"x"}}');
    expect(textOf(withNumber(given, ["b", "n"], "7"))).toBe('{"a":1,"b":{"c":"x","n":7}}');
    expect(withNumber(json('{"a":"x"}'), null, "7")).toBeNull();
  });

  it("holds the key, once", () => {
    expect(textOf(withKeyMember(json('{"a":1,"key":"old"}'), "key", "new"))).toBe('{"key":"new","a":1}');
    expect(textOf(withKeyMember(form("a=1&key=old"), "key", "a b"))).toBe("key=a%20b&a=1");
    expect(textOf(withKeyMember(json('{"a":1}'), "key", null))).toBe('{"a":1}');
    expect(withKeyMember(json("[1]"), "key", "new")).toBeNull();
  });
});
