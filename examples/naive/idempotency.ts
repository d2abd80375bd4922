import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, plain, problem } from "./business.ts";
import type { Planted } from "./keys.ts";

/** One key: what it was used for, and what came of it. */
export interface Entry {
  fingerprint: string;
  /** `null` as long as it runs. */
  answer: Answer | null;
  /** Resolves when there is an answer. */
  readonly done: Promise<void>;
  finish(answer: Answer): void;
  /** Ends the wait of duplicates without an answer to keep. */
  abandon(): void;
  readonly madeAtMs: number;
}

/** How the server treats keys. */
export interface Rules {
  readonly has: Planted;
  readonly retentionMs: number;
  /** How long a duplicate waits for the first before it is told to come back. */
  readonly waitMs: number;
}

/** The answers by key, in memory: right for one process that never ends. */
export interface Entries {
  find(identity: string): Entry | null;
  start(identity: string, fingerprint: string): Entry;
  drop(identity: string): void;
}

/** Entries that are forgotten after their retention. */
export function openEntries({ has, retentionMs }: Rules): Entries {
  const entries = new Map<string, Entry>();
  const keptMs = has("forgets-soon") ? retentionMs / 10 : retentionMs;
  return {
    find(identity) {
      const entry = entries.get(identity);
      const isOver = entry !== undefined && entry.answer !== null && performance.now() - entry.madeAtMs > keptMs;
      return entry === undefined || isOver ? null : entry;
    },
    start(identity, fingerprint) {
      const entry = newEntry(fingerprint);
      entries.set(identity, entry);
      return entry;
    },
    drop: (identity) => void entries.delete(identity),
  };
}

function newEntry(fingerprint: string): Entry {
  let resolve: () => void = () => {};
  const done = new Promise<void>((end) => {
    resolve = end;
  });
  const entry: Entry = {
    fingerprint,
    answer: null,
    done,
    madeAtMs: performance.now(),
    finish(answer) {
      entry.answer = answer;
      resolve();
    },
    abandon: () => resolve(),
  };
  return entry;
}

/** What a known key is answered with; `null`: as if it were unknown. */
export async function answerKnown(entry: Entry, fingerprint: string, rules: Rules): Promise<Answer | null> {
  const { has } = rules;
  const isOther = entry.fingerprint !== fingerprint;
  const wasRunning = entry.answer === null;
  if (isOther && !(wasRunning && has("compares-late"))) return has("runs-mismatches") ? null : mismatch(has);
  if (wasRunning && has("gives-up-waiting")) return problem(500, "busy");
  if (wasRunning) await Promise.race([entry.done, sleep(rules.waitMs, undefined, { ref: false })]);
  return entry.answer === null ? busy(has) : replay(entry.answer, has);
}

function mismatch(has: Planted): Answer {
  if (has("plain-mismatch")) return plain(422);
  return problem(has("mismatch-409") ? 409 : 422, "key_reused");
}

function busy(has: Planted): Answer {
  const { headers, ...rest } = problem(has("busy-423") ? 423 : 409, "in_progress");
  return { ...rest, headers: has("no-retry-after") ? headers : { ...headers, "Retry-After": "1" } };
}

const MARKER = { "Idempotent-Replayed": "true" };

function replay({ status, headers, body }: Answer, has: Planted): Answer {
  const { "Set-Cookie": cookie, Date: date, ...described } = headers;
  const kept = {
    ...(has("stores-body-only") ? {} : described),
    ...(has("stores-cookies") && cookie !== undefined ? { "Set-Cookie": cookie } : {}),
    ...(has("stores-date") && date !== undefined ? { Date: date } : {}),
    ...(has("marks-never") ? {} : MARKER),
  };
  return { status: has("answers-200") && status < 300 ? 200 : status, headers: kept, body: keptBody(body, has) };
}

function keptBody(body: Buffer, has: Planted): Buffer {
  const text = body.toString("utf8");
  if (has("rewrites-json") && text.startsWith("{")) return Buffer.from(JSON.stringify(JSON.parse(text)));
  return has("stores-text") ? Buffer.from(text) : body;
}

/** Whether an answer is kept for retries. */
export function isKept({ status, body }: Answer, has: Planted): boolean {
  if (status === 400 || (status >= 400 && has("forgets-refusals"))) return false;
  return !(body.length === 0 && has("skips-empty"));
}

/** The first answer, as it goes out. */
export function firstAnswer(answer: Answer, has: Planted): Answer {
  return has("marks-always") ? { ...answer, headers: { ...answer.headers, ...MARKER } } : answer;
}
