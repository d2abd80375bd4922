import type { Clock } from "../core/clock.ts";
import type { AnyResult } from "./run-result.ts";

/** A run of this process that exact duplicates can wait for. */
interface SharedRun {
  readonly promise: Promise<AnyResult>;
  waiters: number;
}

/** What joining a run of this process gave. */
export type Joined =
  | { readonly kind: "result"; readonly result: AnyResult }
  | { readonly kind: "timeout" }
  | { readonly kind: "crowded" };

/** Runs of this process, by what they do; and which requests own an identity right now. */
export interface Sharing {
  /** The running leader of exactly this request, or `undefined`. */
  running(shareKey: string): SharedRun | undefined;
  /** Makes the caller's run the leader until it settles. */
  lead(shareKey: string, run: () => Promise<AnyResult>): Promise<AnyResult>;
  /** Waits for a leader's result, holding no connection. */
  join(run: SharedRun, timeoutMs: number): Promise<Joined>;
  /** A place among the waiters of an identity, for who polls; `null` where there is none left. */
  place(id: Uint8Array): (() => void) | null;
  /** Marks an identity as owned by a request of this process, and takes that back. */
  own(id: Uint8Array, fingerprint: Uint8Array): () => void;
  /** The fingerprint of the request that owns the identity in this process, or `undefined`. */
  owner(id: Uint8Array): Uint8Array | undefined;
}

/** Bounds for waiters of one process. */
export interface SharingLimits {
  readonly maxWaitersPerKey: number;
  readonly maxWaiters: number;
}

/** Creates the registry of one instance. */
export function createSharing(clock: Clock, limits: SharingLimits): Sharing {
  const runs = new Map<string, SharedRun>();
  const owners = new Map<string, Uint8Array>();
  const polling = new Map<string, number>();
  let waiters = 0;
  return {
    running: (shareKey) => runs.get(shareKey),
    lead(shareKey, run) {
      const promise = run().finally(() => runs.delete(shareKey));
      // A leader whose run throws is awaited by its own caller; followers may be none, and that is no unhandled rejection.
      promise.catch(() => {});
      runs.set(shareKey, { promise, waiters: 0 });
      return promise;
    },
    async join(run, timeoutMs) {
      if (run.waiters >= limits.maxWaitersPerKey || waiters >= limits.maxWaiters) return { kind: "crowded" };
      run.waiters++;
      waiters++;
      try {
        return await within(clock, run.promise, timeoutMs);
      } finally {
        run.waiters--;
        waiters--;
      }
    },
    place(id) {
      const identity = hex(id);
      const count = polling.get(identity) ?? 0;
      if (count >= limits.maxWaitersPerKey || waiters >= limits.maxWaiters) return null;
      polling.set(identity, count + 1);
      waiters++;
      return () => {
        waiters--;
        const left = (polling.get(identity) ?? 1) - 1;
        if (left === 0) polling.delete(identity);
        else polling.set(identity, left);
      };
    },
    own(id, fingerprint) {
      const identity = hex(id);
      owners.set(identity, fingerprint);
      return () => {
        if (owners.get(identity) === fingerprint) owners.delete(identity);
      };
    },
    owner: (id) => owners.get(hex(id)),
  };
}

const hex = (id: Uint8Array): string => Buffer.from(id).toString("hex");

function within(clock: Clock, promise: Promise<AnyResult>, timeoutMs: number): Promise<Joined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(timeoutMs, () => resolve({ kind: "timeout" }));
    // One reaction, not a chain of them: thousands may wait for one run.
    promise.then(
      (result) => {
        cancel();
        resolve({ kind: "result", result });
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}
