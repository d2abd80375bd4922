import { sleep } from "./waiting.ts";

/** Who may run, and until when (wall-clock milliseconds) if nothing is heard of it. */
export interface Lease {
  readonly owner: string;
  readonly untilAt: number;
}

/** Where leases are kept, one a name. */
export interface LeaseMedium {
  /**
   * Writes what `decide` makes of the lease: `null` removes it, `undefined` leaves it as it is. Gives the one that stands
   * then.
   */
  swap(name: string, decide: (lease: Lease | null) => Lease | null | undefined): Promise<Lease | null>;
  /** Removes the lease, whosever it is, in one go: for a page that is about to end and can wait for nothing. */
  drop(name: string): void;
}

/** Longer than the minute at which browsers wake the timers of a hidden tab. */
const LEASE_MS = 90_000;
const RENEW_MS = 10_000;
const POLL_MS = 100;

/**
 * Runs `run` under a lease that is renewed meanwhile. Weaker than a lock in two ways: the lease of a page that died blocks
 * the others for up to 90 s (one that was left in order frees it at once), and a page that was frozen for longer than that
 * may find another one at work. Both would then send the same key and bytes, so the server still carries it out once.
 */
export async function underLease<T>(
  leases: LeaseMedium,
  name: string,
  run: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const owner = randomName();
  let mineUntilAt = 0;
  const isMine = (lease: Lease | null) => lease?.owner === owner;
  const renewed = (): Lease => ({ owner, untilAt: Date.now() + LEASE_MS });
  const take = () => leases.swap(name, (lease) => (mayTake(lease) || isMine(lease) ? renewed() : undefined));
  const taken = async () => {
    const lease = await take();
    mineUntilAt = isMine(lease) ? (lease?.untilAt ?? 0) : 0;
    return mineUntilAt > 0;
  };
  while (!(await taken())) {
    await sleep(POLL_MS, signal);
    signal?.throwIfAborted();
  }
  const timer = setInterval(() => taken().catch(() => {}), RENEW_MS);
  // While it has not run out it cannot be anybody else's.
  const leave = () => Date.now() < mineUntilAt && leases.drop(name);
  const page = globalThis as Partial<EventTarget>;
  page.addEventListener?.("pagehide", leave);
  try {
    signal?.throwIfAborted();
    return await run();
  } finally {
    clearInterval(timer);
    page.removeEventListener?.("pagehide", leave);
    await leases.swap(name, (lease) => (isMine(lease) ? null : undefined)).catch(() => {});
  }
}

/** A clock that was set back must not leave a lease that lasts for days; one that was corrected a little, does no harm. */
function mayTake(lease: Lease | null): boolean {
  const leftMs = (lease?.untilAt ?? 0) - Date.now();
  return !(leftMs > 0 && leftMs < 2 * LEASE_MS);
}

/** `randomUUID` is missing where leases are needed: outside secure contexts. */
function randomName(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}
