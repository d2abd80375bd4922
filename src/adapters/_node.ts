import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { OncekeyError } from "../core/errors.ts";
import type { ReadBody } from "../http/body.ts";
import type { Answer, BodyRead, Exchange } from "../http/exchange.ts";
import type { Gate, Handled } from "../http/gate.ts";
import { writeNodeAnswer } from "../http/node-response.ts";
import { type Recorder, recordResponse } from "../http/recorder.ts";
import { recordingLimits } from "../http/recording-limits.ts";

/** Every line of a request header as it came: `req.headers` joins lines, and two keys would become one. */
export function nodeHeaderLines(req: IncomingMessage, name: string): readonly string[] {
  const lines: string[] = [];
  for (let at = 0; at + 1 < req.rawHeaders.length; at += 2) {
    if (req.rawHeaders[at]?.toLowerCase() === name) lines.push(req.rawHeaders[at + 1] ?? "");
  }
  return lines;
}

/** Whether the request's head announces a body (RFC 9112 §6.3). HTTP/2 has no such sign. */
function announcesBody(req: IncomingMessage): boolean {
  const length = req.headers["content-length"];
  return req.httpVersionMajor >= 2 || req.headers["transfer-encoding"] !== undefined || (length ?? "0") !== "0";
}

/** What an earlier parser left of a body. */
export interface EarlierBody {
  /** The bytes, where a parser kept them (`express.json({ verify })`, hosts of cloud functions); already decoded. */
  readonly rawBody?: unknown;
  readonly body?: unknown;
}

/**
 * Reads a Node request: its bytes where the stream is unread, else what an earlier parser left. With `keepStream` the
 * bytes are put back for a parser that comes later. Raises `oncekey_body_consumed` where nothing is left, instead of
 * waiting for a stream that has ended.
 */
export async function readNodeBody(
  req: IncomingMessage & EarlierBody,
  limitBytes: number,
  keepStream = false,
): Promise<BodyRead> {
  if (!announcesBody(req)) return { kind: "bytes", bytes: new Uint8Array() };
  if (req.rawBody instanceof Uint8Array) return { kind: "bytes", bytes: req.rawBody, decoded: true };
  // Flowing with nothing read yet: another reader listens and will take the bytes away from us.
  const consumed = req.readableDidRead || req.readableEnded || req.readableFlowing === true;
  if (consumed) return earlierBody(req.body);
  if (Number(req.headers["content-length"]) > limitBytes) return tooLarge(req);
  return readStream(req, limitBytes, keepStream);
}

function earlierBody(body: unknown): BodyRead {
  if (body instanceof Uint8Array) return { kind: "bytes", bytes: body, decoded: true };
  if (typeof body === "string") return { kind: "bytes", bytes: new TextEncoder().encode(body), decoded: true };
  if (body !== undefined) return { kind: "parsed", value: body };
  throw new OncekeyError(
    "oncekey_body_consumed",
    "Another reader consumed the request body and left no value, so the request cannot be compared. Nothing was run or stored. Mount idempotent() before that reader, or let it keep the bytes in req.rawBody.",
  );
}

/** Of what a client sends too much, so much is read before it is answered all the same. */
const DRAIN_LIMIT_BYTES = 16 * 1024 * 1024;
const DRAIN_LIMIT_MS = 5_000;

/**
 * Reads on into nothing, within bounds: a client that is still sending reads no answer, and one that asked for the
 * connection to be closed (RFC 9112 §9.6) would meet a broken pipe instead of the 413.
 */
function tooLarge(req: IncomingMessage): Promise<BodyRead> {
  return new Promise((resolve) => {
    let size = 0;
    const done = () => {
      clearTimeout(timer);
      req.off("data", count).off("end", done).off("error", done).off("close", done);
      resolve({ kind: "too_large" });
      req.resume();
    };
    const count = (chunk: Buffer) => {
      size += chunk.length;
      if (size > DRAIN_LIMIT_BYTES) done();
    };
    const timer = setTimeout(done, DRAIN_LIMIT_MS);
    req.on("data", count).on("end", done).on("error", done).on("close", done).resume();
  });
}

function readStream(req: IncomingMessage, limitBytes: number, keepStream: boolean): Promise<BodyRead> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const settle = (give: () => void) => {
      req.off("readable", pull).off("end", ended).off("error", failed).off("close", failed);
      give();
    };
    const ended = () => settle(() => resolve({ kind: "bytes", bytes: Buffer.concat(chunks) }));
    const failed = () => settle(() => reject(incomplete()));
    const pull = () => {
      for (let chunk = req.read() as Buffer | null; chunk !== null; chunk = req.read() as Buffer | null) {
        size += chunk.length;
        if (size > limitBytes) return settle(() => resolve(tooLarge(req)));
        chunks.push(chunk);
      }
      // All is here but "end" has not been told: the only moment at which bytes can be put back.
      if (keepStream && req.complete && size > 0) {
        req.unshift(Buffer.concat(chunks));
        ended();
      }
    };
    req.on("readable", pull).on("end", ended).on("error", failed).on("close", failed);
  });
}

function incomplete(): OncekeyError {
  return new OncekeyError(
    "idempotency_request_invalid",
    "The connection broke before the request body was complete. Nothing was run or stored. Send the request again with the same key.",
  );
}

/**
 * Reads what a framework hands over as the request's stream. Another stream than the request itself is an earlier hook's
 * (decompression), which has undone the content coding.
 */
export async function readPayload(req: IncomingMessage, payload: Readable, limitBytes: number): Promise<BodyRead> {
  if (payload === req) return readNodeBody(req, limitBytes);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of payload as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > limitBytes) return { kind: "too_large" };
    chunks.push(chunk);
  }
  return { kind: "bytes", bytes: Buffer.concat(chunks), decoded: true };
}

/** How a Node framework goes on after the gate. */
export interface NodeSteps {
  /**
   * Calls what comes after the binding. `body`: what was read; absent where the gate was passed by. Where failures of the
   * handler come back as a rejection, return the promise: a handler that failed with half an answer written ends there.
   */
  next(body?: ReadBody): unknown;
  /** Sends an answer where no handler ran. */
  answer(answer: Answer): void;
}

/**
 * Runs a `capture` binding on Node's response object. Rejects, with a fresh response, for the framework's error handling;
 * with `oncekey_config_invalid` for a response object of HTTP/2, before anything is run.
 */
export async function captureNode<Native>(
  gate: Gate<Native>,
  exchange: Exchange<Native>,
  res: ServerResponse,
  steps: NodeSteps,
): Promise<void> {
  const limits = recordingLimits(gate.operation.engine.settings);
  const turn = limits.storing.turn();
  let recorder: Recorder | undefined;
  let handled: Handled;
  try {
    handled = await gate.capture(refusingHttp2(exchange, res), async (signal, body) => {
      recorder = recordResponse(res, signal, limits);
      callHandler(recorder, () => steps.next(body));
      const outcome = await recorder.outcome;
      await turn.enter(outcome.body.length);
      return outcome;
    });
  } catch (error) {
    recorder?.discard();
    throw error;
  } finally {
    turn.leave();
  }
  if (handled.kind === "pass") return void (await steps.next());
  if (recorder === undefined) return steps.answer(handled.answer);
  if (handled.kind === "handler") return recorder.release(handled.head);
  recorder.discard();
  // On the bare response: the framework believes that its handler has answered.
  writeNodeAnswer(res, handled.answer);
}

function callHandler(recorder: Recorder, handler: () => unknown): void {
  Promise.resolve(recorder.run(handler)).catch((error: unknown) => recorder.fail(error));
}

/** Before any claim, where the first thing of the request is read: the response of HTTP/2 has none of the marks that recording needs. */
function refusingHttp2<Native>(exchange: Exchange<Native>, res: ServerResponse): Exchange<Native> {
  if (!("createPushResponse" in res)) return exchange;
  return {
    ...exchange,
    async readBody() {
      throw new OncekeyError(
        "oncekey_config_invalid",
        "Captured handlers cannot be recorded on HTTP/2 responses of Node. Nothing was run or stored. Serve the route over HTTP/1.1 (behind a proxy that speaks HTTP/2), or make it a transaction or phases operation.",
      );
    },
  };
}
