import { stringifyJson } from "./json/stringify.ts";
import type { HeaderLine } from "./outcome.ts";

/** A response a handler returns: status, headers, bytes. Made by {@link ok}, {@link created} and friends. */
export interface OperationResponse {
  readonly kind: "response";
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly body: Uint8Array;
}

/** A refusal: business rows are rolled back (unless `keepRows`), the refusal itself is stored and replayed. */
export interface Rejection {
  readonly kind: "rejection";
  readonly keepRows: boolean;
  readonly response: OperationResponse;
}

/** Header lines as a plain object; several values of one name as a list. */
export type HeaderInit = Readonly<Record<string, string | readonly string[]>>;

const JSON_TYPE = "application/json";
const PROBLEM_TYPE = "application/problem+json";

/** Any status and bytes. Text is encoded as UTF-8; `headers` should name the content type. */
export function respond(status: number, body: Uint8Array | string | null, headers: HeaderInit = {}): OperationResponse {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : (body ?? new Uint8Array());
  return { kind: "response", status, headers: headerLines(headers), body: bytes };
}

/** Any status with a JSON value; `bigint` is written with its exact digits. */
export function json(status: number, value: unknown, headers: HeaderInit = {}): OperationResponse {
  return respond(status, stringifyJson(value), { "content-type": JSON_TYPE, ...headers });
}

/** 200 with a JSON value. */
export function ok(value: unknown, headers: HeaderInit = {}): OperationResponse {
  return json(200, value, headers);
}

/** 201 with `Location` and the created resource as JSON. */
export function created(location: string, value: unknown, headers: HeaderInit = {}): OperationResponse {
  return json(201, value, { location, ...headers });
}

/** 202 with a JSON value. */
export function accepted(value: unknown, headers: HeaderInit = {}): OperationResponse {
  return json(202, value, headers);
}

/** 204, no body. */
export function noContent(headers: HeaderInit = {}): OperationResponse {
  return respond(204, null, headers);
}

/** How a refusal is stored. */
export interface RejectOptions {
  /** Keep the business rows: a declined charge stays on the books. Default: they are rolled back. */
  readonly keepRows?: boolean;
  /** Further headers. */
  readonly headers?: HeaderInit;
}

/**
 * Refuses the operation for good: the answer is stored and replayed to every retry. `problem` is sent as
 * `application/problem+json` (RFC 9457) with `status` filled in, `type` defaulting to `about:blank`.
 */
export function reject(
  status: number,
  problem: Readonly<Record<string, unknown>>,
  options: RejectOptions = {},
): Rejection {
  const body = stringifyJson({ type: "about:blank", status, ...problem });
  const headers = { "content-type": PROBLEM_TYPE, ...options.headers };
  return { kind: "rejection", keepRows: options.keepRows ?? false, response: respond(status, body, headers) };
}

/** Whether a value was made by {@link respond}, {@link reject} and friends. */
export function isResponse(value: unknown): value is OperationResponse | Rejection {
  const { kind, response, body } = (value ?? {}) as { kind?: unknown; response?: unknown; body?: unknown };
  if (kind === "rejection") return isResponse(response);
  return kind === "response" && body instanceof Uint8Array;
}

function headerLines(headers: HeaderInit): HeaderLine[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const values = typeof value === "string" ? [value] : value;
    return values.map((single): HeaderLine => [name.toLowerCase(), single]);
  });
}
