import { type ClientErrorCode, codes, type RetryAdvice } from "../core/errors.ts";
import { maxDurationOf, retentionOf } from "../engine/context.ts";
import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "./binding.ts";
import { firstSentRule, type Profile, RETENTION_HEADER } from "./profile.ts";
import { profileNamed } from "./profiles/index.ts";

/** Part of an OpenAPI 3.1 document, or a JSON Schema in one: plain JSON data. */
export interface OpenApiObject {
  readonly [member: string]: unknown;
}

/** What the description of a bound operation says; the binding's own options may be given as they are. */
export interface OpenApiOptions extends Pick<BindingOptions<never>, "requireKey"> {
  /** As in the binding: where there is one, 403 is among the answers. Its code is not called. Default: none. */
  readonly authorize?: unknown;
  /**
   * The operation object as it is without the key: summary, request body, answers. Nothing of it is overwritten; our
   * answers are added to those of the same status. Default: empty.
   */
  readonly base?: OpenApiObject;
  /**
   * Where {@link problemSchema} stands in the document, such as `#/components/schemas/IdempotencyProblem`. Default: it is
   * written into each answer, so that the fragment stands alone.
   */
  readonly problemRef?: string;
}

/**
 * The OpenAPI 3.1 operation object of a bound operation: the key's header, our answers with their problem bodies, what marks
 * a replay, and `x-idempotency` for client generators (how long an outcome is kept, which problem is answered how). Equal
 * arguments give equal objects, members in the same order. Raises `oncekey_profile_unknown`.
 */
export function openApiOperation(operation: Operation, options: OpenApiOptions = {}): OpenApiObject {
  const { base = {} } = options;
  const profile = profileNamed(operation.engine.settings.profile);
  const listed = problemsOf(operation, profile, options);
  return {
    ...base,
    ...parametersWith(base.parameters, keyParameter(operation, profile, options)),
    responses: withProblems(operation, profile, objectOf(base.responses), listed, options),
    "x-idempotency": extension(operation, profile, listed, options),
  };
}

const STATES = ["none", "in_progress", "needs_recovery", "succeeded", "failed", "released"];

/** The JSON Schema of every problem body of ours (RFC 9457, with `code`, `retry` and `state`). */
export function problemSchema(): OpenApiObject {
  const text = { type: "string" };
  return {
    type: "object",
    required: ["type", "title", "status", "detail", "code", "retry", "state"],
    properties: {
      type: { type: "string", format: "uri-reference", description: "/problems/ and the code." },
      title: text,
      status: { type: "integer" },
      detail: { ...text, description: "What happened, what was kept, what to do next." },
      code: { type: "string", enum: Object.keys(codes).filter(isClientCode) },
      retry: {
        type: "string",
        enum: ["same_key", "new_key", "never"],
        description: "same_key: send exactly this again; new_key: correct it and start anew; never: give up.",
      },
      state: { type: "string", enum: STATES, description: "Of the key's entry; none: there is none." },
    },
  };
}

interface ProblemRow {
  readonly code: ClientErrorCode;
  /** In the dialect's terms, as `error`. */
  readonly status: number;
  readonly error: string;
  readonly retry: RetryAdvice;
  readonly title: string;
}

function isClientCode(code: string): code is ClientErrorCode {
  return codes[code as ClientErrorCode].audience === "client";
}

/** Those that this binding can answer with, in the order of the table. */
function problemsOf(
  { rules, engine }: Operation,
  profile: Profile,
  { authorize, requireKey = profile.key.required }: OpenApiOptions,
): readonly ProblemRow[] {
  const late = engine.settings.refuseLateRetries;
  const impossible = new Set<ClientErrorCode>([
    // Where a dialect has both or none, the instant of the first attempt without a key is refused.
    ...(requireKey || (late && firstSentRule(profile).required) ? [] : (["idempotency_key_missing"] as const)),
    ...(authorize === undefined ? (["idempotency_forbidden"] as const) : []),
    ...(rules.compare === "none" ? (["idempotency_payload_mismatch"] as const) : []),
    ...(late ? [] : (["idempotency_retry_too_late"] as const)),
  ]);
  return Object.keys(codes)
    .filter(isClientCode)
    .filter((code) => !impossible.has(code))
    .map((code) => {
      const { retry, title } = codes[code];
      const { status, error } = profile.refusals[code];
      return { code, status, error, retry, title };
    });
}

/** Problems that say when to come back. */
function hasRetryAfter({ code }: ProblemRow): boolean {
  return codes[code].status === 503 || code === "idempotency_in_progress" || code === "idempotency_outcome_unknown";
}

// A bare key, or a quoted structured-field string (RFC 9651 §3.3.3); a comma is refused in both.
const KEY_PATTERN = '^(?:[!#-+\\--\\[\\]-~]+|"(?:[ !#-+\\--\\[\\]-~]|\\\\["\\\\])+")$';

/** The key's header; `null` where it travels as a member, which the request's own schema describes. */
function keyParameter(
  { engine }: Operation,
  { key }: Profile,
  { requireKey = key.required }: OpenApiOptions,
): OpenApiObject | null {
  if (key.place.in !== "header") return null;
  // Quotes and escapes are spelling, and do not count as the key's own length.
  const maxLength = 2 * engine.settings.maxKeyLength + 2;
  return {
    name: fieldName(key.place.name),
    in: "header",
    required: requireKey,
    description:
      `A new random key for each thing the user wants done, the same key for each repetition of it. At most ${engine.settings.maxKeyLength} characters of printable ASCII, no comma; quoted or bare is the same key.` +
      (requireKey ? "" : " Without it the request runs once for itself and cannot be repeated safely."),
    schema: { type: "string", minLength: 1, maxLength, pattern: KEY_PATTERN },
  };
}

/** `idempotency-key` → `Idempotency-Key`, as documents write it. */
function fieldName(header: string): string {
  return header.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
}

function parametersWith(own: unknown, key: OpenApiObject | null): { readonly parameters?: unknown } {
  if (key === null) return own === undefined ? {} : { parameters: own };
  return { parameters: withKey(own, key) };
}

function withKey(own: unknown, key: OpenApiObject): readonly unknown[] {
  const parameters: readonly unknown[] = Array.isArray(own) ? own : [];
  const described = parameters.some((parameter) => {
    const { $ref, name, in: place } = objectOf(parameter);
    // What a reference leads to is not seen here, and a document may not describe one header twice.
    if (typeof $ref === "string") return letters($ref.slice($ref.lastIndexOf("/") + 1)) === letters(String(key.name));
    return place === "header" && String(name).toLowerCase() === String(key.name).toLowerCase();
  });
  return described ? parameters : [...parameters, key];
}

const letters = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, "");

function withProblems(
  operation: Operation,
  profile: Profile,
  own: OpenApiObject,
  listed: readonly ProblemRow[],
  options: OpenApiOptions,
): OpenApiObject {
  const retention = retentionHeader(operation);
  const replay = { ...replayHeader(profile), ...retention };
  const responses: Record<string, unknown> = {};
  for (const [status, response] of Object.entries(own)) responses[status] = withHeaders(response, replay);
  if (!Object.keys(own).some((status) => /^2/.test(status))) {
    responses["2XX"] = withHeaders({ description: "The operation's own answer." }, replay);
  }
  for (const status of new Set(listed.map((row) => row.status))) {
    const rows = listed.filter((row) => row.status === status);
    const covering = ownResponse(own, status);
    // A reference cannot be added to, and what it leads to is not ours to copy: x-idempotency still lists our problems.
    if ("$ref" in covering) continue;
    responses[status] = withProblem(
      withHeaders(covering, covering === NONE ? retention : replay),
      rows,
      profile,
      options,
    );
  }
  return responses;
}

const NONE: OpenApiObject = {};

/** What the document says of a status so far: an answer of its own, a range's, or the default one, which ours would hide. */
function ownResponse(own: OpenApiObject, status: number): OpenApiObject {
  const said = own[status] ?? own[`${String(status)[0]}XX`] ?? own.default;
  return said === undefined ? NONE : objectOf(said);
}

function withHeaders(response: unknown, headers: OpenApiObject): OpenApiObject {
  const own = objectOf(response);
  if ("$ref" in own || Object.keys(headers).length === 0) return own;
  return { ...own, headers: { ...headers, ...objectOf(own.headers) } };
}

function withProblem(
  response: OpenApiObject,
  rows: readonly ProblemRow[],
  profile: Profile,
  { problemRef }: OpenApiOptions,
): OpenApiObject {
  const content = objectOf(response.content);
  const media = objectOf(content[profile.mediaType]);
  const ours = profile.name === "ietf" ? problemBody(rows, problemRef) : foreignBody(rows);
  const schema = media.schema === undefined ? ours : { anyOf: [media.schema, ours] };
  const late = rows.some(hasRetryAfter) ? { "Retry-After": RETRY_AFTER } : {};
  const headers = { ...late, ...objectOf(response.headers) };
  return {
    description: rows.map(({ title }) => `${title}.`).join(" "),
    ...response,
    ...(Object.keys(headers).length > 0 && { headers }),
    content: { ...content, [profile.mediaType]: { ...media, schema } },
  };
}

const RETRY_AFTER: OpenApiObject = {
  description: "Seconds to wait before the same request is sent again with the same key.",
  schema: { type: "integer", minimum: 1, maximum: 3_600 },
};

function problemBody(rows: readonly ProblemRow[], problemRef: string | undefined): OpenApiObject {
  const problem = problemRef === undefined ? problemSchema() : { $ref: problemRef };
  const code = { enum: rows.map((row) => row.code) };
  return { allOf: [problem, { properties: { code, retry: { enum: [...new Set(rows.map((row) => row.retry))] } } }] };
}

/** The vendor's pages describe its errors; here stand their names. */
function foreignBody(rows: readonly ProblemRow[]): OpenApiObject {
  return { description: `One of the errors ${[...new Set(rows.map(({ error }) => error))].join(", ")}.` };
}

function replayHeader({ replayMarker }: Profile): OpenApiObject {
  if (replayMarker === null) return {};
  const [name, value] = replayMarker;
  const description = "On every answer but that of the request which carried the operation out.";
  return { [fieldName(name)]: { description, schema: { type: "string", const: value } } };
}

function retentionHeader(operation: Operation): OpenApiObject {
  if (!operation.engine.settings.publishRetention) return {};
  const description = "How many seconds an outcome is kept, from completion.";
  const schema = { type: "integer", const: Math.floor(retentionOf(operation) / 1_000) };
  return { [fieldName(RETENTION_HEADER)]: { description, schema } };
}

/** What generators of clients need: no schema tells them what to repeat, and for how long. */
function extension(
  operation: Operation,
  profile: Profile,
  listed: readonly ProblemRow[],
  { requireKey = profile.key.required }: OpenApiOptions,
): OpenApiObject {
  const { definition, engine, identityName, rules, runKind } = operation;
  const { settings } = engine;
  const retentionMs = retentionOf(operation);
  return {
    operation: identityName,
    runKind,
    profile: profile.name,
    key: { ...placeOf(profile), required: requireKey, maxLength: settings.maxKeyLength },
    scope: { parts: ["tenant", "client"], keySpace: rules.keySpace },
    compare: rules.compare,
    retentionMs,
    retentionSeconds: Math.floor(retentionMs / 1_000),
    clientRetryWindowMs: settings.clientRetryWindowMs,
    waitMs: definition.waitMs ?? settings.waitMs,
    maxDurationMs: maxDurationOf(operation),
    ...markOf(profile),
    problems: listed.map((row) => ({
      code: row.code,
      type: `/problems/${row.code}`,
      status: row.status,
      retry: row.retry,
      retryAfter: hasRetryAfter(row),
    })),
  };
}

function placeOf({ key: { place } }: Profile): OpenApiObject {
  return place.in === "header" ? { header: fieldName(place.name) } : { members: place.names };
}

function markOf({ replayMarker }: Profile): OpenApiObject {
  return replayMarker === null ? {} : { replay: { header: fieldName(replayMarker[0]), value: replayMarker[1] } };
}

function objectOf(value: unknown): OpenApiObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as OpenApiObject) : {};
}
