import { OncekeyError } from "./errors.ts";
import { MAX_VALUE_DEPTH, setMember } from "./json/trail.ts";
import { type Fail, isPlainObject, type Place, type WriteRules, writeText } from "./json/write.ts";

/** Version of the encoding below. Frozen: another layout gets another byte. */
const CODEC_VERSION = 1;

/*
 * Layout: the version byte, then JSON text in UTF-8, members sorted. What JSON lacks is an object with one tag member:
 * {"$date":"2026-01-31T12:00:00.000Z"}, {"$bigint":"-12"}, {"$bytes":"base64"}, {"$undefined":true}. A member name of the
 * user's that begins with "$" gets one more "$", so that nothing the user records can be taken for a tag.
 */
const rules: WriteRules = {
  // Kept as "-0" (JSON.parse gives it back), so that first run and resume see the same number.
  number: (value) => (Object.is(value, -0) ? "-0" : JSON.stringify(value)),
  bigint: (value) => `{"$bigint":"${value}"}`,
  object: tagged,
  absent: encodeAbsent,
  memberName: (name) => (name.startsWith("$") ? `$${name}` : name),
  sorted: true,
  dataCode: "oncekey_value_unsupported",
  advice:
    "Recorded values are plain objects, arrays, text, finite numbers, booleans, null, Date, bigint and Uint8Array. " +
    "Nothing was recorded; return one of these, or its id.",
};

/**
 * Encodes a value to be recorded: JSON data, Date, bigint, bytes, and undefined as the whole. {@link decodeValue} gives
 * back an equal value: members sorted, undefined members dropped, a Buffer as a plain Uint8Array, an array's subclass as
 * an array. Equal values give equal bytes whatever the order of their members. Raises `oncekey_value_unsupported`, naming
 * the path, for everything else: functions, symbols, class instances, NaN and Infinity, invalid dates, lone surrogates,
 * cycles, undefined inside an array.
 */
export function encodeValue(value: unknown): Uint8Array {
  const text = new TextEncoder().encode(writeText(value, rules));
  const out = new Uint8Array(1 + text.length);
  out[0] = CODEC_VERSION;
  out.set(text, 1);
  return out;
}

/**
 * Decodes what {@link encodeValue} gave. Raises `idempotency_version_unknown` for a version of a newer release, and
 * `oncekey_store_broken` for bytes that no release wrote.
 */
export function decodeValue(bytes: Uint8Array): unknown {
  const [version = 0] = bytes;
  if (version === 0) throw broken();
  if (version > CODEC_VERSION) {
    throw new OncekeyError(
      "idempotency_version_unknown",
      "A recorded value was written by a newer version of Oncekey. It was left as it is. Retry, or finish the rollout.",
    );
  }
  return untag(parseText(bytes.subarray(1)), 0);
}

function parseText(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    // Not handed on as the cause: V8 quotes the text in its message.
    throw broken();
  }
}

function tagged(value: object, fail: Fail): string | undefined {
  if (Array.isArray(value)) return undefined;
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) fail("The date is invalid");
    return `{"$date":"${value.toISOString()}"}`;
  }
  if (value instanceof Uint8Array) return `{"$bytes":"${Buffer.from(value).toString("base64")}"}`;
  if (!isPlainObject(value)) fail("An instance of a class cannot be recorded");
  const symbols = Object.getOwnPropertySymbols(value);
  if (symbols.some((name) => Object.prototype.propertyIsEnumerable.call(value, name))) {
    fail("A member named by a symbol cannot be recorded");
  }
  return undefined;
}

function encodeAbsent(value: unknown, place: Place, fail: Fail): string | undefined {
  if (value !== undefined) return fail(`A ${typeof value} cannot be recorded`);
  if (place === "element") return fail("An array cannot hold undefined; use null");
  return place === "top" ? '{"$undefined":true}' : undefined;
}

// What no release has written is refused, so that a damaged value is never taken for another one where that can be told.
function untag(value: unknown, depth: number): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw broken();
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value);
  const tag = Array.isArray(value) ? undefined : members.find(([name]) => isTag(name));
  if (tag !== undefined) return untagOne(tag[0], tag[1], members.length);
  // Deeper than anything that was recorded, and as deep as the stack will do.
  if (depth >= MAX_VALUE_DEPTH) throw broken();
  if (Array.isArray(value)) return value.map((element) => untagInside(element, depth));
  const out: Record<string, unknown> = {};
  for (const [name, member] of members)
    setMember(out, name.startsWith("$") ? name.slice(1) : name, untagInside(member, depth));
  return out;
}

// Only the whole value can be undefined.
function untagInside(value: unknown, depth: number): unknown {
  const read = untag(value, depth + 1);
  if (read === undefined) throw broken();
  return read;
}

const isTag = (name: string): boolean => name.startsWith("$") && !name.startsWith("$$");

function untagOne(tag: string, content: unknown, members: number): unknown {
  if (members !== 1) throw broken();
  if (tag === "$undefined" && content === true) return undefined;
  if (typeof content !== "string") throw broken();
  if (tag === "$bigint" && /^(?:0|-?[1-9]\d*)$/.test(content)) return BigInt(content);
  const bytes = Buffer.from(content, "base64");
  if (tag === "$bytes" && bytes.toString("base64") === content) return new Uint8Array(bytes);
  const date = new Date(content);
  if (tag === "$date" && !Number.isNaN(date.getTime()) && date.toISOString() === content) return date;
  throw broken();
}

function broken(): OncekeyError {
  return new OncekeyError(
    "oncekey_store_broken",
    "A recorded value cannot be decoded: it was changed or cut. It was left as it is; restore the row from a backup.",
  );
}
