import { ambiguous, type Found, found, none, unknown } from "../core/recover.ts";

/** What the next call does. */
export type ProviderStep =
  /** Does it and answers. */
  | "ok"
  /** Answers 500 without doing it. */
  | "fail"
  /** Does it; the answer is lost. */
  | "drop"
  /** Accepts it and is cut off; it lands when told to, by `land()`. */
  | "late"
  /** Never answers, and never does it. */
  | "hang";

/** What the next look-up says instead of the truth. */
export type ProviderLookup = "none" | "unknown" | "twice" | "throw" | "hang";

/** How a provider treats its keys. */
export interface FaultyProviderOptions {
  /** One effect per key, and the same answer to each call with it. Default true. */
  readonly dedupes?: boolean;
  /** For how long a key is remembered, from its first call, in milliseconds. Default: for ever. */
  readonly dedupeWindowMs?: number;
  /** For how long look-ups do not see an effect yet, in milliseconds. Default 0. */
  readonly findLagMs?: number;
  /** Its clock, in milliseconds since 1970: `fakeClock().now`. Default: `Date.now`. */
  readonly now?: () => number;
}

/** Something that a provider did. */
export interface ProviderEffect {
  /** `psp_1`, `psp_2` … in the order of the effects. */
  readonly id: string;
  readonly key: string;
  readonly request: unknown;
  readonly landedAt: number;
}

/** What a call or a look-up is given: `op.call`'s own arguments fit. */
export interface ProviderCall {
  readonly key: string;
  readonly request?: unknown;
}

/** Raised by a provider, in the words of a client that cannot tell more. */
export class ProviderFailure extends Error {
  override readonly name = "ProviderFailure";
}

/**
 * A payment provider (or any other outside system) in memory: it does what its script says, and shows what it did. `call`,
 * `find` and `cancel` fit `op.call`: `run: psp.call, recover: { find: psp.find, cancel: psp.cancel }`.
 */
export interface FaultyProvider {
  /** What the next calls do; `ok` when it is empty. */
  readonly script: ProviderStep[];
  /** What the next look-ups say; the truth when it is empty. */
  readonly lookups: ProviderLookup[];
  /** Refuses every connection: nothing arrives, nothing is told. */
  down: boolean;
  /** The keys of the calls that arrived, in order. */
  readonly arrived: readonly string[];
  /** What was done, in order. */
  readonly effects: readonly ProviderEffect[];
  readonly call: (call: ProviderCall) => Promise<{ readonly id: string }>;
  readonly find: (call: ProviderCall) => Promise<Found<{ readonly id: string }>>;
  /** Makes the key useless: a later call with it is refused, and what was accepted `late` never lands. */
  readonly cancel: (call: ProviderCall) => Promise<void>;
  /** Lets land what was accepted as `late`. */
  land(): void;
}

interface Books {
  readonly options: FaultyProviderOptions;
  readonly now: () => number;
  readonly effects: ProviderEffect[];
  readonly arrived: string[];
  /** Key → when it was first called. */
  readonly firstCalledAt: Map<string, number>;
  readonly cancelled: Set<string>;
  waiting: ProviderCall[];
}

/** Creates a provider that has done nothing yet. */
export function faultyProvider(options: FaultyProviderOptions = {}): FaultyProvider {
  const now = options.now ?? Date.now;
  const books: Books = {
    options,
    now,
    effects: [],
    arrived: [],
    firstCalledAt: new Map(),
    cancelled: new Set(),
    waiting: [],
  };
  const self: FaultyProvider = {
    script: [],
    lookups: [],
    down: false,
    arrived: books.arrived,
    effects: books.effects,
    async call(call) {
      refuseWhereDown(self);
      return await carryOut(books, call, self.script.shift() ?? "ok");
    },
    async find(call) {
      refuseWhereDown(self);
      return await lookUp(books, call, self.lookups.shift());
    },
    async cancel({ key }) {
      refuseWhereDown(self);
      if (landedOf(books, key).length > 0) throw new ProviderFailure("The call has landed and cannot be cancelled.");
      books.cancelled.add(key);
    },
    land() {
      const { waiting } = books;
      books.waiting = [];
      for (const call of waiting) land(books, call);
    },
  };
  return self;
}

function refuseWhereDown({ down }: FaultyProvider): void {
  if (down) throw new ProviderFailure("The connection was refused.");
}

async function carryOut(books: Books, call: ProviderCall, step: ProviderStep): Promise<{ readonly id: string }> {
  books.arrived.push(call.key);
  if (step === "fail") throw new ProviderFailure("The provider answered 500.");
  if (step === "hang") return await new Promise<never>(() => {});
  if (step === "late") books.waiting.push(call);
  const id = step === "late" ? null : land(books, call);
  if (step !== "ok") throw new ProviderFailure("The connection was cut before the answer.");
  if (id === null) throw new ProviderFailure("The key is cancelled.");
  return { id };
}

/** Does it, once per key where it dedupes. Gives the effect's id, `null` for a cancelled key. */
function land(
  { options, now, effects, firstCalledAt, cancelled }: Books,
  { key, request }: ProviderCall,
): string | null {
  if (cancelled.has(key)) return null;
  const { dedupes = true, dedupeWindowMs = Infinity } = options;
  const firstAt = firstCalledAt.get(key);
  const known = effects.findLast((effect) => effect.key === key);
  if (dedupes && known !== undefined && now() - (firstAt ?? 0) < dedupeWindowMs) return known.id;
  firstCalledAt.set(key, now());
  const id = `psp_${effects.length + 1}`;
  effects.push({ id, key, request, landedAt: now() });
  return id;
}

async function lookUp(
  books: Books,
  { key }: ProviderCall,
  lookup: ProviderLookup | undefined,
): Promise<Found<{ readonly id: string }>> {
  if (lookup === "throw") throw new ProviderFailure("The look-up failed.");
  if (lookup === "hang") return await new Promise<never>(() => {});
  if (lookup === "unknown") return unknown("the provider could not say");
  if (lookup === "twice") return ambiguous(2);
  const { findLagMs = 0 } = books.options;
  const seen = landedOf(books, key).filter(({ landedAt }) => books.now() - landedAt >= findLagMs);
  const [only] = seen;
  if (lookup === "none" || only === undefined) return none();
  return seen.length > 1 ? ambiguous(seen.length) : found({ id: only.id });
}

const landedOf = ({ effects }: Books, wanted: string): ProviderEffect[] => effects.filter(({ key }) => key === wanted);
