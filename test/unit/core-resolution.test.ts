import { describe, expect, expectTypeOf, it } from "vitest";
import type { Intent } from "../../src/core/intent.ts";
import { claimsTopic } from "../../src/core/outbox.ts";
import { decidedCompletion, type Resolution, settlesIn } from "../../src/core/resolution.ts";

const intent = (state: Intent["state"], settlesInMs: number | null): Intent => ({
  call: "authorize",
  generation: 1,
  derivedKey: "key",
  requestDigest: new Uint8Array(32),
  form: "settles",
  ageMs: 0,
  state,
  settlesInMs,
});

describe("when nothing of an entry can land any more", () => {
  it("is the entry's own time where no call is open", () => {
    expect(settlesIn(500, [])).toBe(500);
    expect(settlesIn(-500, [])).toBe(-500);
    expect(settlesIn(null, [])).toBeNull();
  });

  it("is the latest of the entry's and its open calls'", () => {
    expect(settlesIn(500, [intent("open", 200)])).toBe(500);
    expect(settlesIn(-500, [intent("open", 200), intent("open", 900), intent("open", -1)])).toBe(900);
    expect(settlesIn(-500, [intent("open", -1)])).toBe(-1);
  });

  it("is unknown as soon as one of them is, in whatever order", () => {
    expect(settlesIn(-500, [intent("open", null), intent("open", 200)])).toBeNull();
    expect(settlesIn(-500, [intent("open", 200), intent("open", null)])).toBeNull();
    expect(settlesIn(null, [intent("open", -1)])).toBeNull();
  });

  it("does not depend on calls whose result is known or that were cancelled", () => {
    expect(settlesIn(-500, [intent("settled", null), intent("cancelled", 900)])).toBe(-500);
  });
});

describe("the topics that a relay claims", () => {
  it("are exact names, or what a prefix begins", () => {
    expect(claimsTopic(["invoice.created"], "invoice.created")).toBe(true);
    expect(claimsTopic(["invoice.created"], "invoice.created.v2")).toBe(false);
    expect(claimsTopic(["invoice.created"], "invoice")).toBe(false);
    expect(claimsTopic(["invoice.*"], "invoice.created")).toBe(true);
    expect(claimsTopic(["invoice.*"], "invoice.")).toBe(true);
    expect(claimsTopic(["invoice.*"], "invoice")).toBe(false);
    expect(claimsTopic(["invoice.*"], "invoicexcreated")).toBe(false);
    expect(claimsTopic(["a", "b*"], "bc")).toBe(true);
  });

  it("are all with a lone star, and none without any", () => {
    expect(claimsTopic(["*"], "anything")).toBe(true);
    expect(claimsTopic([], "anything")).toBe(false);
  });

  it("have a star only at the end: elsewhere it stands for itself", () => {
    expect(claimsTopic(["*.created"], "invoice.created")).toBe(false);
    expect(claimsTopic(["*.created"], "*.created")).toBe(true);
  });
});

describe("a decision", () => {
  const outcome = { status: 200, content: new Uint8Array(), pointer: null };
  const completion = { outcome, retentionMs: 1, tombstoneMs: 0 };
  const how = { attempt: null, force: false, by: "ada", note: null, fence: new Uint8Array(16) };

  it("has an outcome exactly where it says how it ended", () => {
    type Decided = Extract<Resolution, { verdict: "succeeded" | "failed" }>;
    expectTypeOf<Decided["completion"]>().not.toExtend<null>();
    expectTypeOf<{ verdict: "failed"; completion: null } & typeof how>().not.toExtend<Resolution>();
    expectTypeOf<{ verdict: "released"; completion: typeof completion } & typeof how>().not.toExtend<Resolution>();
    expect(decidedCompletion({ ...how, verdict: "released", completion: null })).toBeNull();
  });

  it("is stored under its verdict, whatever the outcome said of itself", () => {
    const said = { ...completion, state: "succeeded" };
    expect(decidedCompletion({ ...how, verdict: "failed", completion: said })).toEqual({
      ...completion,
      state: "failed",
    });
  });
});
