import { OncekeyError } from "./errors.ts";
import { canonicalValue } from "./json/canonical.ts";
import { MAX_VALUE_DEPTH } from "./json/trail.ts";
import type { SchemaIssue, StandardSchema } from "./standard-schema.ts";

/** The parts of a request that an operation takes. */
export type InputPart = "body" | "params" | "query";

/** A schema for each part that is validated; a part without one arrives as it was parsed. */
export type InputSchemas = { readonly [P in InputPart]?: StandardSchema };

/** The validated input that `run` gets, typed part by part. */
export type InputOf<S extends InputSchemas> = {
  readonly [P in InputPart]: S extends { readonly [Q in P]: StandardSchema<infer Output> } ? Output : unknown;
};

/** The unvalidated parts, as parsed from a request or given to `once.run`. */
export interface RawInput {
  readonly body?: unknown;
  readonly params?: unknown;
  readonly query?: unknown;
}

/** A validated input, and the members that validation dropped on the way (they belong to the fingerprint too). */
export interface ValidatedInput {
  readonly input: Readonly<Record<InputPart, unknown>>;
  readonly dropped: unknown;
}

const PARTS: readonly InputPart[] = ["body", "params", "query"];

/**
 * Validates each part by its schema. With `twice`, checks that the schema is deterministic (needed where the input is
 * what retries are compared by: a default such as "now" would make every retry a mismatch).
 * Raises `idempotency_request_invalid` with the issues' paths and messages, `oncekey_input_unstable`.
 */
export async function validateInput(schemas: InputSchemas, raw: RawInput, twice = false): Promise<ValidatedInput> {
  const input: Record<InputPart, unknown> = { body: undefined, params: undefined, query: undefined };
  const dropped: Record<string, unknown> = {};
  for (const part of PARTS) {
    const schema = schemas[part];
    input[part] = schema === undefined ? raw[part] : await validatePart(part, schema, raw[part], twice);
    const lost = droppedMembers(raw[part], input[part]);
    if (lost !== undefined) dropped[part] = lost;
  }
  return { input, dropped: Object.keys(dropped).length === 0 ? undefined : dropped };
}

async function validatePart(part: InputPart, schema: StandardSchema, value: unknown, twice: boolean): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  if (result.issues !== undefined) throw invalidInput(part, result.issues);
  if (twice) await checkStable(part, schema, value, result.value);
  return result.value;
}

async function checkStable(part: InputPart, schema: StandardSchema, value: unknown, first: unknown): Promise<void> {
  const again = await schema["~standard"].validate(value);
  const stable = again.issues === undefined && Buffer.compare(canonicalValue(first), canonicalValue(again.value)) === 0;
  if (stable) return;
  throw new OncekeyError(
    "oncekey_input_unstable",
    `The ${part} schema gave two different values for one request. Nothing was run or stored. Take what changes (now, random ids) out of the schema, or compare the wire form.`,
  );
}

const MAX_ISSUES = 5;

function invalidInput(part: InputPart, issues: readonly SchemaIssue[]): OncekeyError {
  const listed = issues
    .slice(0, MAX_ISSUES)
    .map((issue) => `${[part, ...issuePath(issue)].join(".")}: ${issue.message}`);
  const more = issues.length > MAX_ISSUES ? ` (and ${issues.length - MAX_ISSUES} more)` : "";
  return new OncekeyError(
    "idempotency_request_invalid",
    `The request does not fit its schema: ${listed.join("; ")}${more}. Nothing was run or stored; correct it and send it with the same key.`,
  );
}

function issuePath(issue: SchemaIssue): string[] {
  return (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
}

/** The members of `raw` that `kept` has not, in their places; `undefined` where nothing was dropped. */
function droppedMembers(raw: unknown, kept: unknown, depth = 0): unknown {
  // Deeper than any form can be written; canonicalValue refuses it with a clear error.
  if (raw === kept || depth > MAX_VALUE_DEPTH) return undefined;
  if (!isRecord(raw) || !isRecord(kept)) return undefined;
  const lost: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(raw)) {
    const rest = Object.hasOwn(kept, name) ? droppedMembers(value, kept[name], depth + 1) : value;
    if (rest !== undefined) lost[name] = rest;
  }
  return Object.keys(lost).length === 0 ? undefined : { ...lost };
}

/** Plain objects and arrays alike: an array's indexes are its members. */
function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  return Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value));
}
