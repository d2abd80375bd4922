import { type ClientErrorCode, codes } from "../core/errors.ts";
import type { Operation } from "../engine/operation.ts";
import { DEFAULT_MAX_DURATION_MS, type Settings } from "../engine/settings.ts";
import type { BindingOptions } from "./binding.ts";
import type { Profile } from "./profile.ts";
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
  const listed = problemsOf(operation, options);
  return {
    ...base,
    parameters: withKey(base.parameters, keyParameter(operation, profile, options)),
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

type ProblemRow = { readonly code: ClientErrorCode } & (typeof codes)[ClientErrorCode];

function isClientCode(code: string): code is ClientErrorCode {
  return codes[code as ClientErrorCode].audience === "client";
}

/** Those that this binding can answer with, in the order of the table. */
function problemsOf(
  { definition }: Operation,
  { authorize, requireKey = true }: OpenApiOptions,
): readonly ProblemRow[] {
  const impossible = new Set<ClientErrorCode>([
    ...(requireKey ? [] : (["idempotency_key_missing"] as const)),
    ...(authorize === undefined ? (["idempotency_forbidden"] as const) : []),
    ...(definition.compare === "none" ? (["idempotency_payload_mismatch"] as const) : []),
  ]);
  return Object.keys(codes)
    .filter(isClientCode)
    .filter((code) => !impossible.has(code))
    .map((code) => ({ code, ...codes[code] }));
}

/** Problems that say when to come back. */
function hasRetryAfter({ code, status }: ProblemRow): boolean {
  return status === 503 || code === "idempotency_in_progress" || code === "idempotency_outcome_unknown";
}

// A bare key, or a quoted structured-field string (RFC 9651 §3.3.3); a comma is refused in both.
const KEY_PATTERN = '^(?:[!#-+\\--\\[\\]-~]+|"(?:[ !#-+\\--\\[\\]-~]|\\\\["\\\\])+")$';

function keyParameter({ engine }: Operation, profile: Profile, { requireKey = true }: OpenApiOptions): OpenApiObject {
  // Quotes and escapes are spelling, and do not count as the key's own length.
  const maxLength = 2 * engine.settings.maxKeyLength + 2;
  return {
    name: fieldName(profile.keyHeader),
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
  { definition, engine }: Operation,
  profile: Profile,
  own: OpenApiObject,
  listed: readonly ProblemRow[],
  options: OpenApiOptions,
): OpenApiObject {
  const retention = retentionHeader(engine.settings, profile, definition.retentionMs);
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
  const media = objectOf(content[profile.problemType]);
  const ours = problemBody(rows, problemRef);
  const schema = media.schema === undefined ? ours : { anyOf: [media.schema, ours] };
  const late = rows.some(hasRetryAfter) ? { "Retry-After": RETRY_AFTER } : {};
  const headers = { ...late, ...objectOf(response.headers) };
  return {
    description: rows.map(({ title }) => `${title}.`).join(" "),
    ...response,
    ...(Object.keys(headers).length > 0 && { headers }),
    content: { ...content, [profile.problemType]: { ...media, schema } },
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

function replayHeader({ replayMarker: [name, value] }: Profile): OpenApiObject {
  const description = "On every answer but that of the request which carried the operation out.";
  return { [fieldName(name)]: { description, schema: { type: "string", const: value } } };
}

function retentionHeader(settings: Settings, profile: Profile, retentionMs: number | undefined): OpenApiObject {
  if (!settings.publishRetention) return {};
  const description = "How many seconds an outcome is kept, from completion.";
  const schema = { type: "integer", const: Math.floor((retentionMs ?? settings.retentionMs) / 1_000) };
  return { [fieldName(profile.retentionHeader)]: { description, schema } };
}

/** What generators of clients need: no schema tells them what to repeat, and for how long. */
function extension(
  { definition, engine, identityName, runKind }: Operation,
  profile: Profile,
  listed: readonly ProblemRow[],
  { requireKey = true }: OpenApiOptions,
): OpenApiObject {
  const { settings } = engine;
  const retentionMs = definition.retentionMs ?? settings.retentionMs;
  const [name, value] = profile.replayMarker;
  return {
    operation: identityName,
    runKind,
    key: { header: fieldName(profile.keyHeader), required: requireKey, maxLength: settings.maxKeyLength },
    scope: { parts: ["tenant", "client"], keySpace: definition.keySpace ?? "operation" },
    compare: definition.compare ?? "wire",
    retentionMs,
    retentionSeconds: Math.floor(retentionMs / 1_000),
    clientRetryWindowMs: settings.clientRetryWindowMs,
    waitMs: definition.waitMs ?? settings.waitMs,
    maxDurationMs: definition.maxDurationMs ?? DEFAULT_MAX_DURATION_MS,
    replay: { header: fieldName(name), value },
    problems: listed.map((row) => ({
      code: row.code,
      type: `/problems/${row.code}`,
      status: row.status,
      retry: row.retry,
      retryAfter: hasRetryAfter(row),
    })),
  };
}

function objectOf(value: unknown): OpenApiObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as OpenApiObject) : {};
}
