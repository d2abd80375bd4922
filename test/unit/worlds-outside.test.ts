import { describe, expect, it } from "vitest";
import { type Provider, type ProviderTerms, provider, type Sent } from "../../lab/explore/outside.ts";
import type { Process, Scene, Step } from "../../lab/explore/world.ts";

const sent = (key = "g1"): Sent => ({ identity: "k", payload: "5", call: "pay", key });
const process = { name: "A" } as Process;

/** A provider whose steps are taken at once, each the way that was asked for last. */
function desk(terms: Partial<ProviderTerms> = {}) {
  let nowMs = 0;
  let wanted: string | null = null;
  let flightMs = 0;
  const scene: Scene = {
    nowMs: () => nowMs,
    note: () => {},
    async step<T>(_process: Process, { ways }: Step<T>): Promise<T> {
      nowMs += flightMs;
      const way = ways.find(({ costs }) => costs === wanted);
      if (way === undefined) throw new Error(`no way costs ${wanted}`);
      return way.perform();
    },
  };
  const at: Provider = provider(scene, terms);
  const going = <T>(costs: string | null, run: () => Promise<T>): Promise<T> => {
    wanted = costs;
    return run();
  };
  return {
    at,
    call: (costs: string | null = null, key?: string) => going(costs, () => at.call(process, sent(key))),
    find: (costs: string | null = null) => going(costs, () => at.find(process, "g1")),
    cancel: (costs: string | null = null) => going(costs, () => at.cancel(process, "g1")),
    landed: () => at.state().landed.length,
    land: () =>
      at
        .events()
        .find(({ label }) => label.includes("lands"))
        ?.perform(),
    pass: (ms: number) => {
      nowMs += ms;
    },
    slow: (ms: number) => {
      flightMs = ms;
    },
  };
}

describe("the provider of a world", () => {
  it("carries a call out and finds it; without dedupe the same key has two effects", async () => {
    const { call, find, landed } = desk();
    expect(await find()).toEqual({ kind: "none" });
    const receipt = await call();
    expect(await find()).toEqual({ kind: "found", value: receipt });
    await call();
    expect(landed()).toBe(2);
    expect(await find()).toMatchObject({ kind: "ambiguous", count: 2 });
  });

  it("dedupes within its window, what is queued included, and begins another one after it", async () => {
    const { call, land, landed, pass } = desk({ dedupesForMs: 1_000 });
    await expect(call("call late")).rejects.toThrow(/cut/);
    await expect(call("call late")).rejects.toThrow(/cut/);
    const receipt = await call();
    expect(land()).toBeUndefined();
    pass(999);
    expect(await call()).toEqual(receipt);
    expect(landed()).toBe(1);
    pass(1);
    await call();
    expect(landed()).toBe(2);
  });

  it("loses an answer after the effect, and a request before it", async () => {
    const { call, landed } = desk();
    await expect(call("call refused")).rejects.toThrow(/cut/);
    expect(landed()).toBe(0);
    await expect(call("call lost")).rejects.toThrow(/cut/);
    expect(landed()).toBe(1);
  });

  it("lands late, as long as it may, and never after its key was cancelled", async () => {
    const late = desk({ landsWithinMs: 400 });
    await expect(late.call("call late")).rejects.toThrow(/cut/);
    late.pass(401);
    expect(late.at.events()).toEqual([]);
    const cancelled = desk();
    await expect(cancelled.call("call late")).rejects.toThrow(/cut/);
    await cancelled.cancel();
    expect(cancelled.at.events()).toEqual([]);
    await expect(cancelled.call()).rejects.toThrow(/cancelled/);
    await cancelled.call(null, "g2");
    expect(cancelled.landed()).toBe(1);
  });

  it("shows what has landed when its look-ups have caught up, and cancels nothing that it hides", async () => {
    const { call, find, cancel, pass } = desk({ lagMs: 200 });
    await call();
    expect(await find()).toEqual({ kind: "none" });
    await expect(cancel()).rejects.toThrow(/has landed/);
    pass(200);
    expect(await find()).toMatchObject({ kind: "found" });
    await cancel();
  });

  it("does not get a request that was on its way longer than a socket lives", async () => {
    const { call, landed, slow } = desk({ flightMs: 300 });
    slow(301);
    await expect(call()).rejects.toThrow(/cut/);
    expect(landed()).toBe(0);
    slow(300);
    await call();
    expect(landed()).toBe(1);
  });

  it("answers nothing for ever where it is silent, and does nothing where it is broken", async () => {
    const silent = desk();
    const unanswered = silent.call("call silent");
    expect(await Promise.race([unanswered, Promise.resolve("still waiting")])).toBe("still waiting");
    silent.land();
    expect(silent.landed()).toBe(1);
    const broken = desk({ isBroken: true });
    await expect(broken.call()).rejects.toThrow(/cut/);
    expect(broken.landed()).toBe(0);
  });

  it("tells its state as JSON, and when it changes by itself", async () => {
    const { call, at } = desk({ dedupesForMs: 1_000, landsWithinMs: 400, lagMs: 200 });
    await expect(call("call late")).rejects.toThrow(/cut/);
    expect([...at.instants()].sort()).toEqual([1_000, 400]);
    expect(JSON.parse(JSON.stringify(at.state()))).toEqual(at.state());
  });
});
