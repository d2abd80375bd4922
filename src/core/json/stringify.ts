import { type Fail, type WriteRules, writeText } from "./write.ts";

/** Objects that JSON.stringify silently empties (a Map, a forgotten `await`) or spells out byte by byte. */
const EMPTIED = new Set(["Map", "Set", "WeakMap", "WeakSet", "Promise", "ArrayBuffer", "SharedArrayBuffer", "RegExp"]);

const rules: WriteRules = {
  prepare: unwrap,
  number: (value) => JSON.stringify(value),
  bigint: (value) => value.toString(),
  object: refuseEmptied,
  absent: (value, place, fail) => {
    if (place === "top") fail(`A response or message needs a value, not ${typeof value}`);
    return undefined;
  },
  memberName: (name) => name,
  sorted: false,
  dataCode: "oncekey_value_unsupported",
  advice: "Nothing was written. Convert the value to plain JSON data first.",
};

/**
 * JSON text of a value, as `JSON.stringify` writes it (`toJSON`, dropped undefined members, member order kept), except
 * that a `bigint` is written with its exact digits as a JSON number. Raises `oncekey_value_unsupported`, naming the path,
 * for what JSON.stringify would lose or spoil: NaN, Infinity, invalid dates, lone surrogates, cycles, Map, Set, promises,
 * raw bytes, a top-level undefined or function.
 */
export function stringifyJson(value: unknown): string {
  return writeText(value, rules);
}

function unwrap(value: unknown, name: string, fail: Fail): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date && Number.isNaN(value.getTime())) fail("The date is invalid");
  const { toJSON } = value as { toJSON?: unknown };
  const plain: unknown = typeof toJSON === "function" ? toJSON.call(value, name) : value;
  const boxed = plain instanceof Number || plain instanceof String || plain instanceof Boolean;
  return boxed || plain instanceof BigInt ? plain.valueOf() : plain;
}

function refuseEmptied(value: object, fail: Fail): undefined {
  const tag = Object.prototype.toString.call(value).slice("[object ".length, -1);
  if (EMPTIED.has(tag) || ArrayBuffer.isView(value)) fail(`JSON cannot hold a ${tag}`);
  return undefined;
}
