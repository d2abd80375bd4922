import { type LeaseMedium, underLease } from "./lease.ts";

/** The part of `navigator.locks` that is used. */
interface LockManager {
  request<T>(name: string, options: { readonly signal?: AbortSignal }, run: () => Promise<T>): Promise<T>;
}

/**
 * Runs `run` while no other tab or worker of the origin runs one under that lock. With Web Locks a page that ends, however it
 * ends, holds nothing any more. Where they are missing (no HTTPS, or a browser older than 2022) a lease in the medium takes
 * their place, which promises less: see `underLease`.
 */
export async function underWebLock<T>(
  lock: string,
  leases: LeaseMedium,
  run: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  signal?.throwIfAborted();
  const { navigator } = globalThis as { navigator?: { readonly locks?: LockManager } };
  if (navigator?.locks === undefined) return underLease(leases, lock, run, signal);
  let begun = false;
  const held = navigator.locks.request(lock, signal === undefined ? {} : { signal }, () => {
    begun = true;
    return run();
  });
  return held.catch((error: unknown) => {
    // Browsers of before 2023 end the wait with an error of their own.
    if (!begun) signal?.throwIfAborted();
    throw error;
  });
}
