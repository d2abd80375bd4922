import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { canonicalValue } from "../../src/core/json/canonical.ts";
import { stringifyJson } from "../../src/core/json/stringify.ts";
import { setMember } from "../../src/core/json/trail.ts";

const canonical = (value: unknown) => new TextDecoder().decode(canonicalValue(value));

it("toJSON is told the name that a value stands under, and none for the whole", () => {
  const named = { toJSON: (name: string) => `<${name}>` };
  expect(stringifyJson(named)).toBe('"<>"');
  expect(stringifyJson({ a: named, b: [named] })).toBe('{"a":"<a>","b":["<0>"]}');
});

it("nothing is no response and no message, and is called by its kind", () => {
  for (const [value, kind] of [[undefined, "undefined"] as const, [() => 1, "function"] as const]) {
    expect(() => stringifyJson(value)).toThrow(`A response or message needs a value, not ${kind}`);
  }
  expect(stringifyJson({ a: undefined })).toBe("{}");
});

it("plain objects of another realm, and those without a prototype, are compared as others are", () => {
  for (const value of [
    runInNewContext("({ b: 1, a: { c: 2 } })"),
    Object.assign(Object.create(null), { b: 1, a: { c: 2 } }),
  ]) {
    expect(canonical(value)).toBe('{"a":{"c":2},"b":1}');
  }
  class Money {
    amount = 1;
  }
  for (const value of [new Money(), Object.create({ a: 1 })]) {
    expect(() => canonical(value)).toThrow("An instance of a class cannot be compared");
  }
});

it("a member named __proto__ is data like any other: it can be listed, changed and removed", () => {
  const target: Record<string, unknown> = {};
  setMember(target, "__proto__", 1);
  setMember(target, "a", 2);
  const data = { writable: true, enumerable: true, configurable: true };
  expect(Object.getOwnPropertyDescriptors(target)).toEqual({
    ["__proto__"]: { value: 1, ...data },
    a: { value: 2, ...data },
  });
  expect(Object.getPrototypeOf(target)).toBe(Object.prototype);
});
