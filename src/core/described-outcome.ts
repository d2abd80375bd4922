import type { JsonNode } from "./json/node.ts";
import { decimalText } from "./json/number.ts";
import { type HeaderLine, headerAllowlist, isSendable, type Outcome } from "./outcome.ts";
import { encodeContent, type StoredOutcome } from "./stored-outcome.ts";

/** What an operator wrote is no outcome. `what` is a clause: it names the member that is wrong, and repeats nothing of it. */
export class DescriptionRefused extends Error {
  override readonly name = "DescriptionRefused";
  readonly what: string;

  constructor(what: string) {
    super(what);
    this.what = what;
  }
}

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
 * The outcome that an operator describes: `{ "status", "headers"?, "body"? | "bodyBase64"? }`. `body` is any JSON value, whose
 * digits are kept; `headers` an object of texts or lists of texts. Raises {@link DescriptionRefused}.
 */
export function describedOutcome(node: JsonNode, state: FinalState): Outcome {
  const members = membersOf(node);
  const unknown = [...members.keys()].find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) refuse(`has a member that is none of ${MEMBERS.join(", ")}`);
  const status = statusOf(members.get("status"), state);
  const body = bodyOf(members.get("body"), members.get("bodyBase64"));
  if (body.length > 0 && BODILESS.includes(status)) refuse(`has a body, which an answer of ${status} cannot have`);
  const given = headersOf(members.get("headers"));
  const typed = members.has("body") && !given.some(([name]) => name === "content-type");
  return { status, headers: typed ? [JSON_TYPE, ...given] : given, body };
}

/** An outcome as a store keeps it, in its row and not sealed. */
export function plainOutcome({ status, headers, body }: Outcome): StoredOutcome {
  return { status, content: encodeContent({ headers, body }), pointer: null };
}

function membersOf(node: JsonNode): ReadonlyMap<string, JsonNode> {
  if (node.kind !== "object") return refuse('is not an object such as { "status": 201, "body": {} }');
  return new Map(node.members);
}

function statusOf(node: JsonNode | undefined, state: FinalState): number {
  const [from, to] = STATUSES[state];
  const status = node?.kind === "number" ? Number(decimalText(node)) : Number.NaN;
  if (Number.isInteger(status) && status >= from && status <= to) return status;
  return refuse(`needs a "status" from ${from} to ${to}, where it ${state}`);
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
  throw new DescriptionRefused(what);
}
