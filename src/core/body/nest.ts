import { MAX_VALUE_DEPTH, setMember } from "../json/trail.ts";
import { refuseRequest } from "./invalid.ts";

/** A field by its full name (`metadata[a]`); the leaf is anything that is not taken apart further. */
export type NamedLeaf = readonly [name: string, leaf: unknown];

/** A place in the tree of names: leaves of one name, or names below it. */
type Place =
  | { readonly kind: "leaves"; readonly list: boolean; readonly leaves: unknown[] }
  | { readonly kind: "branch"; readonly below: Map<string, Place> };

/** Builds the value that bracketed names spell. The rules are those of {@link formValue}. */
export function nest(fields: readonly NamedLeaf[], maxDepth: number): Record<string, unknown> {
  const root = new Map<string, Place>();
  for (const [name, leaf] of fields) place(root, splitName(name, maxDepth), leaf);
  return objectOf(root);
}

function place(root: Map<string, Place>, segments: readonly string[], leaf: unknown): void {
  const list = segments.length > 1 && segments.at(-1) === "";
  const path = list ? segments.slice(0, -1) : segments;
  if (path.slice(1).includes("")) refuseRequest('A field name has "[]" before its end; number the elements instead');
  let branch = root;
  for (const segment of path.slice(0, -1)) branch = branchAt(branch, segment);
  const last = path.at(-1) as string;
  const found = branch.get(last);
  if (found === undefined) branch.set(last, { kind: "leaves", list, leaves: [leaf] });
  else if (found.kind === "leaves" && found.list === list) found.leaves.push(leaf);
  else refuseTwoWays();
}

function branchAt(branch: Map<string, Place>, segment: string): Map<string, Place> {
  const found = branch.get(segment);
  if (found?.kind === "branch") return found.below;
  if (found !== undefined) return refuseTwoWays();
  const below = new Map<string, Place>();
  branch.set(segment, { kind: "branch", below });
  return below;
}

function refuseTwoWays(): never {
  return refuseRequest("A field name is used both for a value and for fields inside it, or with and without []");
}

// "a[b][]" gives ["a", "b", ""]. One pass: a regular expression over nested brackets invites quadratic time.
function splitName(name: string, maxDepth: number): readonly string[] {
  const first = name.indexOf("[");
  if (first < 1 || !name.endsWith("]")) return [name];
  const segments = name.slice(first + 1, -1).split("][");
  if (segments.some((segment) => segment.includes("[") || segment.includes("]"))) return [name];
  if (name.slice(0, first).includes("]")) return [name];
  if (segments.length > Math.min(maxDepth, MAX_VALUE_DEPTH - 1)) refuseRequest("A field name is nested too deeply");
  return [name.slice(0, first), ...segments];
}

function placeValue(found: Place): unknown {
  if (found.kind === "branch") return isList(found.below) ? listOf(found.below) : objectOf(found.below);
  return found.list || found.leaves.length > 1 ? found.leaves : found.leaves[0];
}

function objectOf(branch: ReadonlyMap<string, Place>): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [name, found] of branch) setMember(out, name, placeValue(found));
  return out;
}

function isList(branch: ReadonlyMap<string, Place>): boolean {
  for (let index = 0; index < branch.size; index++) if (!branch.has(String(index))) return false;
  return true;
}

function listOf(branch: ReadonlyMap<string, Place>): unknown[] {
  return Array.from({ length: branch.size }, (_, index) => placeValue(branch.get(String(index)) as Place));
}
