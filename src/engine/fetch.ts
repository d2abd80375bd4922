import { parseJson } from "../core/json/parse.ts";
import { stringifyJson } from "../core/json/stringify.ts";
import { jsonValue } from "../core/json/value.ts";
import { type CallArguments, type Find, type Found, found } from "../core/recover.ts";
import type { CallOptions } from "./definition.ts";
import type { FetchAnswer, FetchOptions, FetchRecord, FetchRequest, HeaderFields } from "./fetch-options.ts";
import { fetchRequest, sendable, sendingHeaders, unsendable, without } from "./fetch-request.ts";

const DEFAULT_MAX_ANSWER_BYTES = 1_048_576;

/**
 * draft-ietf-httpapi-idempotency-key-header §2.7: 409 while a request with the key is still being carried out. Taken for
 * an answer it would be recorded as the refusal of a charge that is about to happen.
 */
const DEFAULT_UNKNOWN_STATUSES: readonly number[] = [408, 409, 425, 429];

/** Sessions of the other side are no business of the journal; the rest stops being true once the body is decoded. */
const NOT_RECORDED = [
  "set-cookie",
  "content-encoding",
  "content-length",
  "transfer-encoding",
  "connection",
  "keep-alive",
];

type Arguments = CallArguments<FetchRequest>;

/** The call of one attempt, in its parts: `prepare` makes one sending ready and gives what sends it. */
type Calls = (
  name: string,
  options: Omit<CallOptions<FetchRequest, FetchRecord>, "run">,
  prepare: (sending: Arguments) => Promise<(sending: Arguments) => Promise<FetchRecord>>,
) => Promise<unknown>;

/**
 * An outside call over HTTP. A status that says nothing certain, a broken connection and a time-out are "unknown" (see
 * `FetchOptions.unknownStatuses`); redirects are not followed, they are answers. Raises `oncekey_config_invalid`, before
 * anything is sent, for a URL, method, header, body or option that cannot be used, and what the function of the headers throws.
 */
export async function fetchCall(
  call: Calls,
  name: string,
  url: string | URL,
  options: FetchOptions,
): Promise<FetchAnswer> {
  const request = fetchRequest(name, url, options);
  const { timeoutMs, keyForm = "base64url" } = options;
  const recover = lookedUp(name, options.recover);
  const record = await call(name, { timeoutMs, recover, keyForm, request }, async (sending) => {
    const headers = await sendingHeaders(name, sending, options);
    return (args) => send(args, headers, options);
  });
  return answerOf(record as FetchRecord);
}

/** A find that gives something else would be taken for an answer with another status. */
function lookedUp(name: string, recover: FetchOptions["recover"]): FetchOptions["recover"] {
  const given = recover as { readonly find?: Find<FetchRequest, FetchRecord> } | undefined;
  if (typeof given?.find !== "function") return recover;
  const find = async (call: Arguments): Promise<Found<FetchRecord>> => {
    const answer = await given.find?.(call);
    return answer?.kind === "found" ? found(recordOf(name, answer.value)) : (answer as Found<FetchRecord>);
  };
  return { ...recover, find };
}

function recordOf(name: string, { status, headers, body }: FetchRecord): FetchRecord {
  if (Number.isInteger(status) && typeof headers === "object" && body instanceof Uint8Array) {
    return { status, headers, body };
  }
  throw unsendable(name, "has a find whose value is no answer; give found(jsonAnswer(status, value))");
}

/** JSON as the other side would have answered it: for `find`, which gives what the call's own answer would have been. */
export function jsonAnswer(status: number, value: unknown): FetchRecord {
  const headers = { "content-type": "application/json" };
  return { status, headers, body: new TextEncoder().encode(stringifyJson(value)) };
}

async function send(
  { request, signal }: Arguments,
  headers: HeaderFields,
  options: FetchOptions,
): Promise<FetchRecord> {
  const { method, url, body } = request;
  const response = await fetch(url, { method, headers, body: sendable(body), redirect: "manual", signal });
  const { status } = response;
  const unknown = options.unknownStatuses ?? DEFAULT_UNKNOWN_STATUSES;
  if (status >= 500 || unknown.includes(status)) {
    response.body?.cancel().catch(() => {});
    throw unknownAnswer(status);
  }
  const bytes = await boundedBody(response, options.maxAnswerBytes ?? DEFAULT_MAX_ANSWER_BYTES);
  const record = { status, headers: without(Object.fromEntries(response.headers), NOT_RECORDED), body: bytes };
  // Awaited: a promise that nobody awaits would make an answer of everything.
  if (await options.isUnknown?.(answerOf(record))) throw unknownAnswer(status);
  return record;
}

function unknownAnswer(status: number): Error {
  return new Error(`The other side answered ${status}, which does not say what it did`);
}

async function boundedBody(response: Response, limitBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    size += read.value.length;
    chunks.push(read.value);
    if (size <= limitBytes) continue;
    reader?.cancel().catch(() => {});
    throw new Error(`The other side's answer is larger than maxAnswerBytes (${limitBytes})`);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

/** The conveniences stay outside of what is recorded: the codec keeps data, not functions. */
function answerOf(record: FetchRecord): FetchAnswer {
  return {
    ...record,
    text: () => new TextDecoder().decode(record.body),
    json: () => jsonValue(parseJson(record.body, { allowNul: true }), { fractions: "nearest" }),
  };
}
