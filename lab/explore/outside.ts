import { ambiguous, type Found, found, none } from "oncekey";
import type { Outside, OutsideEvent, Process, Scene, Way } from "./world.ts";

/** What a world's outside system is like. Durations in milliseconds of the store's clock. */
export interface ProviderTerms {
  /** How long one key has one effect, counted from its first arrival. `null`: it does not dedupe at all. */
  readonly dedupesForMs: number | null;
  /** How long a call that was accepted may still land. `Infinity`: for ever, until its key is cancelled. */
  readonly landsWithinMs: number;
  /** How long look-ups may lag behind what has landed. */
  readonly lagMs: number;
  /** How long a request may be on its way (a socket's time-out); one that would arrive later never arrives. */
  readonly flightMs: number;
  /** Answers every call with an error, and does nothing. */
  readonly isBroken: boolean;
}

/** Lands at once, tells the truth, takes requests however late they come, and does not dedupe. */
const PLAIN: ProviderTerms = {
  dedupesForMs: null,
  landsWithinMs: Number.POSITIVE_INFINITY,
  lagMs: 0,
  flightMs: Number.POSITIVE_INFINITY,
  isBroken: false,
};

/** One request as it travels: whose it is, what it asks for, and under which key. */
export interface Sent {
  readonly identity: string;
  readonly payload: string;
  readonly call: string;
  readonly key: string;
}

/** What a call gave. */
export interface Receipt {
  readonly receipt: string;
}

/** An effect that exists outside. */
export interface Landed extends Sent {
  readonly receipt: string;
  readonly landedAt: number;
  /** Whether look-ups show it. */
  readonly isShown: boolean;
}

/** Accepted, and on its way to its effect. */
interface Accepted extends Sent {
  readonly acceptedAt: number;
}

/** All that the outside system is: what invariants see of it. */
export interface ProviderState {
  readonly landed: readonly Landed[];
  readonly accepted: readonly Accepted[];
  readonly cancelled: readonly string[];
  /** When each key first arrived. */
  readonly since: readonly (readonly [key: string, at: number])[];
}

/** The outside system of a world. Every request, look-up and cancellation is one step. */
export interface Provider extends Outside {
  /**
   * Sends a call. Beside being carried out and answered it may be carried out with its answer lost (`call lost`), never
   * arrive (`call refused`), be accepted and cut off, to land later or never (`call late`), or the same without a word
   * until its sender's time is over (`call silent`): each where the world has that budget.
   */
  call(process: Process, sent: Sent): Promise<Receipt>;
  /** What became of a key. `find lost`: it gives an error. */
  find(process: Process, key: string): Promise<Found<Receipt>>;
  /** Makes a key useless. Raises an error where it has landed and look-ups do not show it yet. `cancel lost`: no answer. */
  cancel(process: Process, key: string): Promise<void>;
  state(): ProviderState;
}

/** The provider's own books. */
interface Books {
  readonly terms: ProviderTerms;
  now(): number;
  readonly landed: Landed[];
  readonly accepted: Accepted[];
  readonly cancelled: Set<string>;
  readonly since: Map<string, number>;
}

/** Creates an outside system. */
export function provider(scene: Scene, given: Partial<ProviderTerms> = {}): Provider {
  const terms = { ...PLAIN, ...given };
  const now = () => scene.nowMs();
  const books: Books = { terms, now, landed: [], accepted: [], cancelled: new Set(), since: new Map() };
  return {
    call: (process, sent) => send(scene, process, books, sent),
    find: (process, key) =>
      scene.step(process, {
        label: `looks up ${shortKey(key)}`,
        ways: [way("", null, () => look(books, key)), way("its answer is lost", "find lost", () => cut())],
      }),
    cancel: (process, key) => {
      const done = () => cancel(books, key);
      return scene.step(process, {
        label: `cancels ${shortKey(key)}`,
        ways: [way("", null, done), way("its answer is lost", "cancel lost", () => cut(done()))],
      });
    },
    events: () => [...landings(books), ...showings(books)],
    instants: () => instants(books),
    state: () => stateOf(books),
  };
}

const UNANSWERED = Symbol("no answer");

async function send(scene: Scene, process: Process, books: Books, sent: Sent): Promise<Receipt> {
  const { flightMs } = books.terms;
  const sentAt = scene.nowMs();
  // What the world declares of its sockets: a request that was longer on its way is none.
  const arriving = <T>(act: () => T) => {
    return () => (scene.nowMs() - sentAt > flightMs ? cut() : act());
  };
  const label = `sends ${sent.call} ${sent.payload} ${shortKey(sent.key)}`;
  const answer = await scene.step(process, { label, ways: waysToSend(books, sent, arriving) });
  // Only its sender's own time-out can end this.
  return answer === UNANSWERED ? new Promise(() => {}) : answer;
}

function waysToSend(
  books: Books,
  sent: Sent,
  arriving: <T>(act: () => T) => () => T,
): Way<Receipt | typeof UNANSWERED>[] {
  const done = arriving(() => carryOut(books, sent));
  const taken = arriving(() => accept(books, sent));
  const isBroken = books.terms.isBroken;
  return [
    isBroken ? way("", null, () => cut()) : way("", null, done),
    way("its answer is lost", "call lost", () => cut(done())),
    way("it never arrives", "call refused", () => cut()),
    way("it is accepted and cut off", "call late", () => cut(taken())),
    way("it is accepted and not answered", "call silent", () => {
      taken();
      return UNANSWERED;
    }),
  ];
}

/** The first characters of a derived key: enough to tell keys of one world apart. */
function shortKey(key: string): string {
  return key.slice(0, 6);
}

function way<T>(label: string, costs: string | null, perform: () => T): Way<T> {
  return { label, costs, perform };
}

function cut(_done?: unknown): never {
  throw new Error("the connection was cut");
}

/** What a provider that dedupes has of a key; the window begins anew with the first arrival after it. */
function known({ terms, now, since, landed, accepted }: Books, { key }: Sent): Landed | Accepted | undefined {
  if (terms.dedupesForMs === null) return undefined;
  const firstAt = since.get(key);
  if (firstAt !== undefined && now() < firstAt + terms.dedupesForMs) {
    return landed.findLast((one) => one.key === key) ?? accepted.find((one) => one.key === key);
  }
  since.set(key, now());
  return undefined;
}

function carryOut(books: Books, sent: Sent): Receipt {
  if (books.cancelled.has(sent.key)) throw new Error("the key is cancelled");
  const before = known(books, sent);
  if (before === undefined) return land(books, sent);
  if ("receipt" in before) return { receipt: before.receipt };
  // Queued under the same key: it has its effect now, and this is its answer as well.
  return landQueued(books, before);
}

function accept(books: Books, sent: Sent): void {
  if (books.cancelled.has(sent.key) || known(books, sent) !== undefined) return;
  books.accepted.push({ ...sent, acceptedAt: books.now() });
}

function land({ landed, now, terms }: Books, { identity, payload, call, key }: Sent): Receipt {
  const receipt = `r${landed.length + 1}`;
  landed.push({ identity, payload, call, key, receipt, landedAt: now(), isShown: terms.lagMs === 0 });
  return { receipt };
}

function landQueued(books: Books, one: Accepted): Receipt {
  books.accepted.splice(books.accepted.indexOf(one), 1);
  return land(books, one);
}

function look(books: Books, key: string): Found<Receipt> {
  const hits = books.landed.filter((one) => one.key === key && isShown(books, one));
  if (hits.length > 1) return ambiguous(hits.length);
  const [hit] = hits;
  return hit === undefined ? none() : found({ receipt: hit.receipt });
}

function cancel(books: Books, key: string): void {
  if (books.landed.some((one) => one.key === key && !isShown(books, one))) throw new Error("it has landed");
  books.cancelled.add(key);
}

function isShown({ terms, now }: Books, one: Landed): boolean {
  return one.isShown || now() >= one.landedAt + terms.lagMs;
}

function canLand({ terms, now, cancelled }: Books, one: Accepted): boolean {
  return !cancelled.has(one.key) && now() <= one.acceptedAt + terms.landsWithinMs;
}

function landings(books: Books): OutsideEvent[] {
  const waiting = books.accepted.filter((one) => canLand(books, one));
  return waiting.map((one, index) => ({
    label: `queued ${one.call} ${one.payload} ${shortKey(one.key)} lands (${index + 1})`,
    costs: null,
    fair: true,
    perform: () => void landQueued(books, one),
  }));
}

function showings(books: Books): OutsideEvent[] {
  const hidden = books.landed.filter((one) => !isShown(books, one));
  return hidden.map((one) => ({
    label: `look-ups show ${one.receipt}`,
    costs: null,
    fair: true,
    perform: () => void books.landed.splice(books.landed.indexOf(one), 1, { ...one, isShown: true }),
  }));
}

function instants({ terms, landed, accepted, since }: Books): number[] {
  const { landsWithinMs, lagMs, dedupesForMs } = terms;
  const all = [
    ...accepted.map((one) => one.acceptedAt + landsWithinMs),
    ...landed.filter((one) => !one.isShown).map((one) => one.landedAt + lagMs),
    ...[...since.values()].map((at) => at + (dedupesForMs ?? 0)),
  ];
  return all.filter(Number.isFinite);
}

function stateOf(books: Books): ProviderState {
  return {
    landed: books.landed.map((one) => ({ ...one, isShown: isShown(books, one) })),
    accepted: books.accepted.filter((one) => canLand(books, one)).map((one) => ({ ...one })),
    cancelled: [...books.cancelled],
    since: [...books.since],
  };
}
