import {
  created,
  createOncekey,
  type Oncekey,
  type OncekeyOptions,
  type Operation,
  type Recover,
  type StoredEntry,
} from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { createSweeper, type Sweeper, type SweeperOptions } from "oncekey/sweeper";
import { type FakeClock, fakeClock } from "oncekey/testing";
import { type Provider, provider } from "./provider.ts";

type Call = { amount: number };
type Authorization = { id: string };

/** What a world of charges can be given. */
export interface ChargesOptions {
  readonly recover?: (psp: Provider) => Recover<Call, Authorization>;
  readonly psp?: Provider;
  readonly maxDurationMs?: number;
  readonly maxAttempts?: number;
  readonly timeoutMs?: number;
  readonly storeInput?: boolean;
  readonly sweeper?: SweeperOptions;
  readonly once?: Partial<OncekeyOptions<MemoryTransaction>>;
  /** Called at named places of the operation's code; a test blocks or throws here. */
  readonly at?: (place: string, attempt: number) => Promise<void> | void;
  readonly version?: number;
}

/** One process ("worker") of a world: its own instance over the shared store. */
export interface Worker {
  readonly once: Oncekey<MemoryTransaction>;
  readonly charges: Operation<"phases">;
  readonly sweeper: Sweeper;
  run(key: string, amount?: number, waitMs?: number): ReturnType<Oncekey<MemoryTransaction>["run"]>;
}

/** A world: one store, one clock, one provider, and as many workers as a schedule needs. */
export interface ChargesWorld {
  readonly store: MemoryStore;
  readonly time: FakeClock;
  readonly psp: Provider;
  worker(options?: ChargesOptions): Promise<Worker>;
  /** The stored entry of a key that has run. */
  entry(key?: string): Promise<StoredEntry | null>;
  /** The id of a key that has run. */
  id(key?: string): Uint8Array;
}

export const LEASE_MS = 1_000;

/** Charges as in the worked example: row, outside call, completion; on the memory store and a fake clock. */
export function chargesWorld(shared: ChargesOptions = {}): ChargesWorld {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const psp = shared.psp ?? provider();
  const ids = new Map<string, Uint8Array>();
  const id = (key = "k") => ids.get(key) ?? new Uint8Array();
  return {
    store,
    time,
    psp,
    worker: (own = {}) => worker({ store, time, psp, ids }, { ...shared, ...own }),
    entry: (key) => store.read(id(key)),
    id,
  };
}

/** Lets a worker's sweeper do a round every `everyMs` for so long, with no client anywhere. */
export async function sweepFor({ time }: ChargesWorld, { sweeper }: Worker, ms: number, everyMs = 1_000) {
  for (let passedMs = 0; passedMs < ms; passedMs += everyMs) {
    await time.advanceUntil(sweeper.runOnce(), 100);
    await time.advance(everyMs);
  }
}

/** Kills a worker as SIGKILL does: from now on it renews nothing and writes nothing, whatever its code still does. */
export function kill({ once }: Worker): void {
  const { store } = once.internals.context;
  for (const [name, method] of Object.entries(Object.getPrototypeOf(store) as object)) {
    if (typeof method === "function") Object.defineProperty(store, name, { value: () => new Promise(() => {}) });
  }
}

async function worker(
  { store, time, psp, ids }: { store: MemoryStore; time: FakeClock; psp: Provider; ids: Map<string, Uint8Array> },
  options: ChargesOptions,
): Promise<Worker> {
  const once = createOncekey({
    // A view of its own, so that a test can break this worker's store and nobody else's.
    store: Object.create(store) as MemoryStore,
    clock: time.clock,
    leaseMs: LEASE_MS,
    waitMs: 0,
    onError: () => {},
    ...options.once,
  });
  let attempts = 0;
  const charges = once.phases({
    name: "charges.create",
    version: options.version ?? 1,
    maxDurationMs: options.maxDurationMs ?? 600_000,
    ...(options.maxAttempts === undefined ? {} : { maxAttempts: options.maxAttempts }),
    ...(options.storeInput === undefined ? {} : { storeInput: options.storeInput }),
    async run(op) {
      ids.set(op.key, Buffer.from(op.id, "hex"));
      const attempt = ++attempts;
      const { amount } = op.input.body as { amount: number };
      await options.at?.("start", attempt);
      const charge = await op.phase("charge_created", async ({ tx }) => {
        await tx.insert("charge", { amount });
        await options.at?.("in_phase", attempt);
        return { amount };
      });
      await options.at?.("before_call", attempt);
      const auth = await op.call<Call, Authorization>("authorize", {
        timeoutMs: options.timeoutMs ?? 500,
        request: { amount: charge.amount },
        run: async ({ key }) => {
          await options.at?.("sending", attempt);
          return psp.call(key);
        },
        recover: options.recover?.(psp) ?? { dedupes: { forMs: 24 * 3_600_000 } },
      });
      await options.at?.("before_complete", attempt);
      return op.complete(async ({ tx }) => {
        await tx.insert("settled", { auth: auth.id });
        await options.at?.("in_complete", attempt);
        return created("/charges/1", { auth: auth.id });
      });
    },
  });
  await once.start();
  const run = (key: string, amount = 5, waitMs = 0) =>
    once.run(charges, { scope: { tenant: "acme", client: null }, key, input: { body: { amount } }, waitMs });
  return { once, charges, sweeper: createSweeper(once, options.sweeper), run };
}
