import { describe, expect, it } from "vitest";
import {
  answersAgree,
  failureHasNoEffect,
  fencedOutChangesNothing,
  messagesGoWithRows,
  mismatchNeverRuns,
  onceInside,
  onceOutside,
  rolledBackLeavesNothing,
  successHasEffect,
  unresolvedIsKept,
} from "../../lab/explore/invariants.ts";
import type { ClientActor, Outside, TakenStep, Told, View } from "../../lab/explore/world.ts";
import type { EntryRow } from "../../src/stores/memory/entry-row.ts";

const ID = "aa".repeat(32);
const OWNER = "01".repeat(16);
const STRANGER = "02".repeat(16);

const client = (name: string, payload = "5"): ClientActor => ({
  ...{ kind: "client", name, payload, request: {}, identity: "k", via: ["A"], attempts: 1 },
});

const told = (name: string, kind: Told["answer"]["kind"], text: string, payload = "5"): Told => ({
  client: client(name, payload),
  attempt: 1,
  process: "A",
  answer: { kind, text },
});

const row = (payload: string, phase = "settled", more: object = {}) => ({ identity: "k", payload, phase, ...more });

/** Something that has landed outside. */
function landed(...payloads: readonly string[]): Outside {
  const all = payloads.map((payload) => ({ identity: "k", payload, call: "pay", key: "key" }));
  return { events: () => [], instants: () => [], state: () => ({ landed: all }) };
}

function entry(more: Partial<EntryRow> = {}): EntryRow {
  const fence = Buffer.from(OWNER, "hex");
  const blank = { state: "in_progress", attempt: 1, reason: null, expiresAt: null, tombstoneUntil: null };
  return { ...blank, records: [], intents: [], fence, ...more } as unknown as EntryRow;
}

const step = (more: Partial<TakenStep>): TakenStep => ({
  ...{ process: "A", label: "records", method: "recordCall", id: ID, fence: OWNER, committed: [] },
  ...more,
});

/** A planted history. */
function history(planted: Partial<View> & { readonly effects?: readonly object[] }): View {
  const { effects = [], ...more } = planted;
  const none = { step: null, alsoSettled: [], before: new Map(), entries: new Map(), messages: [], deliveries: [] };
  return {
    ...none,
    ...{ nowMs: 1_000, told: [], notes: [], outside: null, actors: [] },
    rows: (<Row extends object>() => effects as readonly Row[]) as View["rows"],
    ...more,
  };
}

describe("effects", () => {
  it("fires where a phase has its rows twice, and only then", () => {
    const twice = history({ effects: [row("5"), row("5")] });
    expect(onceInside().check(twice)).toMatch(/settled of k has its effect twice/);
    expect(onceInside().check(history({ effects: [row("5", "booked"), row("5")] }))).toBeNull();
    const other = { identity: "k2", payload: "5", phase: "settled" };
    expect(onceInside().check(history({ effects: [row("5"), other] }))).toBeNull();
  });

  it("lets a key have its effect again only when its outcome need not be known any more", () => {
    const apart = (ms: number) => history({ effects: [row("5", "end", { at: 0 }), row("5", "end", { at: ms })] });
    expect(onceInside({ keptMs: 2_000 }).check(apart(1_999))).toMatch(/twice/);
    expect(onceInside({ keptMs: 2_000 }).check(apart(2_000))).toBeNull();
  });

  it("fires where a call has landed twice, whatever its keys", () => {
    expect(onceOutside.check(history({ outside: landed("5", "5") }))).toMatch(/pay of k has landed twice/);
    expect(onceOutside.check(history({ outside: landed("5") }))).toBeNull();
  });

  it("fires where a success was told and a row, or a call, or the payload's own effect is not there", () => {
    const rule = successHasEffect({ phases: ["settled"], calls: ["pay"] });
    const answered = { told: [told("Ann", "final", "201 {}")] };
    expect(rule.check(history({ ...answered, outside: landed("5") }))).toMatch(/settled of its request/);
    expect(rule.check(history({ ...answered, effects: [row("5")] }))).toMatch(/pay of its request/);
    expect(rule.check(history({ ...answered, effects: [row("6")], outside: landed("6") }))).toMatch(/no effect/);
    expect(rule.check(history({ ...answered, effects: [row("5")], outside: landed("5") }))).toBeNull();
    expect(rule.check(history({ told: [told("Ann", "later", "busy"), told("Ann", "final", "402 no")] }))).toBeNull();
  });

  it("fires where a message has no row, or a row no message", () => {
    const sent = [{ id: "1", topic: "t" }];
    expect(messagesGoWithRows.check(history({ messages: sent }))).toMatch(/0 transactions sent a message, 1/);
    expect(messagesGoWithRows.check(history({ effects: [row("5", "message")] }))).toMatch(/1 transactions/);
    expect(messagesGoWithRows.check(history({ effects: [row("5", "message")], messages: sent }))).toBeNull();
  });
});

describe("answers", () => {
  it("fires where two final answers of one identity differ in a byte; others may differ", () => {
    const differ = [told("Ann", "final", "201 a"), told("Bob", "final", "201 b")];
    expect(answersAgree.check(history({ told: differ }))).toMatch(/Ann was told 201 a, Bob 201 b/);
    const later = [told("Ann", "later", "busy"), told("Bob", "final", "201 b"), told("Cid", "refused", "mismatch")];
    expect(answersAgree.check(history({ told: later }))).toBeNull();
  });

  it("fires where two payloads of one key have effects, or a refused one has", () => {
    expect(mismatchNeverRuns.check(history({ effects: [row("5"), row("6", "booked")] }))).toMatch(/payloads 5 and 6/);
    expect(mismatchNeverRuns.check(history({ effects: [row("5")], outside: landed("6") }))).toMatch(/5 and 6/);
    const refused = [told("Bob", "refused", "mismatch", "6")];
    expect(mismatchNeverRuns.check(history({ effects: [row("6")], told: refused }))).toMatch(/Bob was refused/);
    expect(mismatchNeverRuns.check(history({ effects: [row("5")], told: refused }))).toBeNull();
  });

  it("fires where a failure was told for good and something exists, outside or inside (V12, V14)", () => {
    const failed = { told: [told("Ann", "final", "402 failed")] };
    expect(failureHasNoEffect.check(history({ ...failed, outside: landed("5") }))).toMatch(/pay has landed/);
    expect(failureHasNoEffect.check(history({ ...failed, effects: [row("5")] }))).toMatch(/settled has its effect/);
    expect(failureHasNoEffect.check(history(failed))).toBeNull();
    const unknown = { told: [told("Ann", "later", "unknown: needs_recovery, x")], outside: landed("5") };
    expect(failureHasNoEffect.check(history(unknown))).toBeNull();
  });

  it("fires where an attempt that was told to be rolled back has left a row (V16)", () => {
    const effects = [row("5", "transaction", { by: "Ann/1" })];
    const rolledBack = { told: [told("Ann", "later", "contention")], effects };
    expect(rolledBackLeavesNothing.check(history(rolledBack))).toMatch(/was told contention, and transaction is there/);
    expect(rolledBackLeavesNothing.check(history({ told: [told("Ann", "threw", "Error")], effects }))).toMatch(/Error/);
    expect(
      rolledBackLeavesNothing.check(history({ told: [told("Ann", "later", "commit_unknown")], effects })),
    ).toBeNull();
    const others = [row("5", "transaction", { by: "Bob/1" })];
    expect(rolledBackLeavesNothing.check(history({ ...rolledBack, effects: others }))).toBeNull();
  });
});

describe("entries", () => {
  const owned = entry();
  const before = new Map([[ID, owned]]);

  it("fires where a fence that does not own the entry changes it, or commits a row under it", () => {
    const changed = { before, entries: new Map([[ID, entry({ reason: "x" })]]) };
    const stranger = step({ fence: STRANGER });
    expect(fencedOutChangesNothing.check(history({ ...changed, step: stranger }))).toMatch(/does not own/);
    expect(fencedOutChangesNothing.check(history({ ...changed, step: step({}) }))).toBeNull();
    const commit = step({ method: "COMMIT", fence: STRANGER, committed: [{ table: "effect", row: {} }] });
    expect(fencedOutChangesNothing.check(history({ before, entries: before, step: commit }))).toMatch(/does not own/);
    expect(fencedOutChangesNothing.check(history({ before, entries: before, step: stranger }))).toBeNull();
  });

  it("sees a stranger that waited for the row and came after it was let go", () => {
    const late = step({ fence: STRANGER, label: "suspends", method: "suspend" });
    const planted = { before, entries: new Map(), alsoSettled: [late] };
    expect(fencedOutChangesNothing.check(history(planted))).toMatch(/suspends changed an entry/);
    // The owner's own commit came first, and the stranger behind it matched nothing.
    expect(fencedOutChangesNothing.check(history({ ...planted, step: step({ method: "COMMIT" }) }))).toBeNull();
  });

  it("does not take a claim, a takeover or an expired entry for a stranger's work", () => {
    const entries = new Map([[ID, entry({ attempt: 2 })]]);
    const taken = step({ method: "takeOver", fence: STRANGER });
    expect(fencedOutChangesNothing.check(history({ before, entries, step: taken }))).toBeNull();
    const over = new Map([[ID, entry({ state: "succeeded", expiresAt: 500 })]]);
    const anew = step({ method: "COMMIT", fence: STRANGER });
    expect(fencedOutChangesNothing.check(history({ before: over, entries, step: anew }))).toBeNull();
  });

  it.each(["in_progress", "needs_recovery", "released"] as const)(
    "fires where an entry that is %s is deleted",
    (state) => {
      const gone = { before: new Map([[ID, entry({ state })]]), step: step({ method: "purge", label: "purges" }) };
      expect(unresolvedIsKept.check(history(gone))).toBe(`an entry that is ${state} was deleted by purges`);
    },
  );

  it("fires where an outcome or its tombstone goes too early, and lets what is over go", () => {
    const purged = (more: Partial<EntryRow>) =>
      history({ before: new Map([[ID, entry({ state: "succeeded", ...more })]]), step: step({ method: "purge" }) });
    expect(unresolvedIsKept.check(purged({ expiresAt: 1_001 }))).toMatch(/succeeded was deleted/);
    expect(unresolvedIsKept.check(purged({ expiresAt: 900, tombstoneUntil: 1_001 }))).toMatch(/succeeded was deleted/);
    expect(unresolvedIsKept.check(purged({ expiresAt: 900, tombstoneUntil: 1_000 }))).toBeNull();
    expect(unresolvedIsKept.check(purged({ expiresAt: 1_000 }))).toBeNull();
  });

  it("lets an owner give back what has begun nothing, and nothing else", () => {
    const given = (more: Partial<EntryRow>) =>
      history({ before: new Map([[ID, entry(more)]]), step: step({ method: "release", label: "releases" }) });
    expect(unresolvedIsKept.check(given({}))).toBeNull();
    expect(unresolvedIsKept.check(given({ attempt: 2 }))).toMatch(/deleted by releases/);
    expect(unresolvedIsKept.check(given({ intents: [{}] as never }))).toMatch(/deleted by releases/);
    expect(unresolvedIsKept.check(given({ reason: "gave_up" }))).toMatch(/deleted by releases/);
  });
});
