import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import {
  type Answer,
  type HeaderLine,
  isSuccess,
  jsonOf,
  memberAt,
  type Reply,
  told,
  valuesOf,
  wordsOf,
} from "./answer.ts";
import { withKeyMember } from "./bodies.ts";
import { shortfall } from "./refusal.ts";
import { type Address, replacing, type Target, without } from "./target.ts";
import { type Budget, type Cut, cutOff, exchange, type Outgoing, stormBudget } from "./wire.ts";

/** A key as it is sent. */
export interface Key {
  /** Header lines, or the one text of a member. Of header lines each character is one byte. */
  readonly lines: readonly string[];
  /** When the key was made, as an HTTP date: goes with every request of it, in dialects that want that. */
  readonly madeAt: string;
}

/** How a request differs from the operation's ordinary one. */
export interface Change {
  readonly body?: Buffer;
  readonly url?: URL;
  readonly method?: "GET";
  /** Lines that are added, or replace those of the same names. */
  readonly headers?: readonly HeaderLine[];
  /** Names (lower case) of lines that are left out. */
  readonly leave?: readonly string[];
}

/** An answer that told to come back, judged as it came: the answer itself is not kept. */
export interface BusyAnswer {
  readonly status: number;
  /** The answer in a few words. */
  readonly told: string;
  readonly retryAfter: string | null;
  /** What it lacks of what the dialect says; `null` where it lacks nothing, or the dialect says nothing. */
  readonly lack: string | null;
}

/** The API under test: everything that is sent goes through here. Once the run is ended, all but `post` raises {@link RunEnded}. */
export interface Api {
  readonly target: Target;
  /** Requests to operations so far. */
  sent(): number;
  /** Answers so far that told the ordinary request to come back; another content may get a 409 for another reason. */
  readonly busy: readonly BusyAnswer[];
  /** One request; without a key where that is `null`. */
  send(key: Key | null, change?: Change): Promise<Reply>;
  /** The same request so many times at once. What their answers may take is bounded for all of them together. */
  storm(key: Key, count: number, change?: Change): Promise<Reply[]>;
  /** Repeats the request until its answer is final or the time is over; gives the last answer. */
  settle(key: Key, change?: Change): Promise<Reply>;
  /** Sends a part of the request, or all of it, and hangs up. */
  hangUp(key: Key, cut: Cut, change?: Change): Promise<void>;
  /** Executions so far; `null` where nothing can be counted. Raises `CountFailure`. */
  count(): Promise<number | null>;
  /** Waits so long. */
  pause(ms: number): Promise<void>;
  /**
   * POSTs to an address of the API's equipment; its status, or `null` without an answer. The end of the run does not end it:
   * what it changes must be known, and be changed back.
   */
  post(address: Address): Promise<number | null>;
}

/** The count URL did not answer with a number or a list. The message is a clause that says what came instead. */
export class CountFailure extends Error {
  override readonly name = "CountFailure";
}

/** The run was ended from outside: nothing more is sent, and what was under way says nothing. */
export class RunEnded extends Error {
  override readonly name = "RunEnded";
}

/** A key of its own, in the form of the dialect. */
export function freshKey({ dialect }: Target): Key {
  const text = randomUUID();
  return keyOf(dialect.key.place.in === "header" && dialect.key.form === "quoted" ? `"${text}"` : text);
}

/** A key of exactly this text, or of several header lines. */
export function keyOf(...lines: readonly string[]): Key {
  return { lines, madeAt: new Date().toUTCString() };
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** The API behind a target. Sends nothing by itself; `signal` ends the run. */
export function openApi(target: Target, signal?: AbortSignal): Api {
  // A storm listens once for each of its requests, which is no leak.
  if (signal !== undefined) setMaxListeners(0, signal);
  const busy: BusyAnswer[] = [];
  let sent = 0;
  const send = async (key: Key | null, change: Change = {}, budget?: Budget) => {
    const out = outgoing(target, key, change);
    const reply = await untilEnd(signal, () => {
      sent += 1;
      return exchange(out, target.timeoutMs, { signal, budget });
    });
    const isOrdinary = change.body === undefined && change.url === undefined;
    if (isOrdinary && reply.kind === "answer" && isBusy(target, reply)) busy.push(busyAnswer(target, reply));
    return reply;
  };
  const wait = (ms: number) => untilEnd(signal, () => pause(ms, undefined, { signal }).catch(() => {}));
  return {
    target,
    sent: () => sent,
    busy,
    send: (key, change) => send(key, change),
    storm(key, count, change) {
      const budget = stormBudget();
      return Promise.all(Array.from({ length: count }, () => send(key, change, budget)));
    },
    async settle(key, change) {
      const deadline = performance.now() + target.timeoutMs;
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
        const reply = await send(key, change);
        const isFinal = reply.kind === "answer" && !isBusy(target, reply);
        if (isFinal || performance.now() + pauseMs > deadline) return reply;
        await wait(pauseMs);
      }
    },
    hangUp(key, cut, change = {}) {
      return untilEnd(signal, () => {
        sent += 1;
        return cutOff(outgoing(target, key, change), cut, target.timeoutMs, { signal });
      });
    },
    count: () => untilEnd(signal, () => countOf(target, signal)),
    pause: wait,
    post: (address) => statusOf(target, address),
  };
}

/** Raises {@link RunEnded} where the run is over, before the work or meanwhile. */
async function untilEnd<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  const check = () => {
    if (signal?.aborted === true) throw new RunEnded("The run was ended before this was tried to its end.");
  };
  check();
  const result = await work();
  check();
  return result;
}

function busyAnswer({ dialect: { busy } }: Target, reply: Answer): BusyAnswer {
  return {
    status: reply.status,
    told: told(reply),
    retryAfter: headerOf(reply, "retry-after"),
    lack: busy === null ? null : shortfall(busy, reply),
  };
}

async function statusOf({ timeoutMs }: Target, { url, body }: Address): Promise<number | null> {
  const contentType: HeaderLine[] = body === null ? [] : [["Content-Type", "application/json"]];
  const reply = await exchange({ url, method: "POST", headers: contentType, body }, timeoutMs);
  return reply.kind === "answer" ? reply.status : null;
}

function outgoing(target: Target, key: Key | null, change: Change): Outgoing {
  const { url = target.url, method = target.method, headers = [], leave = [] } = change;
  const own = without(replacing(target.headers, headers), leave);
  const isRead = method === "GET";
  const type: HeaderLine[] = target.contentType === null || isRead ? [] : [["Content-Type", target.contentType]];
  const body = isRead ? null : bodyWith(target, key, change.body ?? target.body);
  return { url, method, headers: [...own, ...type, ...keyLines(target, key, headers)], body };
}

function bodyWith(target: Target, key: Key | null, body: Buffer | null): Buffer | null {
  const { place } = target.dialect.key;
  if (place.in === "header") return body;
  return withKeyMember({ body, contentType: target.contentType }, place.name, key?.lines[0] ?? null);
}

function keyLines({ dialect }: Target, key: Key | null, given: readonly HeaderLine[]): HeaderLine[] {
  if (key === null) return [];
  const { place } = dialect.key;
  const lines = place.in === "header" ? key.lines.map((line): HeaderLine => [place.name, line]) : [];
  const { firstSent } = dialect;
  const isGiven = given.some(([name]) => name.toLowerCase() === firstSent?.toLowerCase());
  return firstSent === null || isGiven ? lines : [...lines, [firstSent, key.madeAt]];
}

const COME_BACK = new Set([409, 425, 429, 503]);

/** Whether the answer tells a repetition to come back: by its status, or by the dialect's own word. */
export function isBusy({ dialect: { busy } }: Target, reply: Reply): boolean {
  if (reply.kind === "none") return false;
  if (COME_BACK.has(reply.status)) return true;
  if (busy === null || busy.word === undefined) return false;
  return busy.statuses.includes(reply.status) && wordsOf(reply).includes(busy.word);
}

async function countOf({ count, headers, timeoutMs }: Target, signal?: AbortSignal): Promise<number | null> {
  if (count === null) return null;
  const reply = await exchange({ url: count.url, method: "GET", headers, body: null }, timeoutMs, { signal });
  if (!isSuccess(reply)) throw new CountFailure(`got ${told(reply)}`);
  const found = memberAt(jsonOf(reply), count.path);
  if (Array.isArray(found)) return found.length;
  if (typeof found === "number" && Number.isSafeInteger(found)) return found;
  throw new CountFailure("has neither a list nor a whole number at the pointer");
}

/** The first value of a header of a reply; `null` where it has none. */
export function headerOf(reply: Reply, name: string): string | null {
  return reply.kind === "none" ? null : (valuesOf(reply, name)[0] ?? null);
}
