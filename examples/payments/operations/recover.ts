import { ambiguous, type Find, found, none, type Recover } from "oncekey";
import { type PspPayment, type PspResource, PspUnavailable } from "../psp-client.ts";
import type { PspRecover } from "../settings.ts";

/** For how long the provider promises one effect per key (its `dedupe_window_ms`). */
const DEDUPE_WINDOW_MS = 24 * 60 * 60 * 1000;

/**
 * When a call that left no trace has certainly not been made: its time-out at the socket (5 s), plus the longest that
 * the provider lets a payment wait and its look-ups lag (`land_after_ms` + `find_lag_ms`, together at most 10 s).
 */
const SETTLES_WITHIN_MS = 15_000;

/**
 * How a call to the provider is settled when its answer is missing. A real integration has one of these, whichever its
 * provider allows; the example shows all four (`ONCEKEY_PSP_RECOVER`).
 */
export function recoverBy<Request>(form: PspRecover, resource: PspResource<Request>): Recover<Request, PspPayment> {
  const find: Find<Request, PspPayment> = async ({ key, signal }) => {
    const hits = await resource.find({ key, signal });
    const [hit] = hits;
    if (hits.length > 1) return ambiguous(hits.length);
    return hit === undefined ? none() : found(hit);
  };
  switch (form) {
    case "dedupes":
      return { dedupes: { forMs: DEDUPE_WINDOW_MS }, find, settlesWithinMs: SETTLES_WITHIN_MS };
    case "find_cancel":
      return {
        find,
        settlesWithinMs: SETTLES_WITHIN_MS,
        async cancel({ key, signal }) {
          const landed = await resource.cancel({ key, signal });
          // It landed while we asked. The look-up may not show it yet, so "cancelled" would be a lie: come back later.
          if (landed.length > 0) throw new PspUnavailable("The payment was made before it could be cancelled.");
        },
      };
    case "find_settles":
      return { find, settlesWithinMs: SETTLES_WITHIN_MS };
    case "at_most_once":
      return { atMostOnce: true, settlesWithinMs: SETTLES_WITHIN_MS };
  }
}
