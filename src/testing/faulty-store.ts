import { type Session, type Store, StoreFailure } from "../core/store.ts";
import type { AnyStore } from "./crash-store.ts";
import { seeded } from "./seeded.ts";

/** What goes wrong in one use of a store. */
export type StoreFault =
  /** Refused before anything was done. */
  | "unavailable"
  /** Done, and the connection breaks before the answer. Inside a transaction: that is rolled back. */
  | "answer_lost"
  /** Rolled back for another's sake: a serialisation failure, a deadlock. */
  | "contention"
  /** Only `transaction`: committed, and the answer to COMMIT is lost. */
  | "commit_unknown"
  /** Only `transaction`: rolled back, and nobody can tell. */
  | "commit_unknown_undone"
  /** Done, after `slowMs` on the plan's clock. */
  | "slow";

/** A method of the store (`claim`), or of a transaction's session (`session.insertFinished`). */
export type FaultyMethod =
  | (keyof Store & ("read" | "claim" | "takeOver" | "renew" | "release" | "suspend" | "markUnknown" | "complete"))
  | (keyof Store & ("journal" | "openIntent" | "cancelIntent" | "recordCall" | "transaction" | "takeDue"))
  | `session.${keyof Session<unknown> & ("lock" | "enter" | "read" | "insertFinished" | "recordPhase" | "complete" | "send")}`;

/** One fault of a script. */
export interface PlannedFault {
  readonly method: FaultyMethod;
  readonly fault: StoreFault;
  /** Which use of the method, counted from 1. Default: the next one that no other line of the script takes. */
  readonly nth?: number;
}

/** What is to go wrong: a script, or at random from a seed, the same in each run. */
export interface FaultyStorePlan {
  readonly script?: readonly PlannedFault[];
  /** Where random faults come from; without it there are none. */
  readonly seed?: number;
  /** How many uses of a hundred go wrong at random. Default 10. */
  readonly percent?: number;
  /** Which faults happen at random. Default: all but `slow`. */
  readonly faults?: readonly StoreFault[];
  /** How long `slow` takes, in milliseconds. Default 1,000. */
  readonly slowMs?: number;
  /** A wait on the clock of the test, for `slow`. Default: real time. */
  readonly wait?: (ms: number) => Promise<unknown>;
}

/** A store with faults. */
export interface FaultyStore<S> {
  /** For `createOncekey({ store })`. */
  readonly store: S;
  /** The faults that have happened, in order. */
  readonly happened: readonly Required<PlannedFault>[];
  /** The lines of the script that have not: a test that asserts that there are none cannot pass by missing its point. */
  readonly pending: readonly PlannedFault[];
  /** No further faults. */
  calm(): void;
}

const RANDOM_FAULTS: readonly StoreFault[] = [
  "unavailable",
  "answer_lost",
  "contention",
  "commit_unknown",
  "commit_unknown_undone",
];

const METHODS: ReadonlySet<string> = new Set<FaultyMethod>([
  ...(["read", "claim", "takeOver", "renew", "release", "suspend", "markUnknown", "complete", "journal"] as const),
  ...(["openIntent", "cancelIntent", "recordCall", "transaction", "takeDue"] as const),
  ...(["session.lock", "session.enter", "session.read", "session.insertFinished"] as const),
  ...(["session.recordPhase", "session.complete", "session.send"] as const),
]);

/** Tells whether a use of a method goes wrong, and how. */
type Draw = (method: FaultyMethod) => StoreFault | null;
type Wait = () => Promise<unknown>;

/**
 * The same store, in which things go wrong as planned: for tests that a retry finds its way. The same plan and the same
 * order of uses give the same faults. Raises a `TypeError` for a fault that a method cannot have.
 */
export function faultyStore<S extends AnyStore>(store: S, plan: FaultyStorePlan): FaultyStore<S> {
  const { script = [], slowMs = 1_000, wait = realWait } = plan;
  for (const line of script) checkLine(line);
  const happened: Required<PlannedFault>[] = [];
  const pending = [...script];
  const state = { calm: false };
  const uses = new Map<FaultyMethod, number>();
  const random = randomFault(plan);
  const draw: Draw = (method) => {
    const nth = (uses.get(method) ?? 0) + 1;
    uses.set(method, nth);
    if (state.calm) return null;
    const exact = pending.findIndex((line) => line.method === method && line.nth === nth);
    const at = exact >= 0 ? exact : pending.findIndex((line) => line.method === method && line.nth === undefined);
    const fault = at >= 0 ? (pending.splice(at, 1)[0]?.fault ?? null) : random(method);
    if (fault !== null) happened.push({ method, fault, nth });
    return fault;
  };
  return {
    store: faulty(store, draw, () => wait(slowMs)),
    happened,
    pending,
    calm() {
      state.calm = true;
    },
  };
}

function faulty<S extends AnyStore>(store: S, draw: Draw, slow: Wait): S {
  return wrapped(store, (name, method) => {
    if (name === "transaction") return faultyTransaction(store as unknown as Store<unknown>, draw, slow);
    if (!METHODS.has(name)) return method;
    return async (...given) => around(draw(name as FaultyMethod), () => method(...given), slow);
  });
}

type Body = (session: Session<unknown>) => Promise<unknown>;
/** What became of one transaction before its end. */
interface Fate {
  broken: StoreFailure | null;
}

function faultyTransaction(store: Store<unknown>, draw: Draw, slow: Wait): (...given: unknown[]) => Promise<unknown> {
  return async (...given) => {
    const fault = draw("transaction");
    const [body] = given as [Body];
    const fate: Fate = { broken: null };
    const run = async (session: Session<unknown>) => {
      const result = await body(faultySession(session, draw, slow, fate));
      // A caller that swallowed the failure must not get its commit.
      if (fate.broken !== null) throw fate.broken;
      if (fault === "contention" || fault === "commit_unknown_undone") throw failureOf(fault);
      return result;
    };
    if (fault === "unavailable") throw failureOf(fault);
    if (fault === "slow") await slow();
    const result = await store.transaction(run);
    if (fault === "commit_unknown" || fault === "answer_lost") throw failureOf("commit_unknown");
    return result;
  };
}

function faultySession(session: Session<unknown>, draw: Draw, slow: Wait, fate: Fate): Session<unknown> {
  return wrapped(session, (name, method) => {
    if (!METHODS.has(`session.${name}`)) return method;
    return async (...given) => {
      if (fate.broken !== null) throw fate.broken;
      const fault = draw(`session.${name}` as FaultyMethod);
      try {
        return await around(fault, () => method(...given), slow);
      } catch (error) {
        if (fault !== null && error instanceof StoreFailure) fate.broken = error;
        throw error;
      }
    };
  });
}

async function around(fault: StoreFault | null, act: () => Promise<unknown>, slow: Wait): Promise<unknown> {
  if (fault === "unavailable" || fault === "contention") throw failureOf(fault);
  if (fault === "slow") await slow();
  const result = await act();
  if (fault === "answer_lost") throw failureOf(fault);
  return result;
}

type Method = (...given: unknown[]) => Promise<unknown>;

/** The object with its methods replaced; they still run on the object itself. */
function wrapped<T extends object>(target: T, replace: (name: string, method: Method) => Method): T {
  return new Proxy(target, {
    get(_target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function" || typeof name !== "string") return member;
      return replace(name, member.bind(target) as Method);
    },
  });
}

const TRANSACTION_ONLY: ReadonlySet<StoreFault> = new Set(["commit_unknown", "commit_unknown_undone"]);

const isPossible = (method: FaultyMethod, fault: StoreFault): boolean =>
  method === "transaction" || !TRANSACTION_ONLY.has(fault);

function checkLine({ method, fault }: PlannedFault): void {
  if (!METHODS.has(method)) throw new TypeError(`faultyStore knows no method ${JSON.stringify(method)}.`);
  if (isPossible(method, fault)) return;
  throw new TypeError(`${method} cannot fail as ${fault}: only \`transaction\` has a COMMIT whose answer can be lost.`);
}

function randomFault({ seed, percent = 10, faults = RANDOM_FAULTS }: FaultyStorePlan): Draw {
  if (seed === undefined) return () => null;
  const unit = seeded(seed);
  return (method) => {
    const [chance, choice] = [unit(), unit()];
    const possible = faults.filter((fault) => isPossible(method, fault));
    return chance * 100 < percent ? (possible[Math.floor(choice * possible.length)] ?? null) : null;
  };
}

function failureOf(fault: Exclude<StoreFault, "slow">): StoreFailure {
  const planted = `planted by faultyStore: ${fault}`;
  if (fault === "contention") return new StoreFailure("contention", planted);
  const isCommit = fault === "commit_unknown" || fault === "commit_unknown_undone";
  return new StoreFailure(isCommit ? "commit_unknown" : "unavailable", planted);
}

const realWait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
