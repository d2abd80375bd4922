import { AssertionError } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { openTarget, pairsOf, type SentRequest, type Target, type TestableApp } from "./app-target.ts";
import {
  checkSending,
  inPatience,
  judged,
  patienceOf,
  type SendingOptions,
  sendInTurn,
  sendingOf,
  sendTogether,
  unansweredOf,
} from "./duplicates.ts";
import { assertOnce } from "./once-report.ts";
import { type HttpAnswer, seenHttp } from "./seen-answer.ts";

/** How {@link withDuplicates} sends. */
export interface DuplicatesOptions extends SendingOptions {
  /** Sends each once more before that, and hangs up before the answer. Default false. */
  readonly hangUp?: boolean;
  /** Gives unsafe requests without a key one of their own; else these pass once. Default false. */
  readonly addKey?: boolean;
  /** Leaves requests out: those for which it gives false pass once. Default: none of those with a key. */
  readonly only?: (request: { readonly method: string; readonly path: string }) => boolean;
}

/** An application, each of whose requests with a key arrives several times. */
export interface DuplicatedApp {
  /**
   * Sends a request; rejects with an `AssertionError` where its duplicates were not answered alike. Paths will do. Where its
   * signal is aborted it rejects with the signal's reason at once; the application is not told.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /**
   * The same for what takes a Node listener (`supertest(app.listener)`, `createServer`). Where duplicates were not answered
   * alike it answers 500 with the message, which `close` raises as well.
   */
  readonly listener: (req: IncomingMessage, res: ServerResponse) => void;
  /** How many requests were duplicated so far: a suite that sends no key tests nothing. */
  readonly duplicated: number;
  /** Ends what was started for it. Raises the first `AssertionError` that `listener` met. */
  close(): Promise<void>;
}

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
/** Of one connection; not sent on, in either direction. */
const HOP_HEADERS = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
  "expect",
  "upgrade",
  "host",
]);
const BODILESS_STATUSES = new Set([204, 205, 304]);

/**
 * Wraps an application so that a test suite runs against it unchanged, while every unsafe request with a key arrives
 * several times: `concurrent` at one moment, then `retries` one by one. All final answers to it must be equal, and the suite
 * gets the one of the run that carried it out. What an effect is, the suite's own assertions say. Answers are read whole before
 * they are given: an event stream comes at its end, and fails where it has none. Raises a `TypeError` for options by which
 * nothing would be sent twice.
 */
export function withDuplicates(app: TestableApp, options: DuplicatesOptions = {}): DuplicatedApp {
  const sending = sendingOf(options);
  checkSending(sending, sending.concurrent > 1 ? 0 : 1);
  const state: { failure: AssertionError | null; duplicated: number; target?: Promise<Target> } = {
    ...{ failure: null, duplicated: 0 },
  };
  const answer = async (request: SentRequest): Promise<HttpAnswer> => {
    state.target ??= openTarget(app);
    const target = await state.target;
    const keyed = withKey(request, options);
    if (!isDuplicated(keyed, options)) return await target.send(keyed);
    state.duplicated += 1;
    return await sendDuplicates(target, keyed, options);
  };
  return {
    async fetch(input, init) {
      const native = new Request(typeof input === "string" ? new URL(input, "http://app.test") : input, init);
      const isHead = native.method === "HEAD";
      return await unlessAborted(native.signal, async () => responseOf(await answer(await requestOf(native)), isHead));
    },
    listener(req, res) {
      incomingRequest(req)
        .then(answer)
        .catch((error: unknown) => {
          // Anything else the suite sees as the answer, and may have meant.
          if (error instanceof AssertionError) state.failure ??= error;
          return failureAnswer(error);
        })
        .then((found) => write(res, found, req.method === "HEAD"))
        .catch(() => res.destroy());
    },
    get duplicated() {
      return state.duplicated;
    },
    async close() {
      await (await state.target)?.close();
      if (state.failure !== null) throw state.failure;
    },
  };
}

/** Gives up waiting for the work once the signal is aborted. */
async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let give = () => {};
  const aborted = new Promise<never>((_, reject) => {
    give = () => reject(signal.reason);
  });
  signal.addEventListener("abort", give, { once: true });
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener("abort", give);
  }
}

function withKey(request: SentRequest, options: DuplicatesOptions): SentRequest {
  const { addKey = false } = options;
  const { keyHeader } = sendingOf(options);
  if (!addKey || SAFE_METHODS.has(request.method) || hasHeader(request, keyHeader)) return request;
  return { ...request, headers: [...request.headers, [keyHeader.toLowerCase(), randomUUID()]] };
}

function isDuplicated(request: SentRequest, options: DuplicatesOptions): boolean {
  if (SAFE_METHODS.has(request.method) || !hasHeader(request, sendingOf(options).keyHeader)) return false;
  return options.only?.({ method: request.method, path: request.path }) ?? true;
}

const hasHeader = ({ headers }: SentRequest, wanted: string): boolean =>
  headers.some(([name]) => name === wanted.toLowerCase());

/** Sends all of them, and gives the answer of the run that carried the request out, where answers say which that is. */
async function sendDuplicates(target: Target, request: SentRequest, options: DuplicatesOptions): Promise<HttpAnswer> {
  const { hangUp = false } = options;
  const { concurrent, retries } = sendingOf(options);
  const within = patienceOf(options);
  const answers: HttpAnswer[] = [];
  const send = judged(async () => {
    const answer = await target.send(request);
    answers.push(answer);
    return answer;
  }, seenHttp);
  const hungUp = hangUp ? await inPatience(target.hangUp(request), within) : undefined;
  const sent = [
    ...(await sendTogether(send, "sent at one moment", concurrent, within)),
    ...(await sendInTurn(send, "sent after that", retries, within)),
  ];
  const scenario = hangUp ? "hang_up" : "concurrent";
  const unanswered = hungUp && unansweredOf(hungUp, within);
  assertOnce({ scenario, subject: `${request.method} ${request.path}`, unanswered, sent }, "withDuplicates");
  const final = answers.filter((answer) => seenHttp(answer).standing === "final");
  const [answer = failureAnswer(new Error("No duplicate was answered."))] = [
    ...final.filter(({ headers }) => !headers.some(([name]) => name === "idempotent-replayed")),
    ...final,
  ];
  return answer;
}

async function requestOf(request: Request): Promise<SentRequest> {
  const { pathname, search } = new URL(request.url);
  const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer());
  return { method: request.method, path: pathname + search, headers: endToEnd([...request.headers]), body };
}

async function incomingRequest(req: IncomingMessage): Promise<SentRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of req as AsyncIterable<Buffer>) chunks.push(chunk);
  const hasBody = chunks.length > 0 || req.headers["content-length"] !== undefined;
  return {
    method: req.method ?? "GET",
    path: req.url ?? "/",
    headers: endToEnd(pairsOf(req.rawHeaders)),
    body: hasBody ? Buffer.concat(chunks) : null,
  };
}

const endToEnd = (headers: readonly (readonly [name: string, value: string])[]) =>
  headers.filter(([name]) => !HOP_HEADERS.has(name));

/** An answer to HEAD tells the length of a body that it does not have. */
const answerLines = ({ headers }: HttpAnswer, isHead: boolean) =>
  isHead ? headers.filter(([name]) => name === "content-length" || !HOP_HEADERS.has(name)) : endToEnd(headers);

function responseOf(answer: HttpAnswer, isHead: boolean): Response {
  const { status, body } = answer;
  const lines = answerLines(answer, isHead).map(([name, value]): [string, string] => [name, value]);
  const bytes = isHead || BODILESS_STATUSES.has(status) ? null : (body as Uint8Array<ArrayBuffer>);
  return new Response(bytes, { status, headers: lines });
}

function write(res: ServerResponse, answer: HttpAnswer, isHead: boolean): void {
  const { status, body } = answer;
  res.statusCode = status;
  for (const [name, value] of answerLines(answer, isHead)) res.appendHeader(name, value);
  if (!isHead && !BODILESS_STATUSES.has(status)) res.setHeader("content-length", body.byteLength);
  res.end(body);
}

function failureAnswer(error: unknown): HttpAnswer {
  const text = error instanceof Error ? error.message : String(error);
  return { status: 500, headers: [["content-type", "text/plain; charset=utf-8"]], body: Buffer.from(text) };
}
