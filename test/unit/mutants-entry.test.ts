import { describe, expect, it } from "vitest";
import { decide, type EntryClock, leftInProgress, type StoredEntry, type Taker } from "../../src/core/entry.ts";

const AT = new Date(1_000);
const OUTCOME = { status: 201, content: new Uint8Array([1]), pointer: null };
const PHASES: Taker = { runKind: "phases", version: 2 };
const RUN_AGAIN: Taker = { ...PHASES, rules: { afterFailure: "runAgain" } };

/** An entry of phases whose lease has just lapsed, or what a case makes of it. */
function entry(over: Partial<Omit<StoredEntry, "clock">> = {}, clock: Partial<EntryClock> = {}): StoredEntry {
  const times = { ageMs: 5, claimableInMs: 0, expired: false, tombstoned: false, sweepInMs: null, settlesInMs: null };
  const bytes = new Uint8Array(16);
  return {
    ...{ id: bytes, tenant: "acme", client: null, operation: "o", key: "k", fingerprint: bytes, wireDigest: null },
    ...{ fence: bytes, seed: bytes, input: null, context: null, correlation: null, runKind: "phases" },
    ...{ operationVersion: 2, state: "in_progress", attempt: 1, recoveryPoint: null, reason: null, outcome: null },
    ...{ outcomeGone: false, createdAt: AT, completedAt: null, expiresAt: null },
    ...over,
    clock: { ...times, ...clock },
  };
}

const finished = (state: "succeeded" | "failed", over: Partial<StoredEntry> = {}, clock: Partial<EntryClock> = {}) =>
  entry({ state, outcome: OUTCOME, completedAt: AT, expiresAt: new Date(9_000), ...over }, clock);
const over = { expired: true };
const underTombstone = { expired: true, tombstoned: true };

describe("what an entry means for a request", () => {
  it("is nothing where there is none, or its time is over", () => {
    expect(decide(null, "equal", PHASES)).toEqual({ kind: "absent", expired: false });
    for (const state of ["succeeded", "failed"] as const) {
      expect(decide(finished(state, {}, over), "different", PHASES)).toEqual({ kind: "absent", expired: true });
    }
    expect(decide(finished("succeeded", {}, over), "version_unknown", PHASES).kind).toBe("absent");
  });

  it("is a failure to be forgotten only where it was over when it was stored, and the operation forgets", () => {
    const forgotten = finished("failed", { expiresAt: new Date(AT) }, underTombstone);
    expect(decide(forgotten, "different", RUN_AGAIN)).toEqual({ kind: "absent", expired: true });
    for (const taker of [PHASES, { ...PHASES, rules: { afterFailure: "replay" } } as Taker]) {
      expect(decide(forgotten, "equal", taker).kind).toBe("gone");
    }
    const kept = [
      { state: "succeeded" as const },
      { expiresAt: new Date(1_001) },
      { completedAt: null },
      { expiresAt: null },
    ];
    for (const change of kept) expect(decide({ ...forgotten, ...change }, "equal", RUN_AGAIN).kind).toBe("gone");
    expect(decide(finished("failed", { expiresAt: new Date(AT) }), "equal", RUN_AGAIN).kind).toBe("replay");
    expect(decide(entry({ state: "in_progress" }, over), "equal", PHASES).kind).toBe("resume");
  });

  it("is a mismatch before all else that is known of it, and nothing at all to who cannot compare", () => {
    for (const state of ["in_progress", "needs_recovery", "released", "succeeded", "failed"] as const) {
      expect(decide(entry({ state }, { claimableInMs: 9 }), "different", PHASES)).toEqual({ kind: "mismatch", state });
      expect(decide(entry({ state }), "version_unknown", PHASES)).toEqual({ kind: "version_unknown" });
    }
  });

  it("is its outcome, or that there was one", () => {
    for (const state of ["succeeded", "failed"] as const) {
      expect(decide(finished(state), "equal", PHASES)).toEqual({ kind: "replay", outcome: OUTCOME });
      const gone = [
        finished(state, { outcomeGone: true }),
        finished(state, { outcome: null }),
        finished(state, {}, underTombstone),
      ];
      for (const one of gone) expect(decide(one, "equal", PHASES)).toEqual({ kind: "gone", state });
    }
  });

  it("is busy while the lease runs, and says when to come back: in two seconds at most", () => {
    const at = (claimableInMs: number) => decide(entry({}, { claimableInMs }), "equal", PHASES);
    expect(at(1)).toEqual({ kind: "busy", retryAfterMs: 1 });
    expect(at(10_000)).toEqual({ kind: "busy", retryAfterMs: 2_000 });
    for (const claimableInMs of [0, -1]) expect(at(claimableInMs)).toEqual({ kind: "resume" });
    const foreign = entry({ runKind: "capture" }, { claimableInMs: 1 });
    expect(decide(foreign, "equal", PHASES).kind).toBe("busy");
  });

  it("is unknown where code of another kind, or newer code, left it", () => {
    expect(decide(entry({ runKind: "capture", outcome: OUTCOME }), "equal", PHASES)).toEqual({
      ...{ kind: "unknown", state: "in_progress", reason: "left by capture code" },
      ...{ provisional: OUTCOME, retryAfterMs: 5_000 },
    });
    expect(decide(entry({ operationVersion: 3 }), "equal", PHASES)).toMatchObject({
      kind: "unknown",
      reason: "left by a newer version of the operation",
    });
    for (const operationVersion of [1, 2]) {
      expect(decide(entry({ operationVersion }), "equal", PHASES)).toEqual({ kind: "resume" });
    }
  });

  it("is abandoned where a captured run lost its owner, and resumed where it was given back", () => {
    const taker: Taker = { runKind: "capture", version: 2 };
    const captured = (state: StoredEntry["state"]) => decide(entry({ runKind: "capture", state }), "equal", taker);
    expect(captured("in_progress")).toEqual({ kind: "abandoned" });
    expect(captured("released")).toEqual({ kind: "resume" });
  });
});

describe("what an entry that needs recovery means for a retry", () => {
  const at = (change: Partial<StoredEntry>, clock: Partial<EntryClock>) =>
    decide(entry({ state: "needs_recovery", ...change }, clock), "equal", PHASES);

  it("is its reason, the answer that was given meanwhile, and when to come back", () => {
    expect(at({ reason: "call_unknown", outcome: OUTCOME }, { claimableInMs: 9_000 })).toEqual({
      ...{ kind: "unknown", state: "needs_recovery", reason: "call_unknown" },
      ...{ provisional: OUTCOME, retryAfterMs: 9_000 },
    });
    expect(at({}, { claimableInMs: -9_000 })).toMatchObject({ reason: "needs recovery", retryAfterMs: 5_000 });
  });

  it("is another attempt where asking may help and the last lease is over", () => {
    for (const sweepInMs of [60_000, 0, -1]) expect(at({}, { sweepInMs }).kind).toBe("resume");
    expect(at({ reason: "gave_up: call_unknown" }, { sweepInMs: 60_000 }).kind).toBe("resume");
    expect(at({}, { sweepInMs: null }).kind).toBe("unknown");
    expect(at({}, { sweepInMs: 0, claimableInMs: 1 }).kind).toBe("unknown");
    const captured = entry({ state: "needs_recovery", runKind: "capture" }, { sweepInMs: 0 });
    expect(decide(captured, "equal", { runKind: "capture", version: 2 }).kind).toBe("unknown");
  });

  it("is no sooner another run of what kills its process", () => {
    const reason = leftInProgress(6);
    expect(reason).toBe("gave_up: left in progress by 6 attempts");
    expect(at({ reason }, { sweepInMs: 1 }).kind).toBe("unknown");
    for (const sweepInMs of [0, -1]) expect(at({ reason }, { sweepInMs }).kind).toBe("resume");
    expect(at({ reason: "said: gave_up: left in progress" }, { sweepInMs: 1 }).kind).toBe("resume");
  });
});
