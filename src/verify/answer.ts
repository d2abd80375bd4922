import { createHash } from "node:crypto";

/** One header line: its name as given, its value. */
export type HeaderLine = readonly [name: string, value: string];

/** What came back for one request. */
export type Reply = Answer | NoAnswer;

/** A whole answer. */
export interface Answer {
  readonly kind: "answer";
  readonly status: number;
  /** Every line, in the order of the wire; the same name may come more than once. */
  readonly headers: readonly HeaderLine[];
  readonly bytes: Buffer;
  /** By the monotonic clock, in milliseconds: when the request was sent, and when its answer was complete. */
  readonly sentAtMs: number;
  readonly doneAtMs: number;
  /** Texts of the request (values of headers, the body) that no report may repeat. */
  readonly secrets?: () => readonly string[];
}

/** The connection broke, or the answer did not come in time: nobody knows what was done. */
export interface NoAnswer {
  readonly kind: "none";
  /** `timeout`, or the system's code, such as `ECONNRESET`. */
  readonly why: string;
}

/** The values of a header, in the order of their lines. */
export function valuesOf({ headers }: Answer, name: string): string[] {
  const wanted = name.toLowerCase();
  return headers.filter(([given]) => given.toLowerCase() === wanted).map(([, value]) => value);
}

/** Whether the request was accepted, by its status (200 to 399: some APIs answer a creation with a redirect). */
export function isSuccess(reply: Reply): reply is Answer {
  return reply.kind === "answer" && reply.status >= 200 && reply.status < 400;
}

/** Whether the request was refused for a fault of its own (400 to 499). */
export function isRefusal(reply: Reply): reply is Answer {
  return reply.kind === "answer" && reply.status >= 400 && reply.status < 500;
}

/** Status and bytes are those of the other. */
export function isSameBytes(a: Answer, b: Answer): boolean {
  return a.status === b.status && a.bytes.equals(b.bytes);
}

/** Where dialects keep the word that a program decides on. */
const WORD_PATHS: readonly (readonly string[])[] = [
  ["code"],
  ["errorCode"],
  ["error", "code"],
  ["error", "type"],
  ["error", "status"],
  ["errors", "0", "code"],
  ["details", "0", "issue"],
  ["name"],
  ["type"],
];

/** Short enough, and of such characters, that it can be nothing but a code; a UUID may be the key that was sent. */
const WORD = /^(?![0-9a-f]{8}-)[A-Za-z][A-Za-z0-9_.-]{0,59}$|^\d{1,6}$/i;

/** `name` is an error's in one dialect, and somebody's in many bodies. */
const ERROR_NAME = /^[A-Z][A-Z0-9]*_[A-Z0-9_]+$/;

/** The words of a refusal that programs decide on; none where the body is no JSON object. */
export function wordsOf(answer: Answer): string[] {
  const body = jsonOf(answer);
  const found = WORD_PATHS.map((path) => [path[0], textOf(memberAt(body, path))] as const);
  const isWord = ([at, word]: (typeof found)[number]) => (at === "name" ? ERROR_NAME : WORD).test(word);
  return found.filter(isWord).map(([, word]) => word);
}

/** Of text and numbers alone: `String` raises for some objects, and for lists that are too deep. */
const textOf = (member: unknown): string =>
  typeof member === "string" || typeof member === "number" ? String(member) : "";

/** The body as JSON; `undefined` where it is none. Its numbers are doubles: never compare answers by it. */
export function jsonOf({ bytes }: Answer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** The member at a path of names and indexes; `undefined` where there is none. */
export function memberAt(value: unknown, path: readonly string[]): unknown {
  let found: unknown = value;
  for (const name of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[name];
  }
  return found;
}

/** A reply in a few words: never its content, only status, length, digest and the word of a refusal. */
export function told(reply: Reply): string {
  if (reply.kind === "none") return `no answer (${reply.why})`;
  const word = reply.status >= 400 ? wordsOf(reply).find((each) => !repeats(reply, each)) : undefined;
  return `${reply.status}${word === undefined ? "" : ` ${word}`} (${bodyTold(reply)})`;
}

/** Whether a word is a part of what was sent, or has a part of it within: an API may echo a token, a card or a key. */
function repeats({ secrets }: Answer, word: string): boolean {
  return (secrets?.() ?? []).some((secret) => secret.includes(word) || (secret.length >= 6 && word.includes(secret)));
}

function bodyTold({ bytes }: Answer): string {
  if (bytes.length === 0) return "no body";
  return `${bytes.length} bytes, sha256 ${createHash("sha256").update(bytes).digest("hex").slice(0, 8)}`;
}
