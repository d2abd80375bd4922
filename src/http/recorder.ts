import type { ServerResponse } from "node:http";
import type { AnyOutcome, OutcomeBody } from "../core/outcome.ts";
import type { HeadChanges } from "./captured.ts";
import { restoreHead } from "./node-response.ts";
import { recordedCalls } from "./recorded-calls.ts";
import type { RecordingLimits } from "./recording-limits.ts";
import { isBodyless } from "./replay.ts";
import { sendBody } from "./send-body.ts";
import { isHandler, runHandler, watchConnection } from "./socket-watch.ts";
import { createTape, giveUp, hideClose, type Tape } from "./tape.ts";

/** A recording of what a handler answers on Node's response object. Until it is released, no byte of it reaches the socket. */
export interface Recorder {
  /**
   * Resolves once the handler ended its answer. Rejects when the signal aborts, and with `oncekey_stream_refused` at the
   * first byte of an endless stream, at the byte that makes the answer too long, and where the handler goes past its
   * response to the connection. A handler that cuts its answer (`res.destroy()`, `req.socket.destroy()`) gives a 500:
   * nobody knows what it did.
   */
  readonly outcome: Promise<AnyOutcome>;
  /** Runs the handler, so that what it does to the connection is known to be its own doing. */
  run<T>(handler: () => T): T;
  /** The handler failed: unless it has answered already, `outcome` rejects with this. */
  fail(error: unknown): void;
  /** Sends what the handler answered, its own headers intact but for these changes. */
  release(head: HeadChanges): void;
  /**
   * Forgets what the handler answered. The response is as it was before, for another answer; whatever the handler still
   * does to it goes nowhere.
   */
  discard(): void;
}

/** Starts recording. The signal ends the wait, not the handler: its late writes are swallowed. */
export function recordResponse(res: ServerResponse, signal: AbortSignal, limits: RecordingLimits): Recorder {
  const { tape, outcome: recorded } = createTape(res, limits);
  watchConnection(tape.connection);
  hideClose(tape);
  install(tape);
  const abort = () => giveUp(tape, signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  const outcome = recorded.finally(() => signal.removeEventListener("abort", abort));
  outcome.catch(() => {});
  return {
    outcome,
    run: (handler) => runHandler(tape, handler),
    fail(error) {
      if (!tape.ended) giveUp(tape, error);
    },
    release: (head) => release(tape, head),
    discard: () => discard(tape),
  };
}

type AnyFunction = (...parameters: never[]) => unknown;

function install(tape: Tape): void {
  const { res, earlier } = tape;
  for (const [name, value] of Object.entries(recordedCalls(tape))) {
    earlier.set(name, Object.hasOwn(res, name) ? (res as unknown as Record<string, unknown>)[name] : undefined);
    override(res, name, value);
  }
  earlier.set("writableNeedDrain", undefined);
  Object.defineProperty(res, "writableNeedDrain", { get: () => tape.needDrain, configurable: true });
}

function override(res: ServerResponse, name: string, value: AnyFunction): void {
  Object.defineProperty(res, name, { value, configurable: true, writable: true, enumerable: true });
}

function restore({ res, marks, earlier, closed, socket }: Tape): void {
  // Wrappers that were put over ours are dropped: they belong to an answer that is complete.
  for (const [name, method] of earlier) {
    if (method === undefined) Reflect.deleteProperty(res, name);
    else override(res, name, method as AnyFunction);
  }
  marks._header = null;
  marks.finished = false;
  if (closed === "no") return;
  marks.socket = socket;
  marks.destroyed = true;
  marks._closed = true;
  if (closed === "held") res.emit("close");
}

function release(tape: Tape, head: HeadChanges): void {
  const { res, captured } = tape;
  tape.state = "released";
  restore(tape);
  if (head.remove !== null) res.removeHeader(head.remove);
  for (const [name, value] of head.add) res.setHeader(name, value);
  if (captured === null) res.destroy();
  else if (tape.closed !== "no") captured.release();
  else send(tape, captured.body, captured.release);
}

/** Ends the response as the handler would have, in one go. */
function send({ res, marks }: Tape, body: OutcomeBody, over: () => void): void {
  try {
    frame(res, body.length, marks._trailer !== "");
    // Trailers go out after chunks only.
    if (marks._trailer !== "" && !res.hasHeader("content-length")) res.flushHeaders();
    sendBody(res, body, over);
  } catch {
    // A wrapper of the application's own. The answer is stored: whoever asks again gets it.
    over();
    res.destroy();
  }
}

/**
 * The length as it is: one that is too short would let the rest of the body pass for another answer on this connection,
 * one beside Transfer-Encoding likewise (RFC 9112 §6.3).
 */
function frame(res: ServerResponse, length: number, trailers: boolean): void {
  const { statusCode } = res;
  if (statusCode === 304) return;
  const named = res.hasHeader("content-length");
  if (isBodyless(statusCode) || res.hasHeader("transfer-encoding")) {
    if (named) res.removeHeader("content-length");
  } else if (!named && (trailers || res.hasHeader("trailer"))) return;
  else if (String(res.getHeader("content-length")) !== String(length)) res.setHeader("Content-Length", length);
}

function discard(tape: Tape): void {
  const { res, head, marks, capturing, spool } = tape;
  tape.state = "discarded";
  restore(tape);
  restoreHead(res, head);
  marks._trailer = "";
  guard(tape);
  if (capturing === null) spool.release();
  // A handler whose lease was lost may have answered all the same, and its outcome is being stored.
  else capturing.then(({ abandon }) => abandon()).catch(() => {});
}

const GUARDED = [
  "writeHead",
  "writeHeader",
  "write",
  "end",
  "flushHeaders",
  "setHeader",
  "setHeaders",
  "appendHeader",
  "removeHeader",
  "addTrailers",
  "destroy",
] as const;

/** What the handler still does must neither crash the process nor reach the client, before the other answer or after it. */
function guard(tape: Tape): void {
  const methods = tape.res as unknown as Readonly<Record<string, ((...all: unknown[]) => unknown) | undefined>>;
  for (const name of GUARDED) {
    const method = methods[name]?.bind(tape.res);
    if (method === undefined) continue;
    override(tape.res, name, (...all: unknown[]) => {
      const late = isHandler(tape) || (tape.res.writableEnded && name !== "destroy");
      return late ? tape.res : method(...all);
    });
  }
}
