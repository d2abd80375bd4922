import { created, createOncekey, type OncekeyOptions, type PhasesContext, type Recover } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { type FakeClock, fakeClock } from "oncekey/testing";
import { vi } from "vitest";

/** What the code of an attempt gets. */
export type Op = PhasesContext<MemoryTransaction, unknown>;
/** The code of an operation, told which attempt it is. */
export type Code = (op: Op, attempt: number) => Promise<unknown>;

const LEASE_MS = 1_000;

interface Options {
  readonly maxAttempts?: number;
  readonly version?: number;
  readonly store?: MemoryStore;
  readonly time?: FakeClock;
  readonly once?: Partial<OncekeyOptions<MemoryTransaction>>;
}

/** One operation, its code, and what its attempts tell the store at their ends. */
export async function attemptsWorld(code: Code, options: Options = {}) {
  const time = options.time ?? fakeClock();
  const store = options.store ?? memoryStore({ clock: time.now });
  const own = Object.create(store) as MemoryStore;
  const told: unknown[] = [];
  const { release, suspend, markUnknown } = store;
  own.release = (id, fence, keep) => {
    told.push(["release", keep]);
    return release(id, fence, keep);
  };
  own.suspend = (id, fence, waitMs) => {
    told.push(["suspend", waitMs]);
    return suspend(id, fence, waitMs);
  };
  own.markUnknown = (id, fence, mark) => {
    told.push(["mark", mark]);
    return markUnknown(id, fence, mark);
  };
  const onError = vi.fn<NonNullable<OncekeyOptions<MemoryTransaction>["onError"]>>();
  const once = createOncekey({ store: own, clock: time.clock, leaseMs: LEASE_MS, waitMs: 0, onError, ...options.once });
  let attempts = 0;
  const operation = once.phases({
    name: "charges.create",
    version: options.version ?? 1,
    maxAttempts: options.maxAttempts ?? 6,
    run: async (op) => (await code(op, ++attempts)) as never,
  });
  await once.start();
  const run = () =>
    time.advanceUntil(once.run(operation, { scope: { tenant: "a", client: null }, key: "k", input: {} }), 1);
  return { time, store, own, told, run, onError };
}

/** What the code throws. */
export const boom = new Error("boom");
/** A first phase. */
export const phase = (op: Op) => op.phase("row", async () => 1);
/** An end. */
export const complete = (op: Op) => op.complete(async () => created("/1", {}));
/** Found out after 20 s. */
export const settles: Recover<unknown, unknown> = { find: async () => ({ kind: "none" }), settlesWithinMs: 20_000 };
/** Cancelled at the other side. */
export const cancels: Recover<unknown, unknown> = { find: async () => ({ kind: "none" }), cancel: async () => {} };
/** Deduped at the other side. */
export const dedupes: Recover<unknown, unknown> = { dedupes: { forMs: 3_600_000 } };
/** A call that is answered with what cannot be stored, so that it stays open and its attempt throws. */
export const openCall = (op: Op, recover: Recover<unknown, unknown>, before: () => Promise<unknown> = async () => {}) =>
  op.call("authorize", { timeoutMs: 500, request: {}, recover, run: () => before().then(() => ({ close() {} })) });
