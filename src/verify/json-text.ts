/**
 * JSON as text: the kit changes a request without reading its numbers, whose digits `JSON.parse` would lose. Every
 * literal stays the text that it was.
 */
export type JsonNode =
  | { readonly kind: "object"; readonly members: readonly (readonly [name: string, value: JsonNode])[] }
  | { readonly kind: "array"; readonly items: readonly JsonNode[] }
  /** A string with its quotes, a number, `true`, `false` or `null`, as it stands in the text. */
  | { readonly kind: "literal"; readonly text: string };

/** How a tree is written. */
export interface JsonStyle {
  /** Members of every object in reverse order. */
  readonly reversed?: boolean;
  /** White space wherever it may stand. */
  readonly spaced?: boolean;
}

const TOKEN = /\s*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/y;

/** The tree of a JSON text; `null` where it is none. */
export function parseJsonText(text: string): JsonNode | null {
  try {
    // The grammar is Node's to judge; the tree below only has to be right for texts that passed.
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(text); found !== null; found = TOKEN.exec(text)) {
    tokens.push(found[1] ?? found[2] ?? found[3] ?? "");
  }
  return nodeOf(tokens.reverse());
}

/** Takes one value from the end of the tokens, which stand in reverse. */
function nodeOf(rest: string[]): JsonNode {
  const first = rest.pop() ?? "null";
  if (first !== "{" && first !== "[") return { kind: "literal", text: first };
  const names: string[] = [];
  const values: JsonNode[] = [];
  while (rest.length > 0) {
    if (rest.at(-1) === "}" || rest.at(-1) === "]") break;
    if (first === "{") {
      names.push(rest.pop() ?? "");
      rest.pop();
    }
    values.push(nodeOf(rest));
    if (rest.at(-1) === ",") rest.pop();
  }
  rest.pop();
  if (first === "[") return { kind: "array", items: values };
  return { kind: "object", members: values.map((value, at) => [names[at] ?? "", value] as const) };
}

/** The text of a tree. */
export function writeJsonText(node: JsonNode, style: JsonStyle = {}): string {
  if (node.kind === "literal") return node.text;
  const space = style.spaced === true ? " \n\t" : "";
  const comma = `${space},${space}`;
  if (node.kind === "array") {
    return `[${space}${node.items.map((item) => writeJsonText(item, style)).join(comma)}${space}]`;
  }
  const members = style.reversed === true ? node.members.toReversed() : node.members;
  const written = members.map(([name, value]) => `${name}${space}:${space}${writeJsonText(value, style)}`);
  return `{${space}${written.join(comma)}${space}}`;
}

/** Where a value stands: names and indexes from the top. */
export type JsonPath = readonly string[];

/** The path of a JSON Pointer (RFC 6901); `null` where the text is none. */
export function pathOfPointer(pointer: string): JsonPath | null {
  if (pointer === "") return [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) return null;
  const parts = pointer.slice(1).split("/");
  return parts.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The paths of all literals, in the order of the text, those near the top first. */
export function literalPaths(node: JsonNode): { readonly path: JsonPath; readonly text: string }[] {
  const found: { readonly path: JsonPath; readonly text: string }[] = [];
  const visit = (at: JsonNode, path: JsonPath): void => {
    if (at.kind === "literal") found.push({ path, text: at.text });
    for (const [name, value] of childrenOf(at)) visit(value, [...path, name]);
  };
  visit(node, []);
  return found.toSorted((a, b) => a.path.length - b.path.length);
}

function childrenOf(node: JsonNode): (readonly [string, JsonNode])[] {
  if (node.kind === "literal") return [];
  if (node.kind === "array") return node.items.map((item, at) => [String(at), item] as const);
  return node.members.map(([name, value]) => [String(JSON.parse(name)), value] as const);
}

/** The tree with another literal at that path; a missing last member of an object is added. `null`: no such place. */
export function withLiteral(node: JsonNode, path: JsonPath, text: string): JsonNode | null {
  const [name, ...below] = path;
  if (name === undefined) return { kind: "literal", text };
  const at = childrenOf(node).findIndex(([given]) => given === name);
  if (at < 0) return node.kind === "object" && below.length === 0 ? withMember(node, name, text) : null;
  const child = childrenOf(node)[at]?.[1];
  const changed = child === undefined ? null : withLiteral(child, below, text);
  if (changed === null || node.kind === "literal") return null;
  if (node.kind === "array") return { kind: "array", items: node.items.with(at, changed) };
  return { kind: "object", members: node.members.with(at, [node.members[at]?.[0] ?? "", changed]) };
}

function withMember(node: JsonNode & { readonly kind: "object" }, name: string, text: string): JsonNode {
  return { kind: "object", members: [...node.members, [JSON.stringify(name), { kind: "literal", text }]] };
}
