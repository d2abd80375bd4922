import { decodeValue, encodeValue } from "../core/codec.ts";
import { parseJson } from "../core/json/parse.ts";
import { MAX_VALUE_DEPTH } from "../core/json/trail.ts";
import { jsonValue } from "../core/json/value.ts";
import type { Outcome } from "../core/outcome.ts";
import type { CaptureDefinition } from "../engine/definition.ts";
import type { Operation } from "../engine/operation.ts";

/** Turns values into plain data and back, as superjson and the transformers of tRPC do. */
export interface ValueTransformer {
  serialize(value: unknown): unknown;
  deserialize(value: unknown): unknown;
}

/** What existing code came to: a value, or a refusal whose status proves that nothing else was done. */
export type Given =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "refusal"; readonly status: number; readonly refusal: Readonly<Record<string, unknown>> };

/** The media type of a value in the codec's form; no HTTP client ever sees it. */
const VALUE_TYPE = "application/vnd.oncekey.value";

/** What is stored of existing code's result. Raises `oncekey_value_unsupported`, naming the member that cannot be kept. */
export function givenOutcome(given: Given, transformer: ValueTransformer | undefined): Outcome {
  const headers = [["content-type", VALUE_TYPE]] as const;
  if (given.kind === "refusal") return { status: given.status, headers, body: encodeValue(given.refusal) };
  const { value } = given;
  return { status: 200, headers, body: encodeValue(transformer === undefined ? value : transformer.serialize(value)) };
}

/**
 * The value an outcome holds: existing code's, as it was; else the operation's answer by its media type: JSON (integers
 * beyond ±(2^53 − 1) as `bigint`), text, or bytes; `null` where the answer has no body.
 */
export function outcomeValue({ headers, body, status }: Outcome, transformer: ValueTransformer | undefined): unknown {
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  if (type === VALUE_TYPE) {
    const value = decodeValue(body);
    return status < 400 && transformer !== undefined ? transformer.deserialize(value) : value;
  }
  if (body.length === 0) return null;
  if (/^[^;]*[/+]json\s*(?:;|$)/i.test(type)) {
    return jsonValue(parseJson(body, { allowNul: true, maxDepth: MAX_VALUE_DEPTH }), { fractions: "nearest" });
  }
  return type.startsWith("text/") ? new TextDecoder().decode(body) : body;
}

/**
 * Statuses that HTTP counts among the client's faults, and that code deep in a call uses for "I stopped waiting": nobody
 * knows what was done by then.
 */
const AMBIGUOUS = [408, 499];

/** Whether a refusal with that status may be recorded (or frees the key), instead of leaving the outcome unknown. */
export function isProven(operation: Operation, status: number): boolean {
  const { notBegun } = operation.definition as Partial<CaptureDefinition<Record<never, never>>>;
  if (notBegun?.includes(status)) return true;
  return status >= 400 && status < 500 && !AMBIGUOUS.includes(status);
}

/** What an error says of an operation's own refusal: the most telling text of its problem. */
export function refusalText(status: number, problem: unknown): string {
  const { detail, title, code } = (problem ?? {}) as Readonly<Record<string, unknown>>;
  const said = [detail, title, code].find((text) => typeof text === "string");
  return typeof said === "string" ? said : `The operation was refused (${status}).`;
}

/** The members that can be recorded; an error may carry others (a request, a connection), which are no part of a refusal. */
export function recordableMembers(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isRecordable(value)));
}

function isRecordable(value: unknown): boolean {
  try {
    encodeValue(value);
    return value !== undefined;
  } catch {
    return false;
  }
}
