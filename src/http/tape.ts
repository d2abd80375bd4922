import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { OncekeyError } from "../core/errors.ts";
import type { AnyOutcome } from "../core/outcome.ts";
import { type Captured, captured } from "./captured.ts";
import { type Head, headerLinesOf, rememberHead } from "./node-response.ts";
import type { RecordingLimits } from "./recording-limits.ts";
import type { ConnectionUser } from "./socket-watch.ts";
import { createSpool, type Spool } from "./spool.ts";

/**
 * Node's own marks: "the head is sent", "end() was called", "the socket is gone". Every middleware that asks looks at
 * them, directly or through headersSent, writableEnded and destroyed, so while recording they say what the handler must
 * believe, and setHeader() and friends refuse on their own.
 */
export interface Marks {
  socket: unknown;
  _header: string | null;
  finished: boolean;
  destroyed: boolean;
  _closed: boolean;
  /** The trailers, as they will be sent. */
  _trailer: string;
}

/** A response object whose handler is being recorded. */
export interface Tape extends ConnectionUser {
  readonly res: ServerResponse;
  readonly marks: Marks;
  /** Status and headers before the handler touched them. */
  readonly head: Head;
  readonly spool: Spool;
  readonly limits: RecordingLimits;
  /** The response's socket, which is hidden from the handler once it is dead. */
  readonly socket: unknown;
  /** What the instance had of its own before: a middleware mounted earlier (compression) may have wrapped it. */
  readonly earlier: Map<string, unknown>;
  readonly resolve: (outcome: Promise<AnyOutcome>) => void;
  readonly reject: (error: unknown) => void;
  state: "recording" | "released" | "discarded";
  started: boolean;
  ended: boolean;
  /** The status has no body (204): what the handler writes all the same goes nowhere, as in Node. */
  bodyless: boolean;
  /** A write was answered with `false`, and "drain" is owed for it. */
  needDrain: boolean;
  /** Node itself writes an informational answer. */
  informing: boolean;
  /** Nobody waits for the answer any more. */
  givenUp: boolean;
  /** The handler destroyed its response, or the connection. */
  cut: boolean;
  /** The client went away; while recording this is held back, or pipes into the response would stop half-way. */
  closed: "no" | "held" | "told";
  capturing: Promise<Captured> | null;
  captured: Captured | null;
}

/** A tape for a fresh response, and what will have been recorded. */
export function createTape(
  res: ServerResponse,
  limits: RecordingLimits,
): { readonly tape: Tape; readonly outcome: Promise<AnyOutcome> } {
  const { promise, resolve, reject } = withResolvers();
  const tape: Tape = {
    res,
    marks: res as unknown as Marks,
    head: rememberHead(res),
    spool: createSpool(limits),
    limits,
    socket: res.socket,
    connection: (res.req.socket as Socket | undefined) ?? null,
    cuts: () => cuts(tape),
    writes: () => writes(tape),
    earlier: new Map(),
    resolve,
    reject,
    state: "recording",
    started: false,
    ended: false,
    bodyless: false,
    needDrain: false,
    informing: false,
    givenUp: false,
    cut: false,
    closed: res.destroyed ? "told" : "no",
    capturing: null,
    captured: null,
  };
  return { tape, outcome: promise };
}

function withResolvers() {
  let resolve: (outcome: Promise<AnyOutcome>) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<AnyOutcome>((res, rej) => {
    resolve = res;
    reject = rej;
  });
  return { promise, resolve, reject };
}

function cuts(tape: Tape): boolean {
  if (tape.state === "recording") cut(tape);
  // A handler that was given up must not cut the connection under another answer, or another request.
  return tape.state !== "released";
}

function writes(tape: Tape): boolean {
  if (tape.informing || tape.state === "released") return false;
  if (tape.state === "recording") giveUp(tape, pastResponse());
  return true;
}

function pastResponse(): OncekeyError {
  return new OncekeyError(
    "oncekey_stream_refused",
    "The captured handler wrote to the connection itself, past its response, which cannot be replayed. Nothing was sent or stored; the key needs recovery. Answer through the response, or serve such protocols on a route of their own, without Oncekey.",
  );
}

/** The handler's answer is complete. */
export function complete(tape: Tape): void {
  const { res, spool, limits } = tape;
  endTape(tape);
  const capturing = captured(res.statusCode, headerLinesOf(res), spool, limits);
  tape.capturing = capturing;
  tape.resolve(
    capturing.then((complete) => {
      tape.captured = complete;
      return complete.outcome;
    }),
  );
}

/** The handler cut its own answer: nobody knows what it did. */
export function cut(tape: Tape): void {
  if (tape.ended) return;
  endTape(tape);
  tape.cut = true;
  tape.spool.release();
  tape.resolve(Promise.resolve({ status: 500, headers: [], body: new Uint8Array() }));
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
export function giveUp(tape: Tape, error: unknown): void {
  if (!tape.ended) {
    tape.ended = true;
    tape.givenUp = true;
    tape.marks._header = null;
    tape.spool.release();
  }
  tape.reject(error ?? new OncekeyError("idempotency_lease_lost", "The operation lost its lease or its time."));
}

/** A dead socket too: what serves files in Express looks at it and would stop before the first byte. */
export function hideClose({ marks }: Tape): void {
  if (!marks.destroyed) return;
  marks.destroyed = false;
  marks._closed = false;
  marks.socket = null;
}
