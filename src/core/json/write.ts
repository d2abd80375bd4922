import { type ErrorCode, OncekeyError } from "../errors.ts";
import { MAX_VALUE_DEPTH, newTrail, pathOf, type Trail } from "./trail.ts";

/** Refuses the value under the walk; `why` is a clause such as "a function cannot be recorded". */
export type Fail = (why: string, code?: ErrorCode) => never;

/** Where a value stands: the whole, a member of an object, an element of an array. */
export type Place = "top" | "member" | "element";

/** What makes one textual form of values differ from another. Strings, booleans, null, arrays and braces are common. */
export interface WriteRules {
  /** Replaces a value before it is looked at (`toJSON`). */
  readonly prepare?: (value: unknown, name: string, fail: Fail) => unknown;
  readonly number: (value: number) => string;
  readonly bigint: (value: bigint) => string;
  /** Text of an object that is not written member by member, or `undefined`; refuses what it cannot keep. */
  readonly object: (value: object, fail: Fail) => string | undefined;
  /** Text of undefined, a function or a symbol; `undefined` drops the member. */
  readonly absent: (value: unknown, place: Place, fail: Fail) => string | undefined;
  readonly memberName: (name: string) => string;
  /** Members in the order of their UTF-16 code units (RFC 8785 §3.2.3), or as they come. */
  readonly sorted: boolean;
  /** Raised for ill-formed text and excess depth: what a client's data can cause. */
  readonly dataCode: ErrorCode;
  /** The end of every error message: what was kept and what to do. */
  readonly advice: string;
}

interface Walk {
  readonly rules: WriteRules;
  readonly trail: Trail;
  readonly fail: Fail;
}

/**
 * Writes a value as text under the rules. Raises the rules' codes (default `oncekey_value_unsupported`) with the path of
 * the offending member, never its value.
 */
export function writeText(value: unknown, rules: WriteRules): string {
  const trail = newTrail();
  const fail: Fail = (why, code = "oncekey_value_unsupported") => {
    throw new OncekeyError(code, `${why} (at ${pathOf(trail.names)}). ${rules.advice}`);
  };
  return write({ rules, trail, fail }, value, "top", "") ?? fail("There is no value to write");
}

function write(walk: Walk, raw: unknown, place: Place, name: string): string | undefined {
  const { rules, fail } = walk;
  const value = rules.prepare === undefined ? raw : rules.prepare(raw, name, fail);
  switch (typeof value) {
    case "string":
      return quote(walk, value);
    case "number":
      return Number.isFinite(value) ? rules.number(value) : fail("NaN and Infinity have no JSON form");
    case "boolean":
      return value ? "true" : "false";
    case "bigint":
      return rules.bigint(value);
    case "object":
      return value === null ? "null" : (rules.object(value, fail) ?? writeInside(walk, value));
    default:
      return rules.absent(value, place, fail);
  }
}

function writeInside(walk: Walk, value: object): string {
  const { ancestors } = walk.trail;
  if (ancestors.has(value)) walk.fail("The value contains itself");
  if (ancestors.size >= MAX_VALUE_DEPTH) walk.fail("The value is nested too deeply", walk.rules.dataCode);
  ancestors.add(value);
  const text = Array.isArray(value) ? writeArray(walk, value) : writeObject(walk, value as Record<string, unknown>);
  ancestors.delete(value);
  return text;
}

function writeArray(walk: Walk, value: readonly unknown[]): string {
  const { names } = walk.trail;
  const texts: string[] = [];
  for (let index = 0; index < value.length; index++) {
    names.push(index);
    texts.push(write(walk, value[index], "element", String(index)) ?? "null");
    names.pop();
  }
  return `[${texts.join(",")}]`;
}

function writeObject(walk: Walk, value: Record<string, unknown>): string {
  const { rules, trail } = walk;
  const members = Object.keys(value);
  if (rules.sorted) members.sort();
  const texts: string[] = [];
  for (const name of members) {
    trail.names.push(name);
    const text = write(walk, value[name], "member", name);
    if (text !== undefined) texts.push(`${quote(walk, rules.memberName(name))}:${text}`);
    trail.names.pop();
  }
  return `{${texts.join(",")}}`;
}

// On well-formed text JSON.stringify writes exactly the escapes of RFC 8785 §3.2.2.2. On a lone surrogate it writes an
// escape that a strict parser refuses, and an encoder would turn it into U+FFFD: another value.
function quote(walk: Walk, text: string): string {
  if (!text.isWellFormed()) walk.fail("Text holds a lone surrogate", walk.rules.dataCode);
  return JSON.stringify(text);
}

/** True for objects made of plain members: literals, `Object.create(null)`, and those of another realm. */
export function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
