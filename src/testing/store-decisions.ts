import assert from "node:assert/strict";
import type { Decision, Resolution, Resolved, Verdict } from "../core/resolution.ts";
import type { Store } from "../core/store.ts";
import { claimed, completionOf, intentOf, markOf, newFence, outcomeOf } from "./store-harness.ts";

/** The decision that it succeeded, by somebody. */
export function succeeded(overrides: Partial<Decision> = {}): Resolution {
  return decided(
    { verdict: "succeeded", completion: completionOf({ outcome: outcomeOf({ status: 202 }) }) },
    overrides,
  );
}

/** A decision with all that it needs. */
export function decided(verdict: Verdict, overrides: Partial<Decision> = {}): Resolution {
  return {
    ...verdict,
    attempt: null,
    force: false,
    by: "ada",
    note: "asked the bank",
    fence: newFence(),
    ...overrides,
  };
}

/** The decision to give it back. */
export const releasing = (overrides: Partial<Decision> = {}): Resolution =>
  decided({ verdict: "released", completion: null }, overrides);

/** A captured entry of which "nothing happened" may be believed as soon as its lease is over. */
export async function quiet(store: Store): Promise<{ id: Uint8Array; fence: Uint8Array }> {
  const { id, fence } = await claimed(store, { runKind: "capture" });
  assert.equal(await store.markUnknown(id, fence, markOf({ quietMs: 0 })), true);
  return { id, fence };
}

/** An entry of phases that was given up with open intents, its own lease over. */
export async function givenUp(store: Store, settlesWithinMs: readonly (number | null)[]): Promise<Uint8Array> {
  const { id, fence } = await claimed(store, {}, 1);
  for (const [index, each] of settlesWithinMs.entries()) {
    await store.openIntent(id, fence, intentOf(`call_${index}`, 1, { settlesWithinMs: each }));
  }
  assert.equal(await store.markUnknown(id, fence, markOf({ quietMs: 0 })), true);
  return id;
}

/** Something sent may still land. */
export function assertUnsettled(resolved: Resolved): asserts resolved is Extract<Resolved, { kind: "unsettled" }> {
  assert.equal(resolved.kind, "unsettled");
}
