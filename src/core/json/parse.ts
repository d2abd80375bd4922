import { OncekeyError } from "../errors.ts";
import type { JsonNode, JsonObject } from "./node.ts";
import {
  expect,
  type JsonLimits,
  refuse,
  type Scanner,
  scanLiteral,
  scanNumber,
  scanString,
  skipSpace,
} from "./scanner.ts";
import { MAX_VALUE_DEPTH } from "./trail.ts";

/** The limits of a JSON body where none are given. */
export const JSON_LIMITS: JsonLimits = { maxDepth: 64, maxDigits: 1_000, maxExponent: 10_000, allowNul: false };

/**
 * Parses a JSON text (strict RFC 8259) without losing what JSON.parse loses: digits of numbers, repeated members. One
 * leading BOM is skipped. Raises `idempotency_request_invalid`, with the character's position and never the content, for
 * malformed text and UTF-8, repeated member names (compared after unescaping), lone surrogates, U+0000 in strings (unless
 * allowed), and whatever is beyond the limits. Linear in the length of the text.
 */
export function parseJson(bytes: Uint8Array, limits: Partial<JsonLimits> = {}): JsonNode {
  const scanner: Scanner = { text: textOf(bytes), limits: { ...JSON_LIMITS, ...limits }, at: 0 };
  // The parser and all that walk its result recurse, so no setting may let a client reach the end of the stack.
  if (!(scanner.limits.maxDepth >= 1 && scanner.limits.maxDepth <= MAX_VALUE_DEPTH)) {
    throw new OncekeyError(
      "oncekey_config_invalid",
      `maxDepth must be from 1 to ${MAX_VALUE_DEPTH}. Nothing was parsed.`,
    );
  }
  const node = parseValue(scanner, 0);
  skipSpace(scanner);
  if (scanner.at < scanner.text.length) refuse(scanner.at, "text follows the value");
  return node;
}

// Making one costs as much as decoding a short body; without `stream` it keeps nothing from one text to the next.
const decoder = new TextDecoder("utf-8", { fatal: true });

/** The text of a JSON body, without a leading BOM. Raises `idempotency_request_invalid` for what is no UTF-8. */
export function textOf(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    return refuse(0, "the body is not valid UTF-8");
  }
}

function parseValue(scanner: Scanner, depth: number): JsonNode {
  skipSpace(scanner);
  const char = scanner.text[scanner.at];
  if (char === "{") return parseObject(scanner, depth + 1);
  if (char === "[") return parseArray(scanner, depth + 1);
  if (char === '"') return { kind: "string", text: scanString(scanner) };
  if (char === "-" || (char !== undefined && char >= "0" && char <= "9")) {
    return { kind: "number", ...scanNumber(scanner) };
  }
  const value = scanLiteral(scanner);
  return value === undefined ? refuse(scanner.at, "expected a value") : { kind: "literal", value };
}

function parseObject(scanner: Scanner, depth: number): JsonObject {
  const members = new Map<string, JsonNode>();
  parseList(scanner, depth, "}", () => {
    const start = scanner.at;
    const name = scanString(scanner);
    // Parsers disagree whether the first or the last one counts (RFC 8259 §4): a way to smuggle an amount.
    if (members.has(name)) refuse(start, "a member name is repeated");
    skipSpace(scanner);
    expect(scanner, ":");
    members.set(name, parseValue(scanner, depth));
  });
  return { kind: "object", members: [...members] };
}

function parseArray(scanner: Scanner, depth: number): JsonNode {
  const elements: JsonNode[] = [];
  parseList(scanner, depth, "]", () => elements.push(parseValue(scanner, depth)));
  return { kind: "array", elements };
}

function parseList(scanner: Scanner, depth: number, end: string, parseOne: () => void): void {
  if (depth > scanner.limits.maxDepth) refuse(scanner.at, "the body is nested too deeply");
  scanner.at++;
  skipSpace(scanner);
  if (scanner.text[scanner.at] === end) {
    scanner.at++;
    return;
  }
  for (;;) {
    skipSpace(scanner);
    parseOne();
    skipSpace(scanner);
    if (scanner.text[scanner.at] === end) break;
    if (scanner.text[scanner.at] !== ",") refuse(scanner.at, `expected "," or "${end}"`);
    scanner.at++;
  }
  scanner.at++;
}
