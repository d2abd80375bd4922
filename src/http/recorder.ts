import type { ServerResponse } from "node:http";
import { OncekeyError } from "../core/errors.ts";
import type { Outcome } from "../core/outcome.ts";
import { capturedOutcome, type HeadChanges, refuseStream } from "./captured.ts";
import {
  applyFields,
  type Head,
  headerLinesOf,
  nodeError,
  rememberHead,
  restoreHead,
  toBytes,
} from "./node-response.ts";

/** A recording of what a handler answers on Node's response object. Until it is released, no byte reaches the socket. */
export interface Recorder {
  /**
   * Resolves once the handler ended its answer. Rejects when the signal aborts, and with `oncekey_stream_refused` at the
   * first byte of an event stream. A handler that destroys its response gives a 500: nobody knows what it did.
   */
  readonly outcome: Promise<Outcome>;
  /** Sends what the handler answered, its own headers intact but for these changes. */
  release(head: HeadChanges): void;
  /**
   * Forgets what the handler answered. The response is as it was before, for another answer; whatever the handler still
   * writes after that one goes nowhere.
   */
  discard(): void;
}

// Node's own marks: "the head is sent", "end() was called", "the socket is gone". Every middleware that asks looks at
// them, directly or through headersSent, writableEnded and destroyed, so while recording they say what the handler must
// believe, and setHeader() and friends refuse on their own.
interface Marks {
  socket: unknown;
  _header: string | null;
  finished: boolean;
  destroyed: boolean;
  _closed: boolean;
}

const RECORDED = ["writeHead", "write", "end", "flushHeaders", "destroy", "emit"] as const;
const GUARDED = ["writeHead", "write", "end", "setHeader", "setHeaders", "appendHeader", "removeHeader"] as const;

type Method = (typeof RECORDED)[number] | (typeof GUARDED)[number];
type AnyFunction = (...parameters: never[]) => unknown;

interface Tape {
  readonly res: ServerResponse;
  readonly marks: Marks;
  readonly head: Head;
  readonly chunks: Uint8Array[];
  /** What the instance had of its own before: a middleware mounted earlier (compression) may have wrapped it. */
  readonly earlier: ReadonlyMap<Method, unknown>;
  readonly resolve: (outcome: Promise<Outcome>) => void;
  readonly reject: (error: unknown) => void;
  readonly socket: unknown;
  started: boolean;
  ended: boolean;
  /** Nobody waits for the answer any more. */
  givenUp: boolean;
  /** The handler destroyed its response. */
  cut: boolean;
  /** The client went away; while recording this is held back, or pipes into the response would stop half-way. */
  closed: "no" | "held" | "told";
}

/** Starts recording. The signal ends the wait, not the handler: its late writes are swallowed. */
export function recordResponse(res: ServerResponse, signal: AbortSignal): Recorder {
  const { promise, resolve, reject } = withResolvers();
  const own = (name: Method): [Method, unknown] => [name, Object.hasOwn(res, name) ? res[name] : undefined];
  const tape: Tape = {
    res,
    marks: res as unknown as Marks,
    head: rememberHead(res),
    chunks: [],
    earlier: new Map(RECORDED.map(own)),
    resolve,
    reject,
    started: false,
    ended: false,
    givenUp: false,
    cut: false,
    closed: res.destroyed ? "told" : "no",
    socket: res.socket,
  };
  hideClose(tape.marks);
  install(tape);
  const abort = () => giveUp(tape, signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  const outcome = promise.finally(() => signal.removeEventListener("abort", abort));
  outcome.catch(() => {});
  return {
    outcome,
    release: (head) => release(tape, head),
    discard: () => discard(tape),
  };
}

function withResolvers() {
  let resolve: (outcome: Promise<Outcome>) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<Outcome>((res, rej) => {
    resolve = res;
    reject = rej;
  });
  return { promise, resolve, reject };
}

function install(tape: Tape): void {
  const { res } = tape;
  const emit = res.emit.bind(res) as (...parameters: unknown[]) => boolean;
  override(res, {
    writeHead: (status: number, ...rest: unknown[]) => recordHead(tape, status, rest),
    write: (chunk: unknown, ...rest: unknown[]) => recordWrite(tape, chunk, rest),
    end: (...all: unknown[]) => recordEnd(tape, all),
    flushHeaders: () => ensureHead(tape),
    destroy: () => recordDestroy(tape),
    emit: (event: string, ...rest: unknown[]) => (event === "close" ? holdClose(tape) : emit(event, ...rest)),
  });
}

function override(res: ServerResponse, methods: Partial<Record<Method, AnyFunction>>): void {
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(res, name, { value, configurable: true, writable: true, enumerable: true });
  }
}

function recordHead(tape: Tape, status: number, rest: readonly unknown[]): ServerResponse {
  const { res, marks } = tape;
  if (tape.givenUp) return res;
  if (tape.ended || tape.started) throw nodeError("ERR_HTTP_HEADERS_SENT", "Cannot write headers after they are sent");
  const [first, second] = rest;
  const code = Math.trunc(status);
  if (!(code >= 100 && code <= 999)) throw nodeError("ERR_HTTP_INVALID_STATUS_CODE", `Invalid status code: ${status}`);
  res.statusCode = code;
  if (typeof first === "string") res.statusMessage = first;
  applyFields(res, typeof first === "string" ? second : (first ?? second));
  tape.started = true;
  marks._header = "held back";
  try {
    refuseStream(code, res.getHeader("content-type"));
  } catch (error) {
    giveUp(tape, error);
  }
  return res;
}

/** Through the instance's own writeHead: middleware between us and the handler listens there for the head. */
function ensureHead({ res, started }: Tape): void {
  if (!started) res.writeHead(res.statusCode);
}

function recordWrite(tape: Tape, chunk: unknown, rest: readonly unknown[]): boolean {
  const done = rest.find((given) => typeof given === "function") as ((error?: Error) => void) | undefined;
  if (tape.ended) {
    if (done !== undefined) process.nextTick(done, nodeError("ERR_STREAM_WRITE_AFTER_END", "write after end"));
    return false;
  }
  const bytes = toBytes(chunk, rest[0]);
  ensureHead(tape);
  if (!tape.ended) tape.chunks.push(bytes);
  if (done !== undefined) process.nextTick(done);
  return true;
}

function recordEnd(tape: Tape, all: readonly unknown[]): ServerResponse {
  const { res } = tape;
  const done = all.find((given) => typeof given === "function") as (() => void) | undefined;
  if (tape.ended) {
    const already = nodeError("ERR_STREAM_ALREADY_FINISHED", "Cannot call end after a stream was finished");
    if (done !== undefined) process.nextTick(done as (error: Error) => void, already);
    return res;
  }
  const [chunk, encoding] = all;
  if (chunk != null && typeof chunk !== "function")
    recordWrite(
      tape,
      chunk,
      [encoding].filter((given) => given !== done),
    );
  else ensureHead(tape);
  if (done !== undefined) res.once("finish", done);
  if (!tape.ended) {
    endTape(tape);
    tape.resolve(capturedOutcome(res.statusCode, headerLinesOf(res), Buffer.concat(tape.chunks)));
  }
  return res;
}

function recordDestroy(tape: Tape): ServerResponse {
  if (tape.ended) return tape.res;
  endTape(tape);
  tape.cut = true;
  tape.resolve(Promise.resolve({ status: 500, headers: [], body: new Uint8Array() }));
  return tape.res;
}

/** From here on the handler's writes are swallowed, and it believes that it has answered. */
function endTape(tape: Tape): void {
  tape.ended = true;
  tape.started = true;
  tape.marks._header = "held back";
  tape.marks.finished = true;
}

/**
 * An answer that was not complete no longer counts and is swallowed. The handler must not believe that it has gone out,
 * though: an error handler that finds the head sent cuts the socket, on which our own answer is about to go.
 */
function giveUp(tape: Tape, error: unknown): void {
  if (!tape.ended) {
    tape.ended = true;
    tape.givenUp = true;
    tape.marks._header = null;
  }
  tape.reject(error ?? new OncekeyError("idempotency_lease_lost", "The operation lost its lease or its time."));
}

function holdClose(tape: Tape): boolean {
  tape.closed = "held";
  hideClose(tape.marks);
  return false;
}

// A dead socket too: what serves files in Express looks at it and would stop before the first byte.
function hideClose(marks: Marks): void {
  if (!marks.destroyed) return;
  marks.destroyed = false;
  marks._closed = false;
  marks.socket = null;
}

function release(tape: Tape, head: HeadChanges): void {
  const { res, chunks, cut } = tape;
  restore(tape);
  res.removeHeader(head.remove);
  for (const [name, value] of head.add) res.setHeader(name, value);
  if (cut) res.destroy();
  else if (tape.closed === "no") res.end(chunks.length === 0 ? undefined : Buffer.concat(chunks));
}

function discard(tape: Tape): void {
  const { res, head } = tape;
  restore(tape);
  restoreHead(res, head);
  guard(res);
}

function restore({ res, marks, earlier, closed, socket }: Tape): void {
  // Wrappers that were put over ours are dropped: they belong to an answer that is complete.
  for (const [name, method] of earlier) {
    if (method === undefined) Reflect.deleteProperty(res, name);
    else override(res, { [name]: method as AnyFunction });
  }
  marks._header = null;
  marks.finished = false;
  if (closed === "no") return;
  marks.socket = socket;
  marks.destroyed = true;
  marks._closed = true;
  if (closed === "held") res.emit("close");
}

/** Once the other answer has ended, what the handler still does must neither crash the process nor reach the client. */
function guard(res: ServerResponse): void {
  for (const name of GUARDED) {
    const method = (res[name] as AnyFunction | undefined)?.bind(res);
    if (method === undefined) continue;
    override(res, { [name]: (...all: never[]) => (res.writableEnded ? res : method(...all)) });
  }
}
