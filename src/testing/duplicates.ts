import { AssertionError } from "node:assert/strict";
import type { HungUp } from "./app-target.ts";
import type { Unanswered } from "./once-report.ts";
import { type Seen, seenError, seenNothing } from "./seen-answer.ts";

/** How duplicates are sent; the same for every helper that sends them. */
export interface SendingOptions {
  /** How many are sent at one moment. Default 3. */
  readonly concurrent?: number;
  /** How many are sent after these have ended, one by one. Default 2. */
  readonly retries?: number;
  /** The header of the key. Default `Idempotency-Key`. */
  readonly keyHeader?: string;
  /**
   * Faults are planted, so that a 5xx or a throw may happen: it is tried again, as a client does. Default false: a duplicate
   * that gets a 5xx is a fault of the handler.
   */
  readonly faults?: boolean;
  /** For how long a send may be told to come back, in milliseconds. Default 3,000, on a fake clock 600,000. */
  readonly patienceMs?: number;
  /**
   * The clock that the application runs on, where it is a fake one: moved on while something is waited for. `fakeClock()`, or
   * a test framework's timers as `{ advance: (ms) => … }`.
   */
  readonly time?: { advance(ms: number): Promise<unknown> };
}

/** How often something is sent, and with what, once the defaults are filled in. */
export type Sending = Required<Pick<SendingOptions, "concurrent" | "retries" | "keyHeader">>;

/** What the options come to. */
export function sendingOf({ concurrent = 3, retries = 2, keyHeader = "Idempotency-Key" }: SendingOptions): Sending {
  return { concurrent, retries, keyHeader };
}

/** Raises a `TypeError` where something would not be sent twice: such a test passes whatever is tested. */
export function checkSending({ concurrent, retries }: Sending, leastRetries = 1): void {
  if (!Number.isSafeInteger(concurrent) || concurrent < 1) throw new TypeError("`concurrent` must be 1 or more.");
  if (Number.isSafeInteger(retries) && retries >= leastRetries) return;
  throw new TypeError(`\`retries\` must be ${leastRetries} or more: a request that is sent once tests nothing.`);
}

/** One send, tried until its answer was final, with all that was seen. */
export interface Sent {
  /** When it was sent, as a report says it. */
  readonly how: string;
  /** The last thing seen. */
  readonly seen: Seen;
  /** What was seen before that. */
  readonly earlier: readonly Seen[];
}

/** Sends the user's action once and judges what came of it; never rejects. */
export type Send = () => Promise<Seen>;

const REAL_PATIENCE_MS = 3_000;
const FAKE_PATIENCE_MS = 600_000;
/** Between two looks at something that is not there yet, on the real clock. */
const LOOK_MS = 20;
/** How far a fake clock is moved on between two looks. */
const STEP_MS = 10;

/** Waiting and trying again, on the real clock or on a fake one. */
export interface Patience {
  readonly patienceMs: number;
  readonly faults: boolean;
  /** Until the promise, which never rejects, has settled, or patience is over. */
  settled(promise: Promise<unknown>): Promise<void>;
  /** A pause before another try. Gives what has passed, in milliseconds. */
  pause(askedMs: number): Promise<number>;
}

/** The patience that options ask for. */
export function patienceOf({ time, patienceMs, faults = false }: SendingOptions): Patience {
  if (time !== undefined) return fakePatience(time, patienceMs ?? FAKE_PATIENCE_MS, faults);
  const mostMs = patienceMs ?? REAL_PATIENCE_MS;
  return {
    patienceMs: mostMs,
    faults,
    async settled(promise) {
      const late = timer(mostMs);
      await Promise.race([promise, late.fired]);
      late.cancel();
    },
    async pause(askedMs) {
      const ms = Math.min(askedMs, LOOK_MS);
      await timer(ms).fired;
      return ms;
    },
  };
}

function fakePatience(time: { advance(ms: number): Promise<unknown> }, patienceMs: number, faults: boolean): Patience {
  return {
    patienceMs,
    faults,
    async settled(promise) {
      let isSettled = false;
      const watched = promise.then(() => {
        isSettled = true;
      });
      for (let passedMs = 0; passedMs < patienceMs; passedMs += STEP_MS) {
        // What is ready without any time is not made to wait for some.
        await time.advance(passedMs === 0 ? 0 : STEP_MS);
        if (isSettled) return await watched;
      }
    },
    async pause(askedMs) {
      await time.advance(askedMs);
      return askedMs;
    },
  };
}

function timer(ms: number): { readonly fired: Promise<void>; readonly cancel: () => void } {
  let cancel = () => {};
  const fired = new Promise<void>((resolve) => {
    const pending = setTimeout(resolve, ms);
    cancel = () => clearTimeout(pending);
  });
  return { fired, cancel: () => cancel() };
}

/** A send that judges answers and throws alike. */
export function judged<T>(send: () => Promise<T>, judge: (value: T) => Seen | Promise<Seen>): Send {
  return () => Promise.resolve().then(send).then(judge).catch(seenError);
}

/** What a send with a client that goes away gives; raises an `AssertionError` where it did not come so far in time. */
export async function inPatience<T>(work: Promise<T>, within: Patience): Promise<T> {
  const ended = { is: false };
  const end = () => {
    ended.is = true;
  };
  await within.settled(work.then(end, end));
  if (ended.is) return await work;
  const message =
    `The application neither began with a request nor read it within ${within.patienceMs} ms, ` +
    "so nobody could hang up on it.";
  throw new AssertionError({ message, operator: "hangUp" });
}

/** Sends `concurrent` at one moment, then those of them again that were told to come back. */
export async function sendTogether(send: Send, how: string, concurrent: number, within: Patience): Promise<Sent[]> {
  const first = await answersOf(Array.from({ length: concurrent }, send), within);
  const sent: Sent[] = [];
  for (const seen of first) sent.push(await untilFinal(send, how, seen, within));
  return sent;
}

/** What a report says of a send whose client hung up. What its run raised is no fault where faults are planted. */
export function unansweredOf(hungUp: HungUp, { faults }: Patience): Unanswered {
  const raised = faults ? null : hungUp.raised();
  return { how: "sent, the client hung up", failure: raised === null ? null : seenError(raised.error) };
}

/** Sends `times` one after the other. */
export async function sendInTurn(send: Send, how: string, times: number, within: Patience): Promise<Sent[]> {
  const sent: Sent[] = [];
  for (let nth = 0; nth < times; nth += 1) sent.push(...(await sendTogether(send, how, 1, within)));
  return sent;
}

async function answersOf(sends: readonly Promise<Seen>[], within: Patience): Promise<Seen[]> {
  const seen = sends.map(() => seenNothing(within.patienceMs));
  const noted = sends.map(async (send, at) => {
    seen[at] = await send;
  });
  await within.settled(Promise.all(noted));
  return [...seen];
}

async function untilFinal(send: Send, how: string, first: Seen, within: Patience): Promise<Sent> {
  const earlier: Seen[] = [];
  let seen = first;
  let passedMs = 0;
  while (isToBeTriedAgain(seen, within) && passedMs < within.patienceMs) {
    earlier.push(seen);
    passedMs += await within.pause(seen.retryAfterMs);
    [seen = seen] = await answersOf([send()], within);
  }
  return { how, seen, earlier };
}

const isToBeTriedAgain = ({ standing }: Seen, { faults }: Patience): boolean =>
  standing === "passing" || (standing === "failed" && faults);
