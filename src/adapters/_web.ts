import { OncekeyError } from "../core/errors.ts";
import { isInMemory, type OutcomeBody } from "../core/outcome.ts";
import { untilAborted } from "../engine/until-aborted.ts";
import { webStreamOf } from "../http/answer-body.ts";
import type { ReadBody } from "../http/body.ts";
import { type Captured, captured, type HeadChanges, refuseStream } from "../http/captured.ts";
import type { Answer, BodyRead, Exchange } from "../http/exchange.ts";
import type { Gate, Handled } from "../http/gate.ts";
import { type RecordingLimits, recordingLimits } from "../http/recording-limits.ts";
import { isBodyless } from "../http/replay.ts";
import { createSpool, type Spool } from "../http/spool.ts";

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
  const limits = recordingLimits(gate.operation.engine.settings);
  const turn = limits.storing.turn();
  let recorded: RecordedResponse | undefined;
  let handled: Handled;
  try {
    handled = await gate.capture(exchange, async (signal, body) => {
      recorded = await recordWebResponse(await responseOf(run(body), signal), signal, limits);
      await turn.enter(recorded.outcome.body.length);
      return recorded.outcome;
    });
  } catch (error) {
    recorded?.abandon();
    throw error;
  } finally {
    turn.leave();
  }
  if (handled.kind === "pass") return handled;
  if (handled.kind === "handler" && recorded !== undefined) {
    return { kind: "own", response: recorded.respond(handled.head) };
  }
  recorded?.abandon();
  return { kind: "answer", answer: handled.answer };
}

/** One that comes too late is not read: whoever makes its body learns that nobody will. */
async function responseOf(running: Promise<Response>, signal: AbortSignal): Promise<Response> {
  try {
    return await untilAborted(running, signal);
  } catch (error) {
    if (signal.aborted) running.then((late) => late.body?.cancel()).catch(() => {});
    throw error;
  }
}

/** What a handler answered, read to its end: as an outcome, and as a response that can still be sent. */
interface RecordedResponse extends Pick<Captured, "outcome" | "abandon"> {
  respond(head: HeadChanges): Response;
}

/**
 * Reads a handler's response. Raises `oncekey_stream_refused` for an endless stream, before a byte of it is read, and for
 * an answer that is too long; rejects when the signal aborts.
 */
async function recordWebResponse(
  response: Response,
  signal: AbortSignal,
  limits: RecordingLimits,
): Promise<RecordedResponse> {
  refuseStream(response.status, response.headers.get("content-type"));
  const { status, statusText } = response;
  const spool = await spoolOf(response, signal, limits);
  const { outcome, body, release, abandon } = await captured(status, [...response.headers], spool, limits);
  return {
    outcome,
    abandon,
    respond(head) {
      const headers = new Headers(response.headers);
      if (head.remove !== null) headers.delete(head.remove);
      for (const [name, value] of head.add) headers.set(name, value);
      // A length that is not the body's would break the connection's framing.
      if (headers.has("content-length") && !isBodyless(status)) headers.set("content-length", String(body.length));
      // Of an answer without a body hosts say other things than of an empty one.
      const sent = sentBody(status, body, release);
      return new Response(response.body === null ? null : sent, { status, statusText, headers });
    },
  };
}

async function spoolOf(response: Response, signal: AbortSignal, limits: RecordingLimits): Promise<Spool> {
  const spool = createSpool(limits);
  const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    while (reader !== undefined) {
      const { done, value } = await untilAborted(reader.read(), signal);
      if (done) break;
      if (!spool.append(value)) await spool.drained();
    }
    return spool;
  } catch (error) {
    spool.release();
    reader?.cancel(error).catch(() => {});
    throw error;
  }
}

/** The body as it is sent; what held it is given back when that is done, or at once where the bytes are handed over whole. */
function sentBody(status: number, body: OutcomeBody, release: () => void): ArrayBuffer | ReadableStream | null {
  if (!isBodyless(status) && !isInMemory(body)) return webStreamOf({ ...body, release: async () => release() });
  const bytes = isBodyless(status) || !isInMemory(body) ? null : bodyInit(body);
  release();
  return bytes;
}

/** An answer as a `Response`. */
export function answerResponse({ status, headers, body }: Answer): Response {
  const lines = new Headers();
  for (const [name, value] of headers) lines.append(name, value);
  const sent = isInMemory(body) ? bodyInit(body) : webStreamOf(body);
  return new Response(isBodyless(status) ? null : sent, { status, headers: lines });
}

/** The values of each header of an answer. */
export function valuesByName({ headers }: Answer): Record<string, string[]> {
  const byName: Record<string, string[]> = {};
  for (const [name, value] of headers) byName[name] = [...(byName[name] ?? []), value];
  return byName;
}

/** A body as `Response` takes it, none where it is empty. */
export function webBody(body: OutcomeBody): ArrayBuffer | ReadableStream | null {
  if (!isInMemory(body)) return webStreamOf(body);
  return body.length === 0 ? null : bodyInit(body);
}

// A view of a larger buffer, or of shared memory, is no body: copy.
function bodyInit(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
