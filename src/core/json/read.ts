import { canonicalJson } from "./canonical.ts";
import { JSON_LIMITS, parseJson, textOf } from "./parse.ts";
import { canonicalPlain, plainJson } from "./plain.ts";
import type { JsonLimits } from "./scanner.ts";
import { MAX_VALUE_DEPTH } from "./trail.ts";
import { type JsonValueOptions, jsonValue } from "./value.ts";

/** A JSON body that was read and found acceptable. What is made of it waits until somebody asks. */
export interface ReadJson {
  /** Its canonical form. A byte-equal retry is never asked for it. */
  canonical(): Uint8Array;
  /** Its value, without loss: another one each time. May raise, as `jsonValue` does. */
  value(): unknown;
  /** It holds no number but those that ordinary numbers hold exactly. `false`: nobody has looked. */
  readonly ordinaryNumbers: boolean;
}

/** How a JSON body is read. */
type ReadOptions = JsonValueOptions & Partial<JsonLimits>;

/** No plain number goes beyond: a double prints in at most 24 digits, with an exponent of at most 324. */
const PLAIN_DIGITS = 24;
const PLAIN_EXPONENT = 324;

/** Reads a JSON body. Raises as `parseJson`, whichever way it is read. */
export function readJson(bytes: Uint8Array, options: ReadOptions): ReadJson {
  return (mayBePlain(options) ? readPlain(textOf(bytes), options.maxDepth) : null) ?? readExactly(bytes, options);
}

function mayBePlain({ fractions, ...given }: ReadOptions): boolean {
  const { maxDepth, maxDigits, maxExponent } = { ...JSON_LIMITS, ...given };
  const depthIsUsual = maxDepth >= 1 && maxDepth <= MAX_VALUE_DEPTH;
  return fractions !== "text" && depthIsUsual && maxDigits >= PLAIN_DIGITS && maxExponent >= PLAIN_EXPONENT;
}

function readPlain(text: string, maxDepth = JSON_LIMITS.maxDepth): ReadJson | null {
  const plain = plainJson(text, maxDepth);
  if (plain === null) return null;
  let canonical: Uint8Array | undefined;
  let handedOut = false;
  return {
    canonical() {
      canonical ??= encoder.encode(canonicalPlain(plain));
      return canonical;
    },
    value() {
      // Whoever gets it may change it, so it goes to one only, and not while the canonical form is still to be made of it.
      if (handedOut || !(plain.sorted || canonical !== undefined)) return JSON.parse(plain.text);
      handedOut = true;
      return plain.value;
    },
    ordinaryNumbers: true,
  };
}

const encoder = new TextEncoder();

function readExactly(bytes: Uint8Array, options: ReadOptions): ReadJson {
  const node = parseJson(bytes, options);
  return { canonical: () => canonicalJson(node), value: () => jsonValue(node, options), ordinaryNumbers: false };
}
