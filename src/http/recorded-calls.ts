import { EventEmitter } from "node:events";
import { type ServerResponse, STATUS_CODES } from "node:http";
import { refuseStream } from "./captured.ts";
import { applyFields, nodeError, toBytes } from "./node-response.ts";
import { isBodyless } from "./replay.ts";
import { complete, cut, giveUp, hideClose, type Tape } from "./tape.ts";

type AnyFunction = (...parameters: never[]) => unknown;
type Done = (error?: Error) => void;

/** Answers that may come before the one that counts (RFC 9110 §15.2). They are passed on at once, and never stored. */
const INFORMATIONAL = ["writeContinue", "writeProcessing", "writeEarlyHints", "writeInformation"] as const;

/** The methods of a response that a recording takes the place of. */
export function recordedCalls(tape: Tape): Readonly<Record<string, AnyFunction>> {
  const { res } = tape;
  const { emit, on, addListener } = res;
  const writeHead = (status: unknown, ...rest: unknown[]) => recordHead(tape, status, rest);
  return {
    writeHead,
    // Node's old name for it, which would go past the other.
    writeHeader: writeHead,
    write: (chunk: unknown, ...rest: unknown[]) => recordWrite(tape, chunk, rest),
    end: (...all: unknown[]) => recordEnd(tape, all),
    flushHeaders: () => ensureHead(tape),
    destroy: () => {
      cut(tape);
      return res;
    },
    // They would hold back the connection, where nothing of this answer goes yet.
    cork: () => {},
    uncork: () => {},
    emit: (...all: Parameters<typeof emit>) => (all[0] === "close" ? holdClose(tape) : emit.apply(res, all)),
    // Compression that is mounted before us keeps these listeners for a stream that does not exist yet.
    on: (...all: Parameters<typeof on>) => (all[0] === "drain" ? EventEmitter.prototype.on : on).apply(res, all),
    addListener: (...all: Parameters<typeof on>) =>
      (all[0] === "drain" ? EventEmitter.prototype.on : addListener).apply(res, all),
    ...informationalCalls(tape),
  };
}

function informationalCalls(tape: Tape): Readonly<Record<string, AnyFunction>> {
  const methods = tape.res as unknown as Readonly<Record<string, ((...all: unknown[]) => unknown) | undefined>>;
  const calls: Record<string, AnyFunction> = {};
  for (const name of INFORMATIONAL) {
    const method = methods[name];
    if (method !== undefined) calls[name] = (...all: unknown[]) => inform(tape, () => method.apply(tape.res, all));
  }
  return calls;
}

function inform(tape: Tape, write: () => unknown): unknown {
  if (tape.ended || tape.closed !== "no") return undefined;
  tape.informing = true;
  try {
    return write();
  } finally {
    tape.informing = false;
  }
}

// What a reason phrase may hold (RFC 9112 §4), as Node checks it.
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;

function recordHead(tape: Tape, given: unknown, rest: readonly unknown[]): ServerResponse {
  const { res, marks } = tape;
  if (tape.givenUp) return res;
  if (tape.ended || tape.started) throw nodeError("ERR_HTTP_HEADERS_SENT", "Cannot write headers after they are sent");
  const [first, second] = rest;
  const status = Math.trunc(Number(given));
  if (!(status >= 100 && status <= 999)) {
    throw nodeError("ERR_HTTP_INVALID_STATUS_CODE", `Invalid status code: ${String(given)}`);
  }
  if (typeof first === "string") res.statusMessage = first;
  else if (!res.statusMessage) res.statusMessage = STATUS_CODES[status] ?? "unknown";
  res.statusCode = status;
  applyFields(res, typeof first === "string" ? second : (first ?? second));
  checkHead(tape, status);
  tape.bodyless = isBodyless(status);
  tape.started = true;
  marks._header = "held back";
  try {
    refuseStream(status, res.getHeader("content-type"));
  } catch (error) {
    giveUp(tape, error);
  }
  return res;
}

/** What Node would refuse when it writes the head has to reach the handler now, not us when the answer is stored. */
function checkHead({ res }: Tape, status: number): void {
  if (!REASON.test(res.statusMessage)) {
    throw nodeError("ERR_INVALID_CHAR", "Invalid character in statusMessage");
  }
  const chunked = res.req.httpVersion !== "1.0" && !isBodyless(status) && !res.hasHeader("content-length");
  if (res.hasHeader("trailer") && !chunked) {
    throw nodeError("ERR_HTTP_TRAILER_INVALID", "Trailers are invalid with this transfer encoding");
  }
}

/** Through the instance's own writeHead: middleware between us and the handler listens there for the head. */
function ensureHead({ res, started }: Tape): void {
  if (!started) res.writeHead(res.statusCode);
}

const isFunction = (given: unknown): given is Done => typeof given === "function";

function recordWrite(tape: Tape, chunk: unknown, rest: readonly unknown[]): boolean {
  const done = rest.find(isFunction);
  if (tape.ended && !tape.givenUp) {
    if (done !== undefined) process.nextTick(done, nodeError("ERR_STREAM_WRITE_AFTER_END", "write after end"));
    return false;
  }
  const bytes = toBytes(chunk, rest[0]);
  checkLength(tape, (expected) => tape.spool.length + bytes.length <= expected);
  ensureHead(tape);
  const goOn = keep(tape, bytes);
  if (done === undefined) return goOn;
  if (goOn) process.nextTick(done);
  else tape.spool.drained().then(() => done(), done);
  return goOn;
}

/** Keeps the bytes; `false` asks the handler to wait for "drain". */
function keep(tape: Tape, bytes: Uint8Array): boolean {
  if (tape.ended || tape.bodyless) return true;
  try {
    if (tape.spool.append(bytes)) return true;
  } catch (error) {
    giveUp(tape, error);
    return true;
  }
  if (!tape.needDrain) void drain(tape);
  tape.needDrain = true;
  return false;
}

async function drain(tape: Tape): Promise<void> {
  try {
    await tape.spool.drained();
  } catch (error) {
    giveUp(tape, error);
  }
  tape.needDrain = false;
  // Also where it was given up: what still comes is swallowed, but its source must not wait for ever.
  if (tape.state === "recording" && (!tape.ended || tape.givenUp)) tape.res.emit("drain");
}

function recordEnd(tape: Tape, all: readonly unknown[]): ServerResponse {
  const { res } = tape;
  const done = all.find(isFunction);
  const [chunk, encoding] = all;
  const hasChunk = Boolean(chunk) && chunk !== done;
  if (tape.ended) {
    if (done !== undefined && hasChunk && !tape.givenUp) {
      process.nextTick(done, nodeError("ERR_STREAM_WRITE_AFTER_END", "write after end"));
    } else if (done !== undefined) res.once("finish", done);
    return res;
  }
  if (hasChunk) recordWrite(tape, chunk, encoding === done ? [] : [encoding]);
  else ensureHead(tape);
  if (done !== undefined) res.once("finish", done);
  checkLength(tape, (expected) => tape.spool.length === expected);
  if (!tape.ended) complete(tape);
  return res;
}

/** Only where the handler asked for it (`strictContentLength`); else a wrong length is put right when the answer is sent. */
function checkLength({ res, started, bodyless, ended }: Tape, fits: (expected: number) => boolean): void {
  if (!res.strictContentLength || ended || bodyless || res.hasHeader("transfer-encoding")) return;
  const expected = res.getHeader("content-length");
  if (expected === undefined || fits(Number(expected))) return;
  if (!started && isBodyless(res.statusCode)) return;
  throw nodeError("ERR_HTTP_CONTENT_LENGTH_MISMATCH", "The body does not have the bytes that Content-Length says");
}

function holdClose(tape: Tape): boolean {
  tape.closed = "held";
  hideClose(tape);
  return false;
}
