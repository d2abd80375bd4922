import type { Decimal } from "./number.ts";

/** A JSON value as it was written: members in order, numbers as exact decimals. What {@link parseJson} gives. */
export type JsonNode = JsonObject | JsonArray | JsonString | JsonNumber | JsonLiteral;

/** Members in the order of the text; names are distinct. */
export interface JsonObject {
  readonly kind: "object";
  readonly members: readonly (readonly [name: string, value: JsonNode])[];
}

interface JsonArray {
  readonly kind: "array";
  readonly elements: readonly JsonNode[];
}

/** Unescaped, well-formed text. */
interface JsonString {
  readonly kind: "string";
  readonly text: string;
}

export interface JsonNumber extends Decimal {
  readonly kind: "number";
}

interface JsonLiteral {
  readonly kind: "literal";
  readonly value: true | false | null;
}
