import { defineSuite, type SuiteCase, type SuiteRunner } from "oncekey/testing";
import { describe, expect, it } from "vitest";

interface Counter {
  readonly close: () => Promise<void>;
}

/** A runner that only keeps what was registered. */
function recordingRunner() {
  const tests = new Map<string, { run: () => Promise<void>; timeoutMs: number | undefined }>();
  const headings: string[] = [];
  const runner: SuiteRunner = {
    describe(name, fn) {
      headings.push(name);
      fn();
    },
    it: (name, run, timeoutMs) => tests.set(name, { run, timeoutMs }),
  };
  return { runner, tests, headings };
}

const passing = (name: string, group?: string): SuiteCase<Counter> => ({
  name,
  run: async () => {},
  ...(group === undefined ? {} : { group }),
});

const LIMITS_TEST = "names only cases of the suite in its limits";

describe("defineSuite", () => {
  it("registers each case under its group, with its own time-out", () => {
    const { runner, tests, headings } = recordingRunner();
    const suite = defineSuite<Counter>("store", [passing("a", "one"), { ...passing("b"), timeoutMs: 5 }]);
    suite(runner, "memory", async () => ({ close: async () => {} }));
    expect(headings).toEqual(["store: memory", "one"]);
    expect([...tests.keys()]).toEqual([LIMITS_TEST, "a", "b"]);
    expect(tests.get("b")?.timeoutMs).toBe(5);
  });

  it("gives each case a harness of its own and closes it, also where the case fails", async () => {
    const { runner, tests } = recordingRunner();
    const events: string[] = [];
    const makeHarness = async () => {
      events.push("made");
      return {
        close: async () => {
          events.push("closed");
        },
      };
    };
    const failing: SuiteCase<Counter> = { name: "fails", run: () => Promise.reject(new Error("promise broken")) };
    defineSuite<Counter>("store", [passing("passes"), failing])(runner, "memory", makeHarness);
    await tests.get("passes")?.run();
    await expect(tests.get("fails")?.run()).rejects.toThrow("promise broken");
    expect(events).toEqual(["made", "closed", "made", "closed"]);
  });

  it("lists a limited case with its reason instead of running it", async () => {
    const { runner, tests } = recordingRunner();
    const failing: SuiteCase<Counter> = { name: "fails", run: () => Promise.reject(new Error("was run")) };
    const limits = { fails: "one connection" };
    defineSuite<Counter>("store", [failing])(runner, "memory", async () => ({ close: async () => {} }), { limits });
    await tests.get("fails (limit: one connection)")?.run();
    await tests.get(LIMITS_TEST)?.run();
    expect([...tests.keys()]).toEqual([LIMITS_TEST, "fails (limit: one connection)"]);
  });

  it("fails for a limit that names no case", async () => {
    const { runner, tests } = recordingRunner();
    const limits = { renamed: "one connection" };
    const suite = defineSuite<Counter>("store", [passing("a")]);
    suite(runner, "memory", async () => ({ close: async () => {} }), { limits });
    await expect(tests.get(LIMITS_TEST)?.run()).rejects.toThrow("no such cases");
  });

  it("refuses two cases of one name", () => {
    expect(() => defineSuite<Counter>("store", [passing("a"), passing("a")])).toThrow("share a name");
  });
});
