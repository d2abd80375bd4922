import { inspect } from "node:util";
import { headerAllowlist } from "../core/outcome.ts";

/** An HTTP answer as it was seen from outside. */
export interface HttpAnswer {
  readonly status: number;
  /** Header lines, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
}

/**
 * What became of one send. `final`: the client is done. `passing`: it is told to come back. `failed`: 5xx, a throw, or
 * nothing at all.
 */
export interface Seen {
  readonly standing: "final" | "passing" | "failed";
  /** How a report shows it. */
  readonly text: string;
  /** What must be equal between the answers to one key. */
  readonly part: unknown;
  /** For `passing`: after how long to come back, in milliseconds. */
  readonly retryAfterMs: number;
}

/** Statuses that are passing where the answer says when to come back. */
const PASSING_STATUSES = new Set([409, 425, 429, 503]);
const SHOWN_CHARACTERS = 160;
/** Of a passing answer whose Retry-After cannot be read. */
const SOON_MS = 1_000;

/** Judges an HTTP answer. Compared are status, bytes, and the headers that a replay keeps; never cookies or dates. */
export function seenHttp({ status, headers, body }: HttpAnswer): Seen {
  const retryAfter = headers.find(([name]) => name === "retry-after")?.[1];
  const isPassing = PASSING_STATUSES.has(status) && retryAfter !== undefined;
  const compared = headerAllowlist();
  const kept = headers.filter(([name]) => compared.has(name)).toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)));
  const text = textOf(body);
  return {
    standing: isPassing ? "passing" : standingOf(status),
    text: shown(`${status} ${text}`),
    part: { status, headers: kept, body: text },
    retryAfterMs: afterMs(retryAfter),
  };
}

/**
 * Judges what a call gave: a `Response`, a result of `once.run` (its outcome is compared, one with `retryAfterMs` is
 * passing), or any other value, which is compared as it is.
 */
export async function seenValue(value: unknown): Promise<Seen> {
  if (value instanceof Response) return seenHttp(await httpAnswer(value));
  if (typeof value === "object" && value !== null) {
    const { outcome, retryAfterMs, kind } = value as { outcome?: unknown; retryAfterMs?: unknown; kind?: unknown };
    if (typeof retryAfterMs === "number") return { standing: "passing", text: String(kind), part: kind, retryAfterMs };
    if (isAnswer(outcome)) return seenHttp(outcome);
  }
  return { standing: "final", text: shown(valueText(value)), part: value, retryAfterMs: SOON_MS };
}

/** Judges an error that a call raised. */
export function seenError(error: unknown): Seen {
  // By its members: an error of another realm, as test frameworks make them, is no instance of this one's.
  const { name, message } = (error ?? {}) as { readonly name?: unknown; readonly message?: unknown };
  const text = typeof message === "string" ? `${String(name)}: ${message}` : valueText(error);
  return { standing: "failed", text: shown(`threw ${text}`), part: { threw: text }, retryAfterMs: SOON_MS };
}

/** Judges a send that nothing came of. */
export function seenNothing(afterMs: number): Seen {
  const text = `no answer within ${afterMs} ms`;
  return { standing: "failed", text, part: { text }, retryAfterMs: SOON_MS };
}

/** Reads a `Response` to its end. */
async function httpAnswer(response: Response): Promise<HttpAnswer> {
  const body = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers: [...response.headers], body };
}

const standingOf = (status: number): Seen["standing"] => (status >= 500 ? "failed" : "final");

function afterMs(retryAfter: string | undefined): number {
  const seconds = Number(retryAfter);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : SOON_MS;
}

function isAnswer(value: unknown): value is HttpAnswer {
  if (typeof value !== "object" || value === null) return false;
  const { status, headers, body } = value as Partial<HttpAnswer>;
  return typeof status === "number" && Array.isArray(headers) && body instanceof Uint8Array;
}

function textOf(body: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return `base64 ${Buffer.from(body).toString("base64")}`;
  }
}

function valueText(value: unknown): string {
  const digits = (_name: string, member: unknown) => (typeof member === "bigint" ? String(member) : member);
  try {
    return JSON.stringify(value, digits) ?? String(value);
  } catch {
    // It contains itself, as the answers of HTTP clients do.
    return inspect(value, { depth: 1, breakLength: Infinity });
  }
}

const shown = (text: string): string =>
  text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text.trim();
