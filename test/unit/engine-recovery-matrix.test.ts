import type { Recover } from "oncekey";
import { describe, expect, it } from "vitest";
import { encodeContent } from "../../src/core/stored-outcome.ts";
import { type ChargesWorld, chargesWorld, LEASE_MS, type Worker } from "../support/charges.ts";
import { type Provider, provider } from "../support/provider.ts";

// One charge whose call was sent and never answered, given up to needs_recovery. Who goes on with it (the sweeper, a retry,
// an operator), when (before and after what was sent can land), under which form, and what the look-up then says: each
// combination has one end.

type Says = "found" | "none" | "unknown" | "twice" | "throws" | "hangs";
type When = "before" | "after";
type Form = "settles" | "cancel";
type Case = readonly [Form, When, Says];

const SETTLES_MS = 20_000;

const RECOVER: Record<Form, (psp: Provider) => Recover<{ amount: number }, { id: string }>> = {
  settles: (psp) => ({ find: ({ key }) => psp.find(key), settlesWithinMs: SETTLES_MS }),
  // Here the time is for operators only: the engine makes "none" true instead of waiting.
  cancel: (psp) => ({
    find: ({ key }) => psp.find(key),
    cancel: ({ key }) => psp.cancel(key),
    settlesWithinMs: SETTLES_MS,
  }),
};

const CASES: Case[] = (["settles", "cancel"] as const).flatMap((form) =>
  (["before", "after"] as const).flatMap((when) =>
    (["found", "none", "unknown", "twice", "throws", "hangs"] as const).map((says) => [form, when, says] as const),
  ),
);

async function scene([form, when, says]: Case): Promise<ChargesWorld & { readonly actor: Worker }> {
  const psp = provider();
  psp.script.push(says === "found" ? "lost" : "late");
  psp.answers.push("unknown");
  const world = chargesWorld({ psp, recover: RECOVER[form], maxAttempts: 1 });
  const actor = await world.worker();
  expect(await world.time.advanceUntil(actor.run("k"))).toMatchObject({ kind: "unknown", state: "needs_recovery" });
  await world.time.advance(when === "before" ? LEASE_MS + 1_000 : SETTLES_MS + 3_000);
  if (says === "twice" || says === "unknown") psp.answers.push(says);
  if (says === "throws") psp.answers.push("throw");
  if (says === "hangs") psp.answers.push("hang");
  return { ...world, actor };
}

interface End {
  readonly state: "succeeded" | "needs_recovery";
  readonly reason?: string;
  /** Sends that arrived, and effects there, once everything sent has landed or never will. */
  readonly sent: number;
  readonly landed: number;
}

const UNTOUCHED: End = { state: "needs_recovery", reason: "gave_up: call_unknown: authorize", sent: 1, landed: 1 };

/** What somebody who asks now ends with. */
function endOf([form, when, says]: Case): End {
  if (says === "found") return { state: "succeeded", sent: 1, landed: 1 };
  if (says === "twice") return { ...UNTOUCHED, reason: "call_found_twice: authorize (2 hits)" };
  if (says !== "none") return UNTOUCHED;
  if (form === "cancel") return { state: "succeeded", sent: 2, landed: 1 };
  // Past the settle time nothing of the first send can land any more, by the other side's word: the second is the effect.
  return when === "after" ? { state: "succeeded", sent: 2, landed: 1 } : UNTOUCHED;
}

async function expectEnd({ entry, psp }: ChargesWorld, [form, when]: Case, end: End): Promise<void> {
  const { state, reason } = (await entry()) ?? {};
  const lateIsOver = form === "settles" && when === "after" && end.state === "succeeded";
  if (!lateIsOver) psp.land();
  expect({ state, reason: reason ?? undefined, sent: psp.sent.length, landed: psp.landed.length }).toMatchObject(end);
  expect(psp.landed).toHaveLength(end.landed);
}

describe("an unanswered call that was given up", () => {
  it.each(CASES)("%s, %s its time, find %s: a retry", async (...one) => {
    const world = await scene(one);
    const end = endOf(one);
    const { kind } = await world.time.advanceUntil(world.actor.run("k"));
    expect(kind).toBe(end.state === "succeeded" ? "completed" : "unknown");
    await expectEnd(world, one, end);
  });

  it.each(CASES)("%s, %s its time, find %s: the sweeper", async (...one) => {
    const world = await scene(one);
    const [form, when] = one;
    const isDue = form === "cancel" || when === "after";
    const end = isDue ? endOf(one) : { ...UNTOUCHED };
    const report = await world.time.advanceUntil(world.actor.sweeper.runOnce());
    const ended = end.state === "succeeded" ? { resumed: 1, gaveUp: 0 } : { resumed: 0, gaveUp: isDue ? 1 : 0 };
    expect(report).toMatchObject({ ...ended, failed: 0, left: 0 });
    await expectEnd(world, one, end);
  });

  it.each(CASES)("%s, %s its time, find %s: an operator (V14)", async (...one) => {
    const { store, id, time, psp, actor } = await scene(one);
    const outcome = { status: 402, content: encodeContent({ headers: [], body: new Uint8Array() }), pointer: null };
    const completion = { state: "failed", outcome, retentionMs: 3_600_000, tombstoneMs: 0 } as const;
    const decide = (force: boolean) => {
      const fence = new Uint8Array(16).fill(7);
      return store.resolve(id(), { verdict: "failed", completion, attempt: null, force, by: "ada", note: null, fence });
    };
    const first = await decide(false);
    if (one[1] === "before") {
      expect(first).toMatchObject({ kind: "unsettled", openIntents: [{ call: "authorize", state: "open" }] });
      expect(first.kind === "unsettled" && (first.settlesInMs ?? 0) > 10_000).toBe(true);
      expect(store.resolutions()).toEqual([]);
    }
    expect(one[1] === "before" ? await decide(true) : first).toMatchObject({
      kind: "resolved",
      from: "needs_recovery",
    });
    expect(store.resolutions()).toMatchObject([{ by: "ada", verdict: "failed", forced: one[1] === "before" }]);
    expect(await time.advanceUntil(actor.run("k"))).toMatchObject({ kind: "replayed", outcome: { status: 402 } });
    // The look-up is the operator's own business: the decision sends and asks nothing.
    expect(psp.sent).toHaveLength(1);
  });
});
