import { utf8Text } from "./reference-json.ts";

/** A pair; `null`: the name stands alone. */
export type ReferencePair = readonly [name: string, value: string | null];

/** The pairs of a form's bytes, decoded byte by byte; `undefined`: malformed, or holds NUL. */
export function referencePairs(bytes: Uint8Array): ReferencePair[] | undefined {
  if (utf8Text(bytes) === undefined) return undefined;
  const pairs: ReferencePair[] = [];
  const text = Buffer.from(bytes).toString("latin1");
  for (const piece of text.split("&")) {
    if (piece === "") continue;
    const [name = "", ...values] = piece.split("=");
    const decoded = [name, ...(values.length === 0 ? [] : [values.join("=")])].map(decodedText);
    const [first, second = null] = decoded;
    if (first === undefined || decoded.includes(undefined)) return undefined;
    pairs.push([first, second]);
  }
  return pairs;
}

function decodedText(latin1: string): string | undefined {
  const out: number[] = [];
  for (let at = 0; at < latin1.length; at++) {
    const char = latin1[at];
    if (char !== "%") {
      out.push(char === "+" ? 0x20 : latin1.charCodeAt(at));
      continue;
    }
    const hex = latin1.slice(at + 1, at + 3);
    if (!/^[0-9a-fA-F][0-9a-fA-F]$/.test(hex)) return undefined;
    out.push(Number.parseInt(hex, 16));
    at += 2;
  }
  const text = utf8Text(Uint8Array.from(out));
  return text?.includes("\0") ? undefined : text;
}

/** A nested value of a form, before arrays are told from objects. */
type Tree = Map<string, Tree | Leaves>;
interface Leaves {
  readonly isList: boolean;
  readonly values: string[];
}

/** The nested value of pairs; `undefined`: a name is used in two ways, `[]` stands inside, or it is too deep. */
export function referenceNested(pairs: readonly ReferencePair[], maxDepth = 64): Record<string, unknown> | undefined {
  const root: Tree = new Map();
  for (const [name, value] of pairs) {
    const steps = stepsOf(name);
    if (steps.length - 1 > maxDepth) return undefined;
    const isList = steps.length > 1 && steps.at(-1) === "";
    const path = isList ? steps.slice(0, -1) : steps;
    if (path.slice(1).some((step) => step === "")) return undefined;
    let tree = root;
    for (const step of path.slice(0, -1)) {
      const below = tree.get(step) ?? (new Map() as Tree);
      if (!(below instanceof Map)) return undefined;
      tree.set(step, below);
      tree = below;
    }
    const last = path.at(-1) ?? "";
    const leaves = tree.get(last) ?? { isList, values: [] };
    if (leaves instanceof Map || leaves.isList !== isList) return undefined;
    leaves.values.push(value ?? "");
    tree.set(last, leaves);
  }
  return objectOf(root);
}

// `a[b][c]` by its characters: a name, then groups of brackets that hold none.
function stepsOf(name: string): string[] {
  const steps = [""];
  let isInside = false;
  for (const [at, char] of [...name].entries()) {
    const isClosed = !isInside && at > 0 && steps.length > 1;
    if (char === "[" && !isInside && at > 0) {
      steps.push("");
      isInside = true;
    } else if (char === "]" && isInside) isInside = false;
    else if (char === "[" || char === "]" || isClosed) return [name];
    else steps[steps.length - 1] += char;
  }
  return isInside ? [name] : steps;
}

function objectOf(tree: Tree): Record<string, unknown> {
  return Object.fromEntries([...tree].map(([name, one]) => [name, plainValue(one)]));
}

function plainValue(one: Tree | Leaves): unknown {
  if (!(one instanceof Map)) return one.isList || one.values.length > 1 ? one.values : one.values[0];
  const indexes = [...one.keys()].map((name) => (/^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : -1));
  const isArray = [...indexes].sort((a, b) => a - b).every((index, at) => index === at);
  if (!isArray) return objectOf(one);
  const out: unknown[] = [];
  for (const [at, [, below]] of [...one].entries()) out[indexes[at] ?? 0] = plainValue(below);
  return out;
}
