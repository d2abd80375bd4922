import { OncekeyError } from "../core/errors.ts";
import { type HeaderLine, isSendable, takeBytes } from "../core/outcome.ts";
import type { Answer, Exchange } from "../http/exchange.ts";
import { isBodyless } from "../http/replay.ts";

type Values<V> = Readonly<Record<string, V | undefined>> | null;

/** What is used of an event of API Gateway (payload formats 1.0 and 2.0) or of a function URL (2.0). */
export interface LambdaEvent {
  readonly httpMethod?: string;
  readonly path?: string;
  readonly rawPath?: string;
  readonly rawQueryString?: string;
  readonly headers?: Values<string>;
  readonly multiValueHeaders?: Values<readonly string[]>;
  readonly queryStringParameters?: Values<string>;
  readonly multiValueQueryStringParameters?: Values<readonly string[]>;
  readonly pathParameters?: Values<string>;
  readonly body?: string | null;
  readonly isBase64Encoded?: boolean;
  readonly requestContext: { readonly path?: string; readonly http?: { readonly method: string } };
}

/** An answer in the form that the event's gateway takes. */
export interface LambdaResult {
  statusCode: number;
  body: string;
  isBase64Encoded: boolean;
  /** Format 2.0: lines of one name are joined. */
  headers?: Record<string, string>;
  /** Format 2.0: the `Set-Cookie` lines. */
  cookies?: string[];
  /** Format 1.0. */
  multiValueHeaders?: Record<string, string[]>;
}

function notHttp(): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    "The function was not invoked by API Gateway or a function URL, so there is no request to compare. Nothing was run. Take queue messages in with oncekey/inbox, other events with once.run().",
  );
}

/**
 * The event as an exchange; `remainingMs` tells how long the function still has. Raises `oncekey_config_invalid` for an
 * event of another source.
 */
export function lambdaExchange<Event extends LambdaEvent>(event: Event, remainingMs: () => number): Exchange<Event> {
  const method = methodOf(event);
  if (method === null) throw notHttp();
  const params = Object.entries(event.pathParameters ?? {}).map(([name, value]) => [name, value ?? ""]);
  const body = Buffer.from(event.body ?? "", event.isBase64Encoded === true ? "base64" : "utf8");
  return {
    native: event,
    method,
    target: targetOf(event),
    params: Object.fromEntries(params),
    headerLines: (name) => valuesOf(event.multiValueHeaders ?? event.headers, name),
    readBody: async (limitBytes) =>
      body.length > limitBytes ? { kind: "too_large" } : { kind: "bytes", bytes: new Uint8Array(body) },
    remainingMs,
  };
}

/** `null`: no request of these gateways. Load balancers resemble format 1.0, WebSocket APIs have no method. */
function methodOf(event: Partial<LambdaEvent> | undefined | null): string | null {
  const { requestContext, httpMethod } = event ?? {};
  if (typeof requestContext !== "object" || requestContext === null || "elb" in requestContext) return null;
  const method = requestContext.http === undefined ? httpMethod : requestContext.http.method;
  return typeof method === "string" ? method : null;
}

// REST APIs keep the case that the client wrote.
function valuesOf(fields: LambdaEvent["headers"] | LambdaEvent["multiValueHeaders"], name: string): string[] {
  const named = Object.entries(fields ?? {}).filter(([given]) => given.toLowerCase() === name);
  return named.flatMap(([, value]) => value ?? []);
}

/** The path that the client sent, with its stage or base path; `event.path` of a REST API lacks it. */
function targetOf(event: LambdaEvent): string {
  if (event.requestContext.http === undefined) {
    const query = queryOf(event.multiValueQueryStringParameters ?? event.queryStringParameters ?? {});
    return encodedPath(event.requestContext.path ?? event.path ?? "/") + (query === "" ? "" : `?${query}`);
  }
  const query = event.rawQueryString ?? "";
  return encodedPath(event.rawPath ?? "/") + (query === "" ? "" : `?${query}`);
}

/**
 * HTTP APIs hand the path over decoded, REST APIs and function URLs as it was sent. What can never stand in a path is
 * encoded again: a decoded question mark must not begin a query. Paths that are encoded already stay as they are.
 */
function encodedPath(path: string): string {
  return path.toWellFormed().replace(/[^\x21-\x7e]|[?#]|%(?![0-9a-f]{2})/giu, encodeURIComponent);
}

/** Format 1.0 has the query's decoded pairs only. */
function queryOf(pairs: Readonly<Record<string, string | readonly string[] | undefined>>): string {
  const encoded = (text: string) => encodeURIComponent(text.toWellFormed());
  const lines = Object.entries(pairs).flatMap(([name, value]) =>
    [value ?? ""].flat().map((single) => `${encoded(name)}=${encoded(single)}`),
  );
  return lines.join("&");
}

/** An answer for the gateway. The gateway frames it; text goes as text, because REST APIs decode base64 only where told to. */
export async function lambdaResult(event: LambdaEvent, { status, headers, body }: Answer): Promise<LambdaResult> {
  const bytes = await takeBytes(body);
  const text = exactText(bytes);
  const sent = {
    statusCode: status,
    body: text ?? Buffer.from(bytes).toString("base64"),
    isBase64Encoded: text === null,
  };
  const lines = headers.filter(([name]) => name !== "content-length");
  if (event.requestContext.http === undefined) return { ...sent, multiValueHeaders: grouped(lines) };
  const cookies = lines.filter(([name]) => name === "set-cookie").map(([, value]) => value);
  const others = Object.entries(grouped(lines.filter(([name]) => name !== "set-cookie")));
  const joined = Object.fromEntries(others.map(([name, values]) => [name, values.join(", ")]));
  return { ...sent, headers: joined, ...(cookies.length === 0 ? {} : { cookies }) };
}

function exactText(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function grouped(lines: readonly HeaderLine[]): Record<string, string[]> {
  // A map: a header may be named as something that every object has.
  const groups = new Map<string, string[]>();
  for (const [name, value] of lines) groups.set(name, [...(groups.get(name) ?? []), value]);
  return Object.fromEntries(groups);
}

/** What an existing handler may give: API Gateway's structured form, or (format 2.0 only) any value as a JSON body. */
interface Given extends Partial<Omit<LambdaResult, "headers" | "multiValueHeaders" | "body">> {
  readonly body?: string | null;
  readonly headers?: Values<unknown>;
  readonly multiValueHeaders?: Values<readonly unknown[]>;
}

/** What a handler's result means to the gateway. Raises `oncekey_response_invalid` for what it would refuse. */
export function lambdaResponse(event: LambdaEvent, result: unknown): Response {
  const { statusCode, body = "", isBase64Encoded, ...given } = structured(event, result);
  const status = Number(statusCode);
  const lines = linesOf(event, given);
  const isSound = Number.isInteger(status) && status >= 200 && status <= 599 && lines.every(isSendable);
  if (!isSound || typeof (body ?? "") !== "string") throw invalid();
  const bytes = Buffer.from(body ?? "", isBase64Encoded === true ? "base64" : "utf8");
  const headers = new Headers(lines.map(([name, value]): [string, string] => [name, value]));
  return new Response(isBodyless(status) ? null : new Uint8Array(bytes), { status, headers });
}

/** A handler's own response, as an answer for {@link lambdaResult}. */
export async function ownAnswer(response: Response): Promise<Answer> {
  const body = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers: [...response.headers], body };
}

function structured(event: LambdaEvent, result: unknown): Given {
  const isGiven = typeof result === "object" && result !== null && "statusCode" in result;
  if (isGiven) return result as Given;
  if (event.requestContext.http === undefined) throw invalid();
  const body = typeof result === "string" ? result : (JSON.stringify(result) ?? "");
  return { statusCode: 200, headers: { "content-type": "application/json" }, body };
}

function linesOf(event: LambdaEvent, { headers, multiValueHeaders, cookies }: Given): HeaderLine[] {
  const isV2 = event.requestContext.http !== undefined;
  const many = Object.entries(isV2 ? {} : (multiValueHeaders ?? {})).map(line);
  const single = Object.entries(headers ?? {}).map(line);
  // Format 1.0 merges both; what stands in both counts once.
  const merged = [
    ...many,
    ...single.map(([name, values]) => [name, values.filter((value) => !has(many, name, value))] as const),
  ];
  const lines = merged.flatMap(([name, values]) => values.map((value): HeaderLine => [name, value]));
  return [...lines, ...(isV2 ? (cookies ?? []) : []).map((cookie): HeaderLine => ["set-cookie", cookie])];
}

type NamedValues = readonly [name: string, values: readonly string[]];

function line([name, value]: readonly [string, unknown]): NamedValues {
  const values = value === undefined || value === null ? [] : [value].flat();
  return [name.toLowerCase(), values.map(String)];
}

function has(lines: readonly NamedValues[], name: string, value: string): boolean {
  return lines.some(([other, values]) => other === name && values.includes(value));
}

function invalid(): OncekeyError {
  return new OncekeyError(
    "oncekey_response_invalid",
    "The handler returned nothing that its gateway can send: a status from 200 to 599, headers of one line and a body of text are needed. Nothing was stored; the key needs recovery.",
  );
}
