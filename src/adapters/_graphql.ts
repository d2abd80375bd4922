import { OncekeyError } from "../core/errors.ts";
import { headerAllowlist, storableHeaders } from "../core/outcome.ts";
import type { Operation } from "../engine/operation.ts";
import type { RefusalRow } from "../http/profile.ts";
import { profileNamed } from "../http/profiles/index.ts";
import { type Given, isProven, recordableMembers, refusalText } from "./_call-values.ts";
import type { AskedCall, CallBindingOptions, CallProblem, CallResult } from "./_direct.ts";
import { requestHeaders } from "./_request-headers.ts";

interface ArgumentNode {
  readonly name: { readonly value: string };
  readonly value: { readonly kind: string; readonly value?: unknown; readonly name?: unknown };
}

interface DirectiveNode {
  readonly name: { readonly value: string };
  readonly arguments?: readonly ArgumentNode[] | undefined;
}

/** What is used of the `info` that graphql-js hands to a resolver. */
export interface GraphqlInfo {
  readonly fieldName: string;
  readonly parentType: { readonly name: string };
  /** Without `prev`: a field of the document's root. */
  readonly path: { readonly prev?: unknown };
  readonly fieldNodes: readonly { readonly directives?: readonly DirectiveNode[] | undefined }[];
  readonly operation: { readonly operation: string };
  readonly variableValues: Readonly<Record<string, unknown>>;
  readonly schema: { getType(name: string): unknown };
}

/** What GraphQL hands to a resolver. */
export interface GraphqlCall<Source, Args, Context> {
  readonly source: Source;
  readonly args: Args;
  readonly context: Context;
  readonly info: GraphqlInfo;
}

const KEY_ARGUMENT = "idempotencyKey";
const KEY_DIRECTIVE = "idempotent";

/** A call as the gate reads it: keys from the argument, the directive or `key`; compared are the other arguments. */
export async function askedField<Source, Args extends object, Context>(
  operation: Operation,
  { key, input }: CallBindingOptions<GraphqlCall<Source, Args, Context>>,
  call: GraphqlCall<Source, Args, Context>,
): Promise<AskedCall> {
  refuseOtherOperations(operation, call.info);
  if (input === undefined) refuseUnseenSource(operation, call);
  const { [KEY_ARGUMENT]: argument, ...args } = call.args as Readonly<Record<string, unknown>>;
  const given = key === undefined ? [argument, ...directiveKeys(call.info)] : [await key(call)];
  return {
    // The same key twice (as argument and directive, or in two fields that GraphQL merges) is one key.
    keyLines: [...new Set(given.filter((line) => line != null))],
    keyPlace: key === undefined ? `the argument ${KEY_ARGUMENT} or @${KEY_DIRECTIVE}(key:) on the field` : "a key",
    body: input === undefined ? args : input(call),
    headerLines: (name) => requestHeaders(call.context)?.lines(name) ?? [],
  };
}

function directiveKeys({ fieldNodes, variableValues }: GraphqlInfo): unknown[] {
  const directives = fieldNodes.flatMap((node) => node.directives ?? []);
  const named = directives.filter(({ name }) => name.value === KEY_DIRECTIVE);
  const keys = named.flatMap((directive) => directive.arguments ?? []).filter(({ name }) => name.value === "key");
  return keys.map(({ value }) => {
    if (value.kind !== "Variable") return value.value;
    return variableValues[(value.name as { readonly value: string }).value];
  });
}

/** Raises `oncekey_config_invalid` where a resolver is missing or has nothing to do. */
export function checkResolver({ name, runKind }: Operation, resolver: unknown): void {
  if ((runKind === "capture") === (typeof resolver === "function")) return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    `Operation ${name} is a ${runKind} operation: ${runKind === "capture" ? "give idempotentResolver the existing resolver as well" : "it runs its own code, so take the resolver out"}. Nothing was bound.`,
  );
}

function refuseOtherOperations({ name }: Operation, { operation, fieldName }: GraphqlInfo): void {
  if (operation.operation === "mutation") return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    `Operation ${name} is bound to ${fieldName}, a field of a ${operation.operation}, which may not change anything. Nothing was run. Bind it to a mutation.`,
  );
}

/**
 * The arguments of a field below the root do not say which object it was asked of, so that one key on two objects would act
 * on the first and give its value for both. A source that holds nothing is a namespace of mutations.
 */
function refuseUnseenSource({ name }: Operation, { source, info }: GraphqlCall<unknown, object, unknown>): void {
  const { parentType, fieldName, path } = info;
  if (path.prev === undefined || source === undefined || source === null || source === true) return;
  const isPlain = typeof source === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(source));
  if (isPlain && Object.keys(source).length === 0) return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    `Operation ${name} is bound to ${parentType.name}.${fieldName}, below the root of the document, and its arguments do not tell of which object. Nothing was run. Give the binding input: ({ source, args }) => ({ id: source.id, ...args }).`,
  );
}

type Members = Readonly<Record<string, unknown>>;

interface GraphqlError extends Error {
  readonly extensions?: Members;
  readonly originalError?: unknown;
}

const statusOfCode: Readonly<Record<string, number>> = {
  BAD_REQUEST: 400,
  BAD_USER_INPUT: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  TOO_MANY_REQUESTS: 429,
  RATE_LIMITED: 429,
  INTERNAL_SERVER_ERROR: 500,
};

/**
 * The HTTP status an error of existing code stands for: that in `extensions.http`, else by `extensions.code`. A code
 * nobody knows is the application's own word for a refusal: 422. Without a code, or where it is no GraphQLError, an error
 * says nothing of what was done: 500.
 */
function errorStatus(error: unknown): number {
  if (!isGraphqlError(error)) return 500;
  const { code, http } = error.extensions ?? {};
  const { status } = (http ?? {}) as { readonly status?: unknown };
  if (typeof status === "number" && status >= 400) return status;
  return typeof code === "string" ? (statusOfCode[code] ?? 422) : 500;
}

// By name: two copies of graphql have two classes, and servers make subclasses.
function isGraphqlError(error: unknown): error is GraphqlError {
  if (!(error instanceof Error)) return false;
  return error.name === "GraphQLError" || Object.prototype.toString.call(error) === "[object GraphQLError]";
}

/** What existing code came to, and its error where it gave one. Raises that error where it proves nothing. */
export async function givenBy(
  operation: Operation,
  run: () => unknown,
): Promise<{ readonly given: Given; readonly error?: unknown }> {
  try {
    const value = await run();
    // graphql-js takes a returned error for a thrown one.
    if (value instanceof Error) throw value;
    return { given: { kind: "value", value } };
  } catch (error) {
    const status = errorStatus(error);
    if (!isProven(operation, status)) throw error;
    const { message, extensions = {}, originalError } = error as GraphqlError;
    const recorded = recordableExtensions(operation, extensions);
    const refusal = { message, extensions: recorded, wraps: originalError !== undefined };
    return { given: { kind: "refusal", status, refusal }, error };
  }
}

/**
 * Servers send the headers in `extensions.http` with their answer: of those only the ones that HTTP replays may have, no
 * cookies. Headers in a Map cannot be recorded; the status beside them stays.
 */
function recordableExtensions({ definition }: Operation, { http, ...others }: Members): Members {
  if (typeof http !== "object" || http === null) return recordableMembers(others);
  const { headers, ...rest } = http as Members;
  const lines = Object.entries(headers ?? {}).filter((line): line is [string, string] => typeof line[1] === "string");
  const kept = storableHeaders(lines, headerAllowlist(definition.replayHeaders));
  const sent = kept.length > 0 && { headers: Object.fromEntries(kept) };
  return { ...recordableMembers(others), http: { ...recordableMembers(rest), ...sent } };
}

/**
 * A refusal of ours as the dialect of the instance has it: part of the field's payload (its value is given), or an error of
 * the request (raised). `member`: what the payload calls its errors; default: the dialect's.
 */
export function problemValue(
  operation: Operation,
  { schema }: GraphqlInfo,
  problem: CallProblem,
  member: string | undefined,
): unknown {
  const { payloadErrors, refusals } = profileNamed(operation.engine.settings.profile);
  const row = refusals[problem.code];
  if (payloadErrors !== undefined && row.kind === payloadErrors) {
    return { [member ?? payloadErrors]: [{ field: null, message: problem.detail, code: row.error }] };
  }
  const extensions = payloadErrors === undefined ? problemExtensions(problem) : dialectExtensions(problem, row);
  throw new (errorClass(schema))(problem.detail, { extensions });
}

/** The dialect's code before ours. Its answers are 200 unless the server is at fault. */
function dialectExtensions(problem: CallProblem, { error, status }: RefusalRow): Members {
  const { code: reason, http: _, ...others } = problemExtensions(problem);
  return { code: error, reason, ...others, ...(status >= 500 && { http: { status } }) };
}

/** The value for graphql-js. Raises refusals: the operation's rejection, or existing code's error (`own`, or anew). */
export function fieldValue(
  { schema }: GraphqlInfo,
  result: Extract<CallResult, { readonly kind: "value" | "refusal" }>,
  own: unknown,
): unknown {
  if (result.kind === "value") return result.value;
  const Native = errorClass(schema);
  // An error of another copy of graphql is hidden by some servers: its replay would show what the first answer did not.
  if (!result.replayed && own instanceof Native) throw own;
  const { message, extensions, wraps } = result.refusal as { message: string; extensions?: Members; wraps?: boolean };
  if (extensions === undefined) throw rejection(Native, result.status, result.refusal);
  // Servers hide the message of an error that wraps another one; so they must on a replay.
  throw new Native(message, { extensions, ...(wraps && { originalError: new Error(message) }) });
}

function problemExtensions({ code, retry, retryAfterMs, state, status }: CallProblem): Members {
  return { code, retry, state, ...(retryAfterMs !== undefined && { retryAfterMs }), http: { status } };
}

/** A rejection of a `transaction` or `phases` operation: the members of its problem are the error's extensions. */
function rejection(Native: ErrorClass, status: number, refusal: unknown): Error {
  const problem = typeof refusal === "object" && refusal !== null ? (refusal as Members) : {};
  const code = typeof problem.code === "string" ? problem.code : "REJECTED";
  return new Native(refusalText(status, problem), { extensions: { ...problem, code, http: { status } } });
}

type ErrorClass = new (
  message: string,
  options: { readonly extensions: Members; readonly originalError?: Error },
) => Error;

const classes = new WeakMap<object, ErrorClass>();

/**
 * The class of errors that the schema's own graphql library throws: servers that hide unexpected errors (GraphQL Yoga) let
 * only that class through. Asking a built-in scalar to read what it cannot is the way to it without an import, which might
 * find another copy.
 */
function errorClass(schema: GraphqlInfo["schema"]): ErrorClass {
  const known = classes.get(schema) ?? thrownClass(schema);
  classes.set(schema, known);
  return known;
}

function thrownClass(schema: GraphqlInfo["schema"]): ErrorClass {
  const text = schema.getType("String") as { parseValue?(value: unknown): unknown } | undefined;
  try {
    text?.parseValue?.({});
  } catch (error) {
    if (isGraphqlError(error)) return error.constructor as ErrorClass;
  }
  return GraphqlCallError;
}

/** For schemas whose String scalar is not graphql-js's own. */
class GraphqlCallError extends Error {
  override readonly name = "GraphQLError";
  readonly extensions: Members;
  constructor(message: string, { extensions }: { readonly extensions: Members }) {
    super(message);
    this.extensions = extensions;
  }
}
