import { type FramedPart, frame } from "../framing.ts";
import { checkNul, refuseRequest } from "./invalid.ts";
import { type NamedLeaf, nest } from "./nest.ts";

/** One pair of a form or a query. `null`: the name stands alone (`x`), which differs from an empty value (`x=`). */
export type Pair = readonly [name: string, value: string | null];

/** What a form or query may hold. */
export interface FormLimits {
  /** Most pairs. Default 1,000. */
  readonly maxPairs: number;
  /** Deepest nesting of names. Default 64. */
  readonly maxDepth: number;
  /** Whether names and values may hold U+0000. Default `false`, as in JSON. */
  readonly allowNul: boolean;
}

/** The limits where none are given. */
const FORM_LIMITS: FormLimits = { maxPairs: 1_000, maxDepth: 64, allowNul: false };

/** Version of a form's canonical form. Frozen with the fingerprint's version. */
const FORM_VERSION = 1;

/**
 * The pairs of an `application/x-www-form-urlencoded` text or a query (without `?`), in order (WHATWG URL §5.1: `+` is a
 * space, empty sequences between `&` are skipped). Raises `idempotency_request_invalid` for a malformed percent-encoding
 * or UTF-8, which lenient parsers would replace and so make equal, and beyond the limits.
 */
export function parsePairs(text: string, limits: Partial<FormLimits> = {}): Pair[] {
  const { maxPairs, allowNul } = { ...FORM_LIMITS, ...limits };
  const pairs: Pair[] = [];
  let start = 0;
  while (start <= text.length) {
    const next = text.indexOf("&", start);
    const end = next === -1 ? text.length : next;
    if (end > start) {
      if (pairs.length === maxPairs) refuseRequest(`A form or query holds more than ${maxPairs} pairs`);
      pairs.push(parsePair(text.slice(start, end), allowNul));
    }
    start = end + 1;
  }
  return pairs;
}

function parsePair(text: string, allowNul: boolean): Pair {
  const at = text.indexOf("=");
  if (at === -1) return [decode(text, allowNul), null];
  return [decode(text.slice(0, at), allowNul), decode(text.slice(at + 1), allowNul)];
}

function decode(text: string, allowNul: boolean): string {
  let decoded: string;
  try {
    decoded = decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return refuseRequest("A form or query holds a malformed percent-encoding");
  }
  if (!decoded.isWellFormed()) refuseRequest("A form or query holds a lone surrogate");
  checkNul(decoded, allowNul, "A form or query");
  return decoded;
}

/**
 * The value of a form or query, always of strings: `a=1` is `{ a: "1" }`, a repeated name an array, `a[b]=1` an object
 * inside, `a[]=1` an array, `a[0]=1&a[1]=2` an array where the indexes run from 0 without a gap. A lone name is `""`. A
 * name whose brackets do not pair is taken as it stands. Raises `idempotency_request_invalid` where one name is used in
 * two ways (`a=1&a[b]=2`), for `[]` before the end of a name, and beyond the depth limit. Members named `__proto__` are data.
 */
export function formValue(pairs: readonly Pair[], limits: Partial<FormLimits> = {}): Record<string, unknown> {
  const leaves = pairs.map(([name, value]): NamedLeaf => [name, value ?? ""]);
  return nest(leaves, { ...FORM_LIMITS, ...limits }.maxDepth);
}

/** Pairs in the order of their names; pairs of one name keep their order, which is data. */
export function sortPairs(pairs: readonly Pair[]): Pair[] {
  // By code unit, never by locale: localeCompare differs from one machine to the next.
  return [...pairs].sort(([a], [b]) => Number(a > b) - Number(a < b));
}

/** The canonical form of pairs, in the order given. Keeps `x=`, `x` and no `x` apart. */
export function canonicalPairs(pairs: readonly Pair[]): Uint8Array {
  return frame(FORM_VERSION, pairs.flat() satisfies FramedPart[]);
}
