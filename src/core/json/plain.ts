import { setMember } from "./trail.ts";

/**
 * A JSON text from which `JSON.parse` has lost nothing: no member is repeated, every number prints as it was written, no
 * string is spelled in another way than `JSON.stringify` spells it. Nearly all bodies are such texts, and the engine's own
 * parser is several times faster than one that is written in JavaScript.
 */
export interface PlainJson {
  /** The text without blanks between its tokens. */
  readonly text: string;
  /** What `JSON.parse` made of it. */
  readonly value: unknown;
  /** Every object has its members in the order of the canonical form already. */
  readonly sorted: boolean;
}

/**
 * Reads such a text, or gives `null`: then the text is another one, or not acceptable at all, and only `parseJson` can tell.
 * Linear in the length of the text.
 *
 * Why it is safe: what is written again from the parsed value and equals the text, but for blanks, holds the same tokens. A
 * repeated member would be missing, a number that lost a digit would print differently, and so do -0, 1.0 and 1e2. What
 * that comparison cannot see is looked for by itself: escapes that may hide a lone surrogate or U+0000 (any `\u`), depth,
 * integers that have to arrive as `bigint`, and names that objects keep in an order of their own.
 */
export function plainJson(text: string, maxDepth: number): PlainJson | null {
  if (text.includes("\\u")) return null;
  try {
    const value: unknown = JSON.parse(text);
    const order = orderOf(value, maxDepth);
    if (order === "unfit") return null;
    const written = JSON.stringify(value);
    if (written !== text && !sameTokens(text, written)) return null;
    return { text: written, value, sorted: order === "sorted" };
  } catch {
    // No JSON: where and why, the long way finds out.
    return null;
  }
}

type Order = "sorted" | "unsorted" | "unfit";

function orderOf(value: unknown, depthLeft: number): Order {
  if (typeof value === "number") return Number.isSafeInteger(value) || !Number.isInteger(value) ? "sorted" : "unfit";
  if (typeof value !== "object" || value === null) return "sorted";
  if (depthLeft === 0) return "unfit";
  return Array.isArray(value) ? elementsOrder(value, depthLeft - 1) : membersOrder(value, depthLeft - 1);
}

function elementsOrder(elements: readonly unknown[], depthLeft: number): Order {
  let order: Order = "sorted";
  for (let index = 0; index < elements.length; index++) {
    const inside = orderOf(elements[index], depthLeft);
    if (inside === "unfit") return inside;
    if (inside === "unsorted") order = inside;
  }
  return order;
}

function membersOrder(object: object, depthLeft: number): Order {
  const names = Object.keys(object);
  // Indexes come first, in the order of numbers, whatever the text says: "10" after "9".
  const first = (names[0] ?? "").charCodeAt(0);
  if (first >= 0x30 && first <= 0x39) return "unfit";
  let order: Order = "sorted";
  let before = "";
  for (const name of names) {
    if (name < before) order = "unsorted";
    before = name;
    const inside = orderOf((object as Record<string, unknown>)[name], depthLeft);
    if (inside === "unfit") return inside;
    if (inside === "unsorted") order = inside;
  }
  return order;
}

/** Whether a text differs from one without blanks in blanks between its tokens alone. */
function sameTokens(text: string, compact: string): boolean {
  if (text.length <= compact.length) return false;
  let at = 0;
  for (let index = 0; index < text.length; index++) {
    const char = text.charCodeAt(index);
    // A blank inside a string stands in both: all before it was equal, so both are inside of the same string.
    if (char === compact.charCodeAt(at)) at++;
    else if (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09) return false;
  }
  return at === compact.length;
}

/** The canonical form, as text: what `canonicalJson` makes of the same JSON. */
export function canonicalPlain({ text, value, sorted }: PlainJson): string {
  return sorted ? text : JSON.stringify(inOrder(value));
}

// Objects keep the order in which members were added, indexes aside, and those are not plain.
function inOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  const ordered: Record<string, unknown> = {};
  for (const name of Object.keys(value).sort()) {
    setMember(ordered, name, inOrder((value as Record<string, unknown>)[name]));
  }
  return ordered;
}
