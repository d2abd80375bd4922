import { ambiguous, found, none, unknown } from "oncekey";
import { fakeClock, faultyProvider } from "oncekey/testing";
import { describe, expect, it } from "vitest";

const call = (key: string) => ({ key, request: { amount: 5 } });

describe("faultyProvider", () => {
  it("does each call once per key and shows what it did", async () => {
    const time = fakeClock();
    const psp = faultyProvider({ now: time.now });
    expect([await psp.call(call("a")), await psp.call(call("b")), await psp.call(call("a"))]).toEqual([
      { id: "psp_1" },
      { id: "psp_2" },
      { id: "psp_1" },
    ]);
    const landedAt = time.now();
    expect(psp.effects).toEqual([
      { id: "psp_1", key: "a", request: { amount: 5 }, landedAt },
      { id: "psp_2", key: "b", request: { amount: 5 }, landedAt },
    ]);
    expect(psp.arrived).toEqual(["a", "b", "a"]);
  });

  it("does every call where it does not dedupe, and a look-up says that there are two", async () => {
    const psp = faultyProvider({ dedupes: false });
    await psp.call(call("a"));
    expect(await psp.find({ key: "a" })).toEqual(found({ id: "psp_1" }));
    await psp.call(call("a"));
    expect(await psp.find({ key: "a" })).toEqual(ambiguous(2));
  });

  it("forgets a key when its window is over", async () => {
    const time = fakeClock();
    const psp = faultyProvider({ dedupeWindowMs: 1_000, now: time.now });
    await psp.call(call("a"));
    await time.advance(999);
    expect(await psp.call(call("a"))).toEqual({ id: "psp_1" });
    await time.advance(1);
    expect(await psp.call(call("a"))).toEqual({ id: "psp_2" });
    await time.advance(999);
    expect(await psp.call(call("a"))).toEqual({ id: "psp_2" });
  });

  it("follows its script: fails, drops, accepts for later, hangs", async () => {
    const psp = faultyProvider();
    psp.script.push("fail", "drop", "late", "hang");
    await expect(psp.call(call("fail"))).rejects.toThrow("answered 500");
    await expect(psp.call(call("drop"))).rejects.toThrow("cut before the answer");
    await expect(psp.call(call("late"))).rejects.toThrow("cut before the answer");
    const hanging = psp.call(call("hang"));
    expect(await Promise.race([hanging, new Promise((resolve) => setImmediate(() => resolve("hangs")))])).toBe("hangs");
    expect(psp.effects.map(({ key }) => key)).toEqual(["drop"]);
    psp.land();
    psp.land();
    expect(psp.effects.map(({ key }) => key)).toEqual(["drop", "late"]);
    expect(await psp.call(call("late"))).toEqual({ id: "psp_2" });
  });

  it("shows an effect to look-ups only after its lag, and says what it is told to say", async () => {
    const time = fakeClock();
    const psp = faultyProvider({ findLagMs: 500, now: time.now });
    await psp.call(call("a"));
    expect(await psp.find({ key: "a" })).toEqual(none());
    await time.advance(500);
    psp.lookups.push("none", "unknown", "twice", "throw");
    expect(await psp.find({ key: "a" })).toEqual(none());
    expect(await psp.find({ key: "a" })).toEqual(unknown("the provider could not say"));
    expect(await psp.find({ key: "a" })).toEqual(ambiguous(2));
    await expect(psp.find({ key: "a" })).rejects.toThrow("look-up failed");
    expect(await psp.find({ key: "a" })).toEqual(found({ id: "psp_1" }));
  });

  it("makes a cancelled key useless, also for what was to land later", async () => {
    const psp = faultyProvider();
    psp.script.push("late");
    await psp.call(call("a")).catch(() => {});
    await psp.cancel({ key: "a" });
    psp.land();
    await expect(psp.call(call("a"))).rejects.toThrow("cancelled");
    expect(psp.effects).toEqual([]);
    await psp.call(call("b"));
    await expect(psp.cancel({ key: "b" })).rejects.toThrow("has landed");
  });

  it("refuses everything while it is down", async () => {
    const psp = faultyProvider();
    psp.down = true;
    for (const use of [psp.call, psp.find, psp.cancel]) await expect(use(call("a"))).rejects.toThrow("refused");
    expect(psp.arrived).toEqual([]);
  });
});
