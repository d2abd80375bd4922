import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Asked } from "./exchange.ts";
import type { Permitted } from "./operator.ts";
import { Refusal } from "./refusal.ts";

/** Whose request it is. */
export interface Who {
  readonly operator: Permitted;
  /** What its changes must carry in `X-Oncekey-Csrf`. */
  readonly csrf: string;
  /** Counts as one session: streams are limited for each. */
  readonly session: string;
  /** `here`: signed in at the console; `outside`: the application's own authentication. */
  readonly signedIn: "here" | "outside";
  /** When the session ends if nothing is done; `null`: the application knows. */
  readonly endsAt: Date | null;
}

/** How long sessions last and how many there may be. Milliseconds. */
export interface SessionLimits {
  /** Without a request that a person made. Default 900,000 (15 min). */
  readonly idleMs?: number;
  /** Whatever is done. Default 28,800,000 (8 h). */
  readonly absoluteMs?: number;
  /** Of one user at once; the one that was idle for longest ends. Default 5. */
  readonly perUser?: number;
}

/** Sessions of those who signed in at the console. They live in this process's memory. */
export interface Sessions {
  /** Opens one; the cookie to set. */
  open(operator: Permitted, secure: boolean): { readonly who: Who; readonly cookie: string };
  /** `active`: a person's doing, which keeps it from ending. */
  of(asked: Asked, active: boolean): Who | null;
  /** Ends it; the cookie that removes the other. */
  end(asked: Asked): string;
  /** Whether it has ended: what goes on by itself must stop. */
  isOver(session: string): boolean;
}

const COOKIE = "oncekey_console";
const MINUTE_MS = 60_000;

interface Kept {
  readonly operator: Permitted;
  readonly csrf: string;
  readonly endMs: number;
  usedMs: number;
}

/** Makes the sessions of a console below that path. `now`: milliseconds of a clock that never goes back. */
export function createSessions(
  path: string,
  { idleMs = 15 * MINUTE_MS, absoluteMs = 480 * MINUTE_MS, perUser = 5 }: SessionLimits = {},
  now: () => number = () => performance.now(),
): Sessions {
  const kept = new Map<string, Kept>();
  const alive = (id: string): Kept | null => {
    const one = kept.get(id);
    if (one === undefined) return null;
    if (now() < Math.min(one.usedMs + idleMs, one.endMs)) return one;
    kept.delete(id);
    return null;
  };
  const whoOf = (id: string, { operator, csrf, usedMs, endMs }: Kept): Who => {
    const leftMs = Math.min(usedMs + idleMs, endMs) - now();
    return { operator, csrf, session: id, signedIn: "here", endsAt: new Date(Date.now() + leftMs) };
  };
  const makeRoom = (name: string) => {
    for (const id of kept.keys()) alive(id);
    const own = [...kept]
      .filter(([, { operator }]) => operator.name === name)
      .sort(([, a], [, b]) => a.usedMs - b.usedMs);
    for (const [id] of own.slice(0, Math.max(0, own.length - perUser + 1))) kept.delete(id);
  };
  const attributes = (secure: boolean) => `Path=${path}; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
  return {
    open(operator, secure) {
      makeRoom(operator.name);
      const token = randomBytes(32).toString("base64url");
      const one = { operator, csrf: randomBytes(32).toString("base64url"), usedMs: now(), endMs: now() + absoluteMs };
      const id = digestOf(token);
      kept.set(id, one);
      return { who: whoOf(id, one), cookie: `${COOKIE}=${token}; ${attributes(secure)}` };
    },
    of(asked, active) {
      const id = digestOf(cookieOf(asked) ?? "");
      const one = alive(id);
      if (one === null) return null;
      if (active) one.usedMs = now();
      return whoOf(id, one);
    },
    end(asked) {
      kept.delete(digestOf(cookieOf(asked) ?? ""));
      return `${COOKIE}=; Max-Age=0; ${attributes(asked.secure)}`;
    },
    isOver: (session) => alive(session) === null,
  };
}

/** Only digests are kept: who reads this process's memory by half gets no session. */
const digestOf = (token: string) => createHash("sha256").update(token).digest("base64url");

function cookieOf(asked: Asked): string | null {
  const pairs = (asked.header("cookie") ?? "").split(";").map((pair) => pair.trim());
  const own = pairs.filter((pair) => pair.startsWith(`${COOKIE}=`));
  // Two of them: a neighbour below the same host planted one. Neither is believed.
  return own.length === 1 ? (own[0]?.slice(COOKIE.length + 1) ?? null) : null;
}

/** Who comes by the application's own authentication. The token binds what changes to whom: another operator's does not fit. */
export function outsideWho(operator: Permitted, secret: Uint8Array): Who {
  const name = JSON.stringify([operator.name, operator.tenant]);
  const csrf = createHmac("sha256", secret).update(name).digest("base64url");
  return { operator, csrf, session: name, signedIn: "outside", endsAt: null };
}

/** Whether two texts are equal; takes as long wherever they differ. */
export function sameText(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((text) => createHash("sha256").update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

const FREE_FAILURES = 5;
const LONGEST_PAUSE_MS = 60_000;
const MOST_NAMES = 1_000;
const AT_ONCE = 2;

/** Slows guessing down: after a few failures each costs twice the pause of the one before; and few are tried at once. */
export interface SignInGate {
  /** Raises 429 with `Retry-After` where it is too early, or too many try. The function tells how it ended. */
  enter(name: string): (succeeded: boolean) => void;
}

/** `now`: milliseconds of a clock that never goes back. */
export function createSignInGate(now: () => number = () => performance.now()): SignInGate {
  const failures = new Map<string, { count: number; untilMs: number }>();
  let trying = 0;
  return {
    enter(name) {
      const waitMs = (failures.get(name)?.untilMs ?? 0) - now();
      if (waitMs > 0 || trying >= AT_ONCE) throw tooMany(Math.max(1, Math.ceil(waitMs / 1_000)));
      trying += 1;
      return (succeeded) => {
        trying -= 1;
        const count = succeeded ? 0 : (failures.get(name)?.count ?? 0) + 1;
        failures.delete(name);
        if (count === 0) return;
        const pauseMs = count < FREE_FAILURES ? 0 : Math.min(LONGEST_PAUSE_MS, 1_000 * 2 ** (count - FREE_FAILURES));
        failures.set(name, { count, untilMs: now() + pauseMs });
        for (const [first] of failures) if (failures.size > MOST_NAMES) failures.delete(first);
      };
    },
  };
}

function tooMany(retryAfterS: number): Refusal {
  const message = "There were too many attempts to sign in. Nothing was changed; wait, then try again.";
  return new Refusal(429, "console_too_many", message, { retryAfterS });
}
