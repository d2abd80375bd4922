import { randomUUID } from "node:crypto";

/** Marks an integer's digits on their way through JSON.parse. Random, so that no document can imitate it. */
const MARK = `integer:${randomUUID()}:`;
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const INTEGER = /^-?\d+$/;

/**
 * Parses JSON without losing digits: integers beyond ±(2^53 − 1) arrive as `bigint`. JSON.parse alone would round an
 * amount before anybody could look at it. Raises SyntaxError for text that is not JSON.
 */
export function parseExact(text: string): unknown {
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${MARK}${token}"` : token,
  );
  return JSON.parse(marked, (_name, value) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

/** Writes JSON; `bigint` becomes a JSON number with all its digits, members that are `undefined` are left out. */
export function writeExact(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map((item) => writeExact(item ?? null)).join(",")}]`;
  if (typeof value !== "object" || value === null || value instanceof Date) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${writeExact(member)}`).join(",")}}`;
}
