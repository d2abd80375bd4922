import { OncekeyError } from "../core/errors.ts";
import type { Outcome } from "../core/outcome.ts";
import type { ReadBody } from "../http/body.ts";
import { capturedOutcome, type HeadChanges, refuseStream } from "../http/captured.ts";
import type { Answer, BodyRead, Exchange } from "../http/exchange.ts";
import type { Gate } from "../http/gate.ts";
import { isBodyless } from "../http/replay.ts";

/** Path and query of an absolute URL, as they stand: parsing would normalise them. */
export function targetOf(url: string): string {
  return url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "") || "/";
}

/** The lines of a header. `Headers` joins several lines with a comma; keys with a comma are refused for that reason. */
export function webHeaderLines(headers: Headers, name: string): readonly string[] {
  const value = headers.get(name);
  return value === null ? [] : [value];
}

/** Reads a body stream, never more than the limit. */
export async function readWebBody(request: Request, limitBytes: number): Promise<BodyRead> {
  if (Number(request.headers.get("content-length") ?? 0) > limitBytes) return { kind: "too_large" };
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    size += read.value.length;
    if (size > limitBytes) {
      reader?.cancel().catch(() => {});
      return { kind: "too_large" };
    }
    chunks.push(read.value);
  }
  return { kind: "bytes", bytes: Buffer.concat(chunks) };
}

/** What an earlier `text()`, `json()` or `arrayBuffer()` of a framework left in its cache. Raises `oncekey_body_consumed`. */
export async function cachedBody(cache: { arrayBuffer?: unknown; text?: unknown; json?: unknown }): Promise<BodyRead> {
  if (cache.arrayBuffer !== undefined) return bytesRead(new Uint8Array((await cache.arrayBuffer) as ArrayBuffer));
  if (cache.text !== undefined) return bytesRead(new TextEncoder().encode((await cache.text) as string));
  if (cache.json !== undefined) return { kind: "parsed", value: await cache.json };
  throw new OncekeyError(
    "oncekey_body_consumed",
    "The request body was read before Oncekey and nothing of it is left, so the request cannot be compared. Nothing was run or stored. Mount idempotent() first.",
  );
}

function bytesRead(bytes: Uint8Array): BodyRead {
  return { kind: "bytes", bytes };
}

/** The request anew, its body unread, for the handler that a capture wraps. */
export function requestAgain(request: Request, { wire }: ReadBody): Request {
  const { method, headers, signal, url } = request;
  return new Request(url, {
    method,
    headers,
    signal,
    body: wire === null || wire.length === 0 ? null : bodyInit(wire),
  });
}

/** What a captured request comes to: the handler's own response, an answer of ours, or nothing of ours at all. */
export type CapturedRequest =
  | { readonly kind: "own"; readonly response: Response }
  | { readonly kind: "answer"; readonly answer: Answer }
  | { readonly kind: "pass" };

/** Runs a `capture` binding around a handler that answers with a `Response`. */
export async function captureWeb<Native>(
  gate: Gate<Native>,
  exchange: Exchange<Native>,
  run: (body: ReadBody) => Promise<Response>,
): Promise<CapturedRequest> {
  let recorded: RecordedResponse | undefined;
  const handled = await gate.capture(exchange, async (signal, body) => {
    recorded = await recordWebResponse(await untilAborted(run(body), signal), signal);
    return recorded.outcome;
  });
  if (handled.kind !== "handler" || recorded === undefined)
    return handled.kind === "pass" ? handled : toAnswer(handled);
  return { kind: "own", response: recorded.respond(handled.head) };
}

const toAnswer = ({ answer }: { readonly answer: Answer }): CapturedRequest => ({ kind: "answer", answer });

/** What a handler answered, read to its end: as an outcome, and as a response that can still be sent. */
interface RecordedResponse {
  readonly outcome: Outcome;
  respond(head: HeadChanges): Response;
}

/**
 * Reads a handler's response. Raises `oncekey_stream_refused` for an event stream, before a byte of it is read; rejects
 * when the signal aborts.
 */
async function recordWebResponse(response: Response, signal: AbortSignal): Promise<RecordedResponse> {
  refuseStream(response.status, response.headers.get("content-type"));
  const bytes = new Uint8Array(await untilAborted(response.arrayBuffer(), signal));
  const { status, statusText } = response;
  const outcome = await capturedOutcome(status, [...response.headers], bytes);
  return {
    outcome,
    respond(head) {
      const headers = new Headers(response.headers);
      headers.delete(head.remove);
      for (const [name, value] of head.add) headers.set(name, value);
      return new Response(isBodyless(status) ? null : bodyInit(bytes), { status, statusText, headers });
    },
  };
}

/** The promise, or a rejection as soon as the signal aborts; what the promise then gives is dropped. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** An answer as a `Response`. */
export function answerResponse({ status, headers, body }: Answer): Response {
  const lines = new Headers();
  for (const [name, value] of headers) lines.append(name, value);
  return new Response(isBodyless(status) ? null : bodyInit(body), { status, headers: lines });
}

// A view of a larger buffer, or of shared memory, is no body: copy.
function bodyInit(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
