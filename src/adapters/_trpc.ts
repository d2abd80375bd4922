import { OncekeyError } from "../core/errors.ts";
import type { Operation } from "../engine/operation.ts";
import { type Given, isProven, recordableMembers, refusalText } from "./_call-values.ts";
import { type AskedCall, type CallBindingOptions, type CallProblem, type CallResult, keyInvalid } from "./_direct.ts";
import { type RequestHeaders, requestHeaders } from "./_request-headers.ts";

/** What tRPC hands to the code behind a mutation. */
export interface TrpcCall<Context, Input> {
  readonly ctx: Context;
  /** As the validators before left it. */
  readonly input: Input;
  /** The procedure's path, such as `payments.create`. */
  readonly path: string;
}

/** What is used of a tRPC middleware's options. */
export interface TrpcMiddlewareCall<Context, Result> extends TrpcCall<Context, unknown> {
  readonly type: string;
  getRawInput(): Promise<unknown>;
  next(): Promise<Result>;
}

/** What the rest of a procedure gave, or what is given in its place. */
export type MiddlewareResult =
  | { readonly ok: true; readonly data: unknown; readonly marker: unknown }
  | { readonly ok: false; readonly error: Error & { readonly code?: unknown }; readonly marker: unknown };

// tRPC's own names for HTTP statuses.
const codeOfStatus: Readonly<Record<number, string>> = {
  400: "BAD_REQUEST",
  401: "UNAUTHORIZED",
  402: "PAYMENT_REQUIRED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  405: "METHOD_NOT_SUPPORTED",
  408: "TIMEOUT",
  409: "CONFLICT",
  412: "PRECONDITION_FAILED",
  413: "PAYLOAD_TOO_LARGE",
  415: "UNSUPPORTED_MEDIA_TYPE",
  422: "UNPROCESSABLE_CONTENT",
  428: "PRECONDITION_REQUIRED",
  429: "TOO_MANY_REQUESTS",
  499: "CLIENT_CLOSED_REQUEST",
  501: "NOT_IMPLEMENTED",
  502: "BAD_GATEWAY",
  503: "SERVICE_UNAVAILABLE",
  504: "GATEWAY_TIMEOUT",
};

const statusOfCode = new Map(Object.entries(codeOfStatus).map(([status, code]) => [code, Number(status)]));

/** The HTTP status of a tRPC error code; 500 for one that is none. */
function trpcStatus(code: unknown): number {
  return code === "PARSE_ERROR" ? 400 : (statusOfCode.get(String(code)) ?? 500);
}

/** What an error of a mutation tells a client beside tRPC's own members; `idempotencyErrors` puts it into `data`. */
export interface TrpcErrorData {
  /** A refusal of ours: which, and what to do about it. */
  readonly idempotency?: Pick<CallProblem, "code" | "retry" | "state" | "retryAfterMs">;
  /** The operation's own refusal, as `reject` was given it. */
  readonly problem?: unknown;
}

/**
 * An error as tRPC takes it: it is known by its name, since two copies of @trpc/server have two classes. Every other error
 * would reach the client as INTERNAL_SERVER_ERROR.
 */
export class TrpcCallError extends Error {
  override readonly name = "TRPCError";
  readonly code: string;
  readonly #data: TrpcErrorData;

  constructor(code: string, message: string, data: TrpcErrorData = {}) {
    super(message);
    this.code = code;
    this.#data = data;
  }

  /** What clients are told beside code and message; nothing for errors that are not ours. */
  static dataOf(error: unknown): TrpcErrorData {
    return error instanceof TrpcCallError ? error.#data : {};
  }
}

/** A refusal of ours. */
function problemError({ code, detail, retry, retryAfterMs, state, status }: CallProblem): TrpcCallError {
  const idempotency = { code, retry, state, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  return new TrpcCallError(codeOfStatus[status] ?? "INTERNAL_SERVER_ERROR", detail, { idempotency });
}

/** What is recorded of an error that a resolver threw: its code, message and own data, never its cause or stack. */
function errorMembers(error: Error): Record<string, unknown> {
  const { name: _, cause: __, stack: ___, ...own } = error as Error & Record<string, unknown>;
  return { ...recordableMembers(own), message: error.message };
}

/** A recorded error of a resolver ({@link errorMembers}), anew. */
function recordedError(members: unknown): TrpcCallError {
  const { code, message, ...own } = members as Readonly<Record<string, unknown>>;
  return Object.assign(new TrpcCallError(String(code), String(message)), own);
}

/** A rejection of a `transaction` or `phases` operation. Other 4xx than tRPC has are BAD_REQUEST, other 5xx internal. */
function rejectionError(status: number, problem: unknown): TrpcCallError {
  const unnamed = status < 500 ? "BAD_REQUEST" : "INTERNAL_SERVER_ERROR";
  return new TrpcCallError(codeOfStatus[status] ?? unnamed, refusalText(status, problem), { problem });
}

/**
 * What the rest of a procedure came to. Raises its error where that proves nothing: INTERNAL_SERVER_ERROR and other 5xx,
 * TIMEOUT and CLIENT_CLOSED_REQUEST unless the operation counts them among `notBegun`.
 */
export function givenBy(operation: Operation, result: MiddlewareResult): Given {
  if (result.ok) return { kind: "value", value: result.data };
  const status = trpcStatus(result.error.code);
  if (!isProven(operation, status)) throw result.error;
  return { kind: "refusal", status, refusal: errorMembers(result.error) };
}

/** What a middleware gives on: the value in its recorded form, the resolver's own error where this very call made it. */
export function middlewareResult(
  result: Exclude<CallResult, { readonly kind: "pass" }>,
  own: MiddlewareResult | undefined,
): MiddlewareResult {
  // What a middleware's `next()` marks its results with.
  const marker = "middlewareMarker";
  if (result.kind === "value") return { ok: true, data: result.value, marker };
  if (result.kind === "problem") throw problemError(result.problem);
  return !result.replayed && own?.ok === false ? own : { ok: false, error: recordedError(result.refusal), marker };
}

/** The value of an operation that runs behind a resolver. Raises its rejection, and refusals of ours. */
export function answerValue(result: CallResult): unknown {
  if (result.kind === "problem") throw problemError(result.problem);
  if (result.kind === "refusal") throw rejectionError(result.status, result.refusal);
  return result.kind === "value" ? result.value : undefined;
}

const KEY_HEADER = "idempotency-key";

/**
 * Where a call's key stands: what `key` gives, else the one header that all calls of a request share. Raises
 * `oncekey_config_invalid` for anything but a mutation, and where `ctx` holds no headers.
 */
export async function trpcKeys<Context, Input>(
  operation: Operation,
  { key }: CallBindingOptions<TrpcCall<Context, Input>>,
  call: TrpcCall<Context, Input>,
): Promise<Pick<AskedCall, "keyLines" | "keyPlace" | "headerLines">> {
  refuseOtherTypes(operation, call);
  const headers = requestHeaders(call.ctx);
  const headerLines = (header: string) => headers?.lines(header) ?? [];
  if (key !== undefined) {
    const given = await key(call);
    return { keyLines: given == null ? [] : [given], keyPlace: "a key", headerLines };
  }
  if (headers === null) throw noHeaders(operation.name);
  const keyLines = headers.lines(KEY_HEADER);
  if (keyLines.length > 0) refuseSharedKey(headers, operation.identityName, call.path);
  return { keyLines, keyPlace: `the header ${KEY_HEADER}`, headerLines };
}

const usedIn = new WeakMap<object, Set<string>>();

/**
 * The calls of a batch (and all calls of a WebSocket) share one header. Different operations may: their keys are apart.
 * Two calls of one operation would be one request, so both are refused where the batch's address shows them, and else the
 * later one.
 */
function refuseSharedKey({ request, url }: RequestHeaders, operation: string, path: string): void {
  const used = usedIn.get(request) ?? new Set();
  const repeated = used.has(operation) || batchedPaths(url).filter((batched) => batched === path).length > 1;
  usedIn.set(request, used.add(operation));
  if (repeated) throw keyInvalid("one header was sent for several calls of one operation; send them apart or key each");
}

function batchedPaths(url: string | null): readonly string[] {
  const [address = "", query = ""] = (url ?? "").split("?", 2);
  if (new URLSearchParams(query).get("batch") !== "1") return [];
  const last = address.slice(address.lastIndexOf("/") + 1);
  return last.replace(/%2c/gi, ",").split(",");
}

function noHeaders(name: string): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    `The binding of ${name} finds no headers in ctx (as ctx.req, ctx.request or ctx.headers). Nothing was run. Put the request into createContext, or give key.`,
  );
}

// tRPC tells a resolver what it is bound to, though its types do not say so.
function refuseOtherTypes({ name }: Operation, call: object): void {
  const { type = "mutation" } = call as { readonly type?: unknown };
  if (type === "mutation") return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    `Operation ${name} is bound to a ${String(type)}, which may not change anything and is repeated at will. Nothing was run. Bind it to a mutation.`,
  );
}
