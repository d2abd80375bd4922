import type { Random } from "../support/random.ts";
import type { World } from "./world.ts";

/** What a fault came to. */
export interface Struck {
  /** One line for a person: what was done to whom. */
  readonly did: string;
  /** How much of the traffic it met: requests, statements, deliveries or rows that were under way. 0: it shows nothing. */
  readonly met: number;
}

/**
 * Faults of one lane never overlap; those of different lanes do. What must not meet (a full disk and a server that recovers
 * on it) stands in one lane.
 */
export type Lane = "processes" | "database" | "wires" | "upkeep";

/** A kind of fault: one row of the table in faults.ts. */
export interface FaultKind {
  readonly name: string;
  readonly lane: Lane;
  /** Why it cannot be done on this machine; `null` or absent: it can. */
  readonly missing?: (world: World) => string | null;
  /**
   * Does it once, and undoes it: afterwards everything runs again. All choices come from `random`, so that a seed repeats
   * the plan.
   */
  strike(world: World, random: Random): Promise<Struck>;
}

const LOOK_EVERY_MS = 10;

/** Waits for a condition, at most so long; tells whether it came. What costs more than a glance is looked at less often. */
export async function awaited(
  condition: () => boolean | Promise<boolean>,
  limitMs: number,
  everyMs = LOOK_EVERY_MS,
): Promise<boolean> {
  const endAtMs = performance.now() + limitMs;
  while (performance.now() < endAtMs) {
    if (await condition()) return true;
    await forMs(everyMs);
  }
  return condition();
}

/** How long a fault lasts is part of it; nothing is decided by this time. */
export function forMs(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
