import type { Planted } from "./keys.ts";

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** What a retry's body must match. */
export function fingerprint(body: Buffer, has: Planted): string {
  const text = body.toString("utf8");
  if (has("compares-nothing")) return "";
  if (has("compares-bytes")) return text;
  const exact = has("compares-doubles") ? text : text.replace(TOKEN, (found) => exactToken(found));
  return JSON.stringify(sorted(JSON.parse(exact)));
}

/** A number as a string of its digits, which keeps them all; a string stays apart from it by a mark of its own. */
function exactToken(found: string): string {
  if (found.startsWith('"')) return found;
  return JSON.stringify(`\u0000number ${found.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")}`);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const);
  return Object.fromEntries(members.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
