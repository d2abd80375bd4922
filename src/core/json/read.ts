import { canonicalText } from "./canonical.ts";
import { JSON_LIMITS, parseJson, textOf } from "./parse.ts";
import { canonicalPlain, plainJson } from "./plain.ts";
import type { JsonLimits } from "./scanner.ts";
import { MAX_VALUE_DEPTH } from "./trail.ts";
import { type JsonValueOptions, jsonValue } from "./value.ts";

/** A JSON body that was read and found acceptable. What is made of it waits until somebody asks. */
export interface ReadJson {
  /** Its canonical form, as text. A byte-equal retry is never asked for it. */
  canonical(): string;
  /** Its value, without loss: another one each time. May raise, as `jsonValue` does. */
  value(): unknown;
  /** It holds no number but those that ordinary numbers hold exactly. `false`: nobody has looked. */
  readonly ordinaryNumbers: boolean;
}

/** How a JSON body is read. */
type ReadOptions = JsonValueOptions & Partial<JsonLimits>;

/** No number of a plain text has more digits than a double keeps. */
const PLAIN_DIGITS = 15;

/** Reads a JSON body. Raises as `parseJson`, whichever way it is read. */
export function readJson(bytes: Uint8Array, options: ReadOptions): ReadJson {
  return (mayBePlain(options) ? readPlain(textOf(bytes), options.maxDepth) : null) ?? readExactly(bytes, options);
}

function mayBePlain({ fractions, ...given }: ReadOptions): boolean {
  const { maxDepth = JSON_LIMITS.maxDepth, maxDigits = JSON_LIMITS.maxDigits } = given;
  const depthIsUsual = maxDepth >= 1 && maxDepth <= MAX_VALUE_DEPTH;
  return fractions !== "text" && depthIsUsual && maxDigits >= PLAIN_DIGITS;
}

function readPlain(text: string, maxDepth = JSON_LIMITS.maxDepth): ReadJson | null {
  const plain = plainJson(text, maxDepth);
  if (plain === null) return null;
  return { canonical: () => canonicalPlain(plain), value: () => JSON.parse(text), ordinaryNumbers: true };
}

function readExactly(bytes: Uint8Array, options: ReadOptions): ReadJson {
  const node = parseJson(bytes, options);
  return { canonical: () => canonicalText(node), value: () => jsonValue(node, options), ordinaryNumbers: false };
}
