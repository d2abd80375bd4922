import type { JsonNode } from "./node.ts";
import { decimalText, integerDecimal } from "./number.ts";
import { MAX_VALUE_DEPTH, pathOf } from "./trail.ts";
import { type Fail, isPlainObject, type WriteRules, writeText } from "./write.ts";

/**
 * The canonical form of a JSON text: RFC 8785 (no whitespace, members in the order of their UTF-16 code units, minimal
 * escapes, no Unicode normalisation), except that numbers never pass through a double. For numbers that a double holds the
 * result is RFC 8785's own. Two texts have equal canonical forms exactly if they hold equal values.
 */
export function canonicalJson(node: JsonNode): Uint8Array {
  return new TextEncoder().encode(canonicalText(node));
}

/** The same as text. */
export function canonicalText(node: JsonNode): string {
  switch (node.kind) {
    case "object": {
      const members = [...node.members].sort(([a], [b]) => (a < b ? -1 : 1));
      return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${canonicalText(value)}`).join(",")}}`;
    }
    case "array":
      return `[${node.elements.map(canonicalText).join(",")}]`;
    case "string":
      return JSON.stringify(node.text);
    case "number":
      return decimalText(node);
    case "literal":
      return String(node.value);
  }
}

// What JSON lacks is marked by a character that begins no JSON value, so that it can never equal one: @"…" a date, #"…"
// bytes, undefined. Frozen with the fingerprint's version.
const rules: WriteRules = {
  // -0 too is written as 0.
  number: (value) => JSON.stringify(value),
  bigint: (value) => decimalText(integerDecimal(value)),
  object: markedText,
  absent(value, place, fail) {
    if (value !== undefined) fail(`A ${typeof value} cannot be compared`);
    return place === "member" ? undefined : "undefined";
  },
  memberName: (name) => name,
  sorted: true,
  dataCode: "idempotency_request_invalid",
  advice:
    "Nothing was run or stored. Let the schema give plain data, Date, bigint or Uint8Array (convert others in run), " +
    'or use compare: "wire".',
};

/**
 * The canonical form of an ordinary value: a body that a framework parsed, or validated input. Equals
 * {@link canonicalJson} of the same JSON. Numbers by their shortest exact decimal; a bigint equals the number of the same
 * value; a Date differs from its text and bytes from theirs; undefined members count as absent. Raises
 * `oncekey_value_unsupported` for class instances, functions, NaN and cycles, `idempotency_request_invalid` for lone
 * surrogates and excess depth, which a client's data can cause; both name the path.
 */
export function canonicalValue(value: unknown): Uint8Array {
  return new TextEncoder().encode(writeText(value, rules));
}

function markedText(value: object, fail: Fail): string | undefined {
  if (Array.isArray(value)) return undefined;
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) fail("The date is invalid");
    return `@"${value.toISOString()}"`;
  }
  if (value instanceof Uint8Array) return `#"${Buffer.from(value).toString("base64")}"`;
  if (!isPlainObject(value)) fail("An instance of a class cannot be compared");
  return undefined;
}

/**
 * The path of the first number that an ordinary parser may have spoiled: an integer beyond ±(2^53 − 1), or an infinity
 * (1e400); `null` where there is none. Two different requests may hold the same such number, so it must not be compared.
 */
export function unsafeNumberPath(value: unknown): string | null {
  const names: (string | number)[] = [];
  return holdsUnsafe(value, names) ? pathOf(names) : null;
}

// Leaves `names` at the number it found.
function holdsUnsafe(value: unknown, names: (string | number)[]): boolean {
  if (typeof value === "number") return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  // Deeper than any form can be written; canonicalValue refuses it with a clear error.
  if (typeof value !== "object" || value === null || names.length >= MAX_VALUE_DEPTH) return false;
  const members = Array.isArray(value) ? value.entries() : Object.entries(value);
  for (const [name, member] of members) {
    names.push(name);
    if (holdsUnsafe(member, names)) return true;
    names.pop();
  }
  return false;
}
