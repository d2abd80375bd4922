import { OncekeyError } from "../errors.ts";
import type { JsonNode, JsonNumber } from "./node.ts";
import { decimalText } from "./number.ts";
import { pathOf, setMember } from "./trail.ts";

/** How fractions arrive: as exact numbers, refusing those a double cannot hold; as the nearest number; or as their exact text. */
export interface JsonValueOptions {
  /** Default `"exact"`. */
  readonly fractions?: "exact" | "nearest" | "text";
}

/** A few bytes such as 1e10000 must not become kilobytes of integer: most zeros that an exponent may append. */
const MAX_APPENDED_ZEROS = 400;

interface Walk {
  readonly fractions: "exact" | "nearest" | "text";
  readonly names: (string | number)[];
}

/**
 * The JavaScript value of a JSON text, without loss: integers beyond ±(2^53 − 1) arrive as `bigint`; a fraction arrives as
 * a number only if that number prints as the same decimal (0.1 does), else it is refused with
 * `idempotency_request_invalid`, naming the path. With `fractions: "text"` every number that is not an integer arrives as
 * its exact text (2.50 as "2.5"); with `nearest`, for what was not written for us, as the nearest number. Equal canonical forms give equal values. Members named `__proto__` are data.
 */
export function jsonValue(node: JsonNode, options: JsonValueOptions = {}): unknown {
  return nodeValue(node, { fractions: options.fractions ?? "exact", names: [] });
}

function nodeValue(node: JsonNode, walk: Walk): unknown {
  switch (node.kind) {
    case "object": {
      const out: Record<string, unknown> = {};
      for (const [name, member] of node.members) setMember(out, name, valueInside(member, name, walk));
      return out;
    }
    case "array":
      return node.elements.map((element, index) => valueInside(element, index, walk));
    case "string":
      return node.text;
    case "number":
      return numberValue(node, walk);
    case "literal":
      return node.value;
  }
}

function valueInside(node: JsonNode, name: string | number, walk: Walk): unknown {
  walk.names.push(name);
  const value = nodeValue(node, walk);
  walk.names.pop();
  return value;
}

function numberValue(node: JsonNumber, walk: Walk): number | bigint | string {
  if (node.exponent >= 0) return integerValue(node, walk);
  const text = decimalText(node);
  if (walk.fractions === "text") return text;
  const value = Number(text);
  // Number::toString and decimalText share one format, so equal text means: no digit was lost.
  if (walk.fractions === "exact" && String(value) !== text)
    refuse(walk, "has more digits than a number can hold; send it as a string");
  return value;
}

function integerValue(node: JsonNumber, walk: Walk): number | bigint {
  if (node.exponent > MAX_APPENDED_ZEROS) refuse(walk, "is too large");
  const text = `${node.negative ? "-" : ""}${node.digits}${"0".repeat(node.exponent)}`;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}

function refuse(walk: Walk, what: string): never {
  throw new OncekeyError(
    "idempotency_request_invalid",
    `The number at ${pathOf(walk.names)} ${what}. Nothing was run or stored. Correct the body and send it again with the same key.`,
  );
}
