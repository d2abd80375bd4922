import {
  type JsonNode,
  type JsonPath,
  type JsonStyle,
  literalPaths,
  parseJsonText,
  withLiteral,
  writeJsonText,
} from "./json-text.ts";
import type { Target } from "./target.ts";

type BodyOf = Pick<Target, "body" | "contentType">;

/** The body as a JSON tree; `null` where it is none. */
function jsonBody({ body, contentType }: BodyOf): JsonNode | null {
  if (body === null || !/[/+]json\b/i.test(contentType ?? "")) return null;
  return parseJsonText(body.toString("utf8"));
}

function isForm({ body, contentType }: BodyOf): boolean {
  return body !== null && /^application\/x-www-form-urlencoded\b/i.test(contentType ?? "");
}

/** The body with the key in it; `null` where a body of this kind has no members, or is no form that can be read. */
export function withKeyMember(of: BodyOf, name: string, key: string | null): Buffer | null {
  if (key === null) return of.body;
  const tree = jsonBody(of);
  if (tree?.kind === "object") {
    const own = tree.members.filter(([given]) => JSON.parse(given) !== name);
    const member = [JSON.stringify(name), { kind: "literal", text: JSON.stringify(key) }] as const;
    return Buffer.from(writeJsonText({ kind: "object", members: [member, ...own] }));
  }
  if (!isForm(of)) return null;
  const pairs = (of.body ?? "").toString().split("&");
  const names = pairs.map((pair) => decoded(pair.split("=")[0] ?? ""));
  if (names.includes(null)) return null;
  const own = pairs.filter((pair, at) => pair !== "" && names[at] !== name);
  return Buffer.from([`${encodeURIComponent(name)}=${encodeURIComponent(key)}`, ...own].join("&"));
}

/** Text of a form without its escapes; `null` where one of them is none (`%zz`). */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return null;
  }
}

/**
 * Another request that is as valid as the given one can tell: one more in its first whole number, else one more character
 * in its first string or value. `null` where the body has neither.
 */
export function changedBody(of: BodyOf): Buffer | null {
  const tree = jsonBody(of);
  if (tree !== null) return changedJson(tree);
  return isForm(of) ? changedForm((of.body ?? "").toString()) : null;
}

const WHOLE = /^-?\d+$/;

function changedJson(tree: JsonNode): Buffer | null {
  const literals = literalPaths(tree);
  const number = literals.find(({ text }) => WHOLE.test(text));
  const string = literals.find(({ text }) => text.startsWith('"'));
  const target = number ?? string;
  if (target === undefined) return null;
  const text = number === undefined ? `${target.text.slice(0, -1)}x"` : String(BigInt(target.text) + 1n);
  return written(withLiteral(tree, target.path, text));
}

function changedForm(text: string): Buffer | null {
  const pairs = text.split("&");
  const number = pairs.findIndex((pair) => WHOLE.test(pair.split("=")[1] ?? ""));
  const at = number < 0 ? pairs.findIndex((pair) => pair.includes("=")) : number;
  const [name, value] = (pairs[at] ?? "").split("=");
  if (value === undefined) return null;
  return Buffer.from(pairs.with(at, `${name}=${number < 0 ? `${value}x` : BigInt(value) + 1n}`).join("&"));
}

function written(tree: JsonNode | null, style?: JsonStyle): Buffer | null {
  return tree === null ? null : Buffer.from(writeJsonText(tree, style));
}

/** The same JSON value in other bytes; `null` where the body is no JSON, or its bytes would be the same. */
export function restyledBody(of: BodyOf, style: JsonStyle): Buffer | null {
  const tree = jsonBody(of);
  const plain = written(tree)?.toString();
  const styled = written(tree, style);
  return styled === null || styled.toString() === plain ? null : styled;
}

/** The same JSON value with its first whole number as a decimal (`1` as `1.0`); `null` where it has none. */
export function decimalBody(of: BodyOf): Buffer | null {
  const tree = jsonBody(of);
  const number = tree === null ? undefined : literalPaths(tree).find(({ text }) => WHOLE.test(text));
  if (tree === null || number === undefined) return null;
  return written(withLiteral(tree, number.path, `${number.text}.0`));
}

/** The body with this number at the path, or in the place of its first whole number; `null` where it has no such place. */
export function withNumber(of: BodyOf, path: JsonPath | null, digits: string): Buffer | null {
  const tree = jsonBody(of);
  if (tree === null) return null;
  const at = path ?? literalPaths(tree).find(({ text }) => WHOLE.test(text))?.path;
  return at === undefined ? null : written(withLiteral(tree, at, digits));
}
