import { created, createOncekey, type Found, found, none, type OncekeyOptions, type Recover, unknown } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";

// One call, at the very instants at which its rules change.

const TIMEOUT_MS = 500;
const SETTLES_MS = 20_000;
/** Longest time between an intent's commit and its sending, and the reserve of the other side's window. */
const MARGIN_MS = 1_000;
const WINDOW_MS = 600_000;

type Answer = Found<unknown>;
type Send = (key: string) => Promise<unknown>;

function world(recover: (find: () => Promise<Answer>, cancel: () => Promise<void>) => Recover<unknown, unknown>) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const view = Object.create(store) as MemoryStore;
  const keys: string[] = [];
  const looks: string[] = [];
  const given = {
    send: (() => Promise.reject(new Error("no answer"))) as Send,
    find: [] as Answer[],
    cancel: async () => {},
    request: {} as unknown,
    keyForm: "base64url" as "base64url" | "uuid",
  };
  const find = async () => {
    looks.push("find");
    return given.find.shift() ?? unknown("indexing");
  };
  const cancel = async () => {
    looks.push("cancel");
    return given.cancel();
  };
  let id = new Uint8Array();
  const onError = vi.fn<NonNullable<OncekeyOptions<MemoryTransaction>["onError"]>>();
  const once = createOncekey({ store: view, clock: time.clock, leaseMs: 30_000, waitMs: 0, onError });
  const operation = once.phases({
    name: "charges.create",
    version: 1,
    maxAttempts: 1_000,
    async run(op) {
      id = Buffer.from(op.id, "hex");
      const value = await op.call("authorize", {
        timeoutMs: TIMEOUT_MS,
        request: given.request,
        keyForm: given.keyForm,
        recover: recover(find, cancel),
        run: ({ key }) => {
          keys.push(key);
          return given.send(key);
        },
      });
      return op.complete(async () => created("/1", { value }));
    },
  });
  let begun: Promise<unknown> | null = null;
  const run = async () => {
    begun ??= once.start();
    await begun;
    return time.advanceUntil(once.run(operation, { scope: { tenant: "a", client: null }, key: "k", input: {} }), 1);
  };
  /** Moves on to an instant, counted from the first one. */
  const at = (ms: number) => time.advance(Date.UTC(2026, 0, 1) + ms - time.now());
  const entry = () => store.read(id);
  const intents = async () => (await store.journal(id)).intents;
  return { time, view, store, given, keys, looks, run, at, entry, intents, onError };
}

const unknownAnswer = { kind: "unknown", state: "in_progress", reason: "call_unknown: authorize" };
const dedupes = () => ({ dedupes: { forMs: WINDOW_MS } });
const dedupesOrFound = (find: () => Promise<Answer>) => ({ dedupes: { forMs: WINDOW_MS }, find });
const settles = (find: () => Promise<Answer>) => ({ find, settlesWithinMs: SETTLES_MS });
const cancels = (find: () => Promise<Answer>, cancel: () => Promise<void>) => ({ find, cancel });

describe("a call that the other side dedupes", () => {
  it("is sent three times in an attempt, under one key, and is written down when it stays open", async () => {
    const { run, keys, intents, onError } = world(dedupes);
    expect(await run()).toMatchObject({ ...unknownAnswer, retryAfterMs: 1_000 });
    expect([keys.length, new Set(keys).size]).toEqual([3, 1]);
    expect(await intents()).toMatchObject([{ state: "open", generation: 1, form: "dedupes", derivedKey: keys[0] }]);
    expect(onError.mock.calls.map(([, { at }]) => at)).toEqual(Array(3).fill("call authorize"));
  });

  it.each([
    ["the last instant at which it arrives inside of it", 0, 3],
    ["a millisecond later", 1, 0],
  ])("is sent again while the window lasts: %s", async (_, afterMs, sends) => {
    const { run, at, keys, given } = world(dedupes);
    await run();
    keys.length = 0;
    await at(WINDOW_MS - TIMEOUT_MS - MARGIN_MS + afterMs);
    given.send = async () => "paid";
    const result = await run();
    expect(keys).toHaveLength(Math.min(sends, 1));
    expect(result).toMatchObject(
      sends > 0
        ? { kind: "completed" }
        : { kind: "unknown", state: "needs_recovery", reason: "dedupe_window_over: authorize" },
    );
  });

  it.each([
    ["found", found("paid"), { kind: "completed" }, null],
    [
      "not found",
      none(),
      { state: "needs_recovery", reason: "dedupe_window_over: authorize, and it is not found" },
      2_000,
    ],
    ["not yet known", unknown("indexing"), { ...unknownAnswer, retryAfterMs: 2_000 }, null],
  ])("is asked about after the window, and not sent: %s", async (_, answer, result, sweepInMs) => {
    const { run, at, keys, given, view, store } = world(dedupesOrFound);
    await run();
    keys.length = 0;
    await at(WINDOW_MS);
    given.find.push(answer);
    const marks: unknown[] = [];
    view.markUnknown = (id, fence, mark) => {
      marks.push(mark.sweepInMs);
      return store.markUnknown(id, fence, mark);
    };
    expect(await run()).toMatchObject(result);
    expect(keys).toEqual([]);
    expect(marks).toEqual(sweepInMs === null ? [] : [sweepInMs]);
  });
});

describe("a call that settles in time", () => {
  it.each([
    ["not a millisecond before", -1, 1],
    ["at that instant", 0, 2],
  ])("is sent again under another key once nothing can land any more: %s", async (_, afterMs, sends) => {
    const { run, at, keys, given } = world(settles);
    given.find.push(none());
    // The intent is as old as the entry: no time passes before it.
    expect(await run()).toMatchObject({ ...unknownAnswer, retryAfterMs: SETTLES_MS + MARGIN_MS });
    given.find.push(none());
    given.send = async () => "paid";
    await at(SETTLES_MS + MARGIN_MS + afterMs);
    await run();
    expect(keys).toHaveLength(sends);
    expect(new Set(keys).size).toBe(1);
  });

  it("waits for what it was declared to take when it was sent, though less is declared now", async () => {
    const { run, at, keys, given } = world((find) => ({ find, settlesWithinMs: declaredMs }));
    let declaredMs = SETTLES_MS;
    given.find.push(none(), none());
    await run();
    declaredMs = 1_000;
    await at(SETTLES_MS);
    await run();
    expect(keys).toHaveLength(1);
  });

  it("starts its time again where the intent's commit was answered late, and only then", async () => {
    for (const [lateMs, opened] of [
      [MARGIN_MS, 1],
      [MARGIN_MS + 1, 2],
    ] as const) {
      const { run, given, view, store, time } = world(settles);
      given.send = async () => "paid";
      let opens = 0;
      view.openIntent = async (...all) => {
        const intent = await store.openIntent(...all);
        if (++opens === 1) await new Promise((resolve) => void time.clock.after(lateMs, () => resolve(null)));
        return intent;
      };
      expect((await run()).kind).toBe("completed");
      expect(opens).toBe(opened);
    }
  });
});

describe("a call that can be cancelled", () => {
  it("is cancelled, looked for once more, and sent under the next generation's key, three times at most", async () => {
    const { run, keys, looks, given, intents } = world(cancels);
    given.find.push(...Array.from({ length: 6 }, () => none()));
    expect(await run()).toMatchObject(unknownAnswer);
    expect([keys.length, new Set(keys).size]).toEqual([3, 3]);
    expect(looks).toEqual(Array.from({ length: 3 }, () => ["find", "cancel", "find"]).flat());
    expect((await intents()).map(({ generation, state }) => [generation, state])).toEqual([
      [1, "cancelled"],
      [2, "cancelled"],
      [3, "cancelled"],
    ]);
  });

  it.each([
    ["found before it is cancelled", [found("paid")], ["find"], { kind: "completed" }],
    ["found after it was cancelled", [none(), found("paid")], ["find", "cancel", "find"], { kind: "completed" }],
    ["unknown before", [unknown("indexing")], ["find"], unknownAnswer],
    ["unknown after", [none(), unknown("indexing")], ["find", "cancel", "find"], unknownAnswer],
  ])("is sent no second time where it is %s", async (_, answers, looked, result) => {
    const { run, keys, looks, given } = world(cancels);
    given.find.push(...answers);
    expect(await run()).toMatchObject(result);
    expect(keys).toHaveLength(1);
    expect(looks).toEqual(looked);
  });

  it("stays unknown where it could not be cancelled, and tells of that", async () => {
    const { run, keys, given, intents, onError } = world(cancels);
    given.find.push(none());
    const down = new Error("down");
    given.cancel = () => Promise.reject(down);
    expect(await run()).toMatchObject(unknownAnswer);
    expect(keys).toHaveLength(1);
    expect(await intents()).toMatchObject([{ state: "open" }]);
    expect(onError).toHaveBeenCalledWith(down, { operation: "charges.create", at: "call authorize" });
  });

  it("is not sent again where another attempt took over meanwhile", async () => {
    const { run, keys, given, view } = world(cancels);
    given.find.push(none(), none());
    view.cancelIntent = async () => false;
    expect((await run()).kind).toBe("lease_lost");
    expect(keys).toHaveLength(1);
  });
});

describe("an open call whose code changed", () => {
  const changed = { state: "needs_recovery" };
  it("is not sent with other arguments", async () => {
    const { run, at, keys, given } = world(settles);
    given.find.push(none());
    await run();
    given.request = { amount: 6 };
    await at(SETTLES_MS * 2);
    const reason = "call_changed: authorize has other arguments than when it was sent";
    expect(await run()).toMatchObject({ ...changed, reason });
    expect(keys).toHaveLength(1);
  });

  it("is not looked for under another form of its key", async () => {
    const { run, at, looks, given } = world(settles);
    given.find.push(none());
    await run();
    looks.length = 0;
    given.keyForm = "uuid";
    await at(SETTLES_MS * 2);
    const reason = "call_changed: authorize has another keyForm than when it was sent";
    expect(await run()).toMatchObject({ ...changed, reason });
    expect(looks).toEqual([]);
  });

  it("is not settled by the rules of another form", async () => {
    let recover: (find: () => Promise<Answer>) => Recover<unknown, unknown> = settles;
    const { run, at, keys, given, looks } = world((find) => recover(find));
    given.find.push(none());
    await run();
    looks.length = 0;
    recover = dedupes;
    await at(SETTLES_MS * 2);
    expect(await run()).toMatchObject({ ...changed, reason: "recover_changed: authorize was sent under another form" });
    expect([keys.length, looks.length]).toEqual([1, 0]);
  });

  it("of a release that wrote no form was of one that wrote intents", async () => {
    for (const [form, result] of [
      [settles, { kind: "completed" }],
      [dedupes, { ...changed, reason: "recover_changed: authorize was sent under another form" }],
    ] as const) {
      let recover: (find: () => Promise<Answer>) => Recover<unknown, unknown> = settles;
      const { run, at, given, view, store } = world((find) => recover(find));
      given.find.push(none(), found("paid"));
      await run();
      recover = form;
      view.journal = async (id) => {
        const { records, intents } = await store.journal(id);
        return { records, intents: intents.map((intent) => ({ ...intent, form: null })) };
      };
      await at(SETTLES_MS * 2);
      expect(await run()).toMatchObject(result);
    }
  });
});
