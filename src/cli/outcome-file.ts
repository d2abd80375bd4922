import { readFile } from "node:fs/promises";
import type { JsonNode } from "../core/json/node.ts";
import { decimalText } from "../core/json/number.ts";
import { parseJson } from "../core/json/parse.ts";
import { type HeaderLine, headerAllowlist, isSendable, type Outcome } from "../core/outcome.ts";
import { UsageError } from "./command-line.ts";

/** How an entry ends; each with the statuses that its outcome may have. */
export type FinalState = "succeeded" | "failed";

const STATUSES: Readonly<Record<FinalState, readonly [from: number, to: number]>> = {
  succeeded: [200, 399],
  failed: [400, 599],
};

/** Statuses whose answers have no body (RFC 9110 §6.4.1): one that was stored could never be sent. */
const BODILESS = [204, 205, 304];

const MEMBERS = ["status", "headers", "body", "bodyBase64"];
const JSON_TYPE: HeaderLine = ["content-type", "application/json"];

/**
 * The outcome that a file describes: `{ "status", "headers"?, "body"? | "bodyBase64"? }`. `body` is any JSON value, whose
 * digits are kept; `headers` an object of texts or lists of texts. Raises {@link UsageError}, which names the member that
 * is wrong and never repeats what stands in it.
 */
export async function outcomeOf(path: string, state: FinalState): Promise<Outcome> {
  const members = membersOf(await parsed(path));
  const unknown = [...members.keys()].find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) refuse(`has a member that is none of ${MEMBERS.join(", ")}`);
  const status = statusOf(members.get("status"), state);
  const body = bodyOf(members.get("body"), members.get("bodyBase64"));
  if (body.length > 0 && BODILESS.includes(status)) refuse(`has a body, which an answer of ${status} cannot have`);
  const given = headersOf(members.get("headers"));
  const typed = members.has("body") && !given.some(([name]) => name === "content-type");
  return { status, headers: typed ? [JSON_TYPE, ...given] : given, body };
}

async function parsed(path: string): Promise<JsonNode> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    return refuse(`cannot be read (${error.code ?? error.name})`);
  });
  try {
    return parseJson(bytes, { allowNul: true, maxDepth: 200 });
  } catch {
    return refuse("is not JSON (RFC 8259, UTF-8, no repeated members)");
  }
}

function membersOf(node: JsonNode): ReadonlyMap<string, JsonNode> {
  if (node.kind !== "object") return refuse('is not an object such as { "status": 201, "body": {} }');
  return new Map(node.members);
}

function statusOf(node: JsonNode | undefined, state: FinalState): number {
  const [from, to] = STATUSES[state];
  const status = node?.kind === "number" ? Number(decimalText(node)) : Number.NaN;
  if (Number.isInteger(status) && status >= from && status <= to) return status;
  return refuse(`needs a "status" from ${from} to ${to}, because --${state} was given`);
}

function bodyOf(body: JsonNode | undefined, base64: JsonNode | undefined): Uint8Array {
  if (body !== undefined && base64 !== undefined) refuse('has both "body" and "bodyBase64"');
  if (body !== undefined) return new TextEncoder().encode(jsonOf(body));
  if (base64 === undefined) return new Uint8Array();
  const text = base64.kind === "string" ? base64.text : "";
  const bytes = Buffer.from(text, "base64");
  // Buffer skips what is no base64; a body with a hole in it must not become the outcome.
  return bytes.toString("base64") === text && base64.kind === "string"
    ? bytes
    : refuse('has a "bodyBase64" that is not base64 (RFC 4648 §4, with padding)');
}

/** The value as JSON text: members in their order, numbers with all of their digits. */
function jsonOf(node: JsonNode): string {
  switch (node.kind) {
    case "object":
      return `{${node.members.map(([name, value]) => `${JSON.stringify(name)}:${jsonOf(value)}`).join(",")}}`;
    case "array":
      return `[${node.elements.map(jsonOf).join(",")}]`;
    case "number":
      return decimalText(node);
    case "string":
      return JSON.stringify(node.text);
    case "literal":
      return String(node.value);
  }
}

function headersOf(node: JsonNode | undefined): HeaderLine[] {
  if (node === undefined) return [];
  if (node.kind !== "object") return refuse('has "headers" that are not an object');
  return node.members.flatMap(([name, value]) => {
    const values = value.kind === "array" ? value.elements : [value];
    return values.map((single) => headerLine(name, single));
  });
}

function headerLine(name: string, value: JsonNode): HeaderLine {
  const line: HeaderLine = [name.toLowerCase(), value.kind === "string" ? value.text : ""];
  if (value.kind !== "string" || !isSendable(line)) return refuse("has a header that HTTP cannot carry");
  try {
    headerAllowlist([line[0]]);
  } catch {
    return refuse(`has the header ${line[0]}, which is never replayed: it belongs to one connection or one caller`);
  }
  return line;
}

function refuse(what: string): never {
  throw new UsageError(`The outcome file ${what}. Nothing was changed.`);
}
