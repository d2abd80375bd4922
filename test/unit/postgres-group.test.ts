import { afterEach, describe, expect, it, vi } from "vitest";
import { type Groupable, grouped } from "../../src/stores/postgres/group.ts";
import { type Gate, gate } from "../support/gate.ts";

const LIMITS = { maxSize: 3, maxDelayMs: 10, maxBytes: 100 };

class Refused extends Error {}
class Impossible extends Refused {}

interface Sent {
  readonly what: string | readonly string[];
  readonly answered: Gate;
  failure?: Error;
}

/** Requests that are answered in capitals when the test says so; a name of digits weighs as much as it says. */
function desk(limits = LIMITS, more: Partial<Groupable<string, string>> = {}) {
  const sent: Sent[] = [];
  const answer = async (what: string | readonly string[]) => {
    const one: Sent = { what, answered: gate() };
    sent.push(one);
    await one.answered.promise;
    if (one.failure !== undefined) throw one.failure;
  };
  const ask = grouped<string, string>(
    {
      async alone(member) {
        await answer(member);
        return member.toUpperCase();
      },
      async together(members) {
        await answer(members);
        return members.map((member) => () => member.toUpperCase());
      },
      weigh: (member) => Number(member) || 1,
      isUndone: (error) => error instanceof Refused,
      isImpossible: (error) => error instanceof Impossible,
      failure: (error) => new Error(`told: ${(error as Error).message}`),
      ...more,
    },
    limits,
  );
  return {
    ask,
    what: () => sent.map(({ what }) => what),
    async answer(index: number, failure?: Error) {
      const one = sent[index] as Sent;
      if (failure !== undefined) one.failure = failure;
      one.answered.open();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("requests of one kind", () => {
  it("go alone and at once where none is under way, one after the other", async () => {
    const { ask, what, answer } = desk();
    for (const [index, name] of ["a", "b"].entries()) {
      const asked = ask(name);
      expect(what()).toHaveLength(index + 1);
      await answer(index);
      expect(await asked).toBe(name.toUpperCase());
    }
    expect(what()).toEqual(["a", "b"]);
  });

  it("gather while one is under way, go together when it is answered, and get their own answers", async () => {
    const { ask, what, answer } = desk();
    const asked = ["a", "b", "c"].map(ask);
    expect(what()).toEqual(["a"]);
    await answer(0);
    expect(what()).toEqual(["a", ["b", "c"]]);
    await answer(1);
    expect(await Promise.all(asked)).toEqual(["A", "B", "C"]);
  });

  it("go in the form of a lone one where only one has gathered", async () => {
    const { ask, what, answer } = desk();
    const asked = ["a", "b"].map(ask);
    await answer(0);
    expect(what()).toEqual(["a", "b"]);
    await answer(1);
    expect(await Promise.all(asked)).toEqual(["A", "B"]);
  });

  it("go on together when the one before fails, which is nobody else's failure", async () => {
    const { ask, what, answer } = desk();
    const [first, ...others] = ["a", "b", "c"].map(ask);
    const failed = expect(first).rejects.toThrow("lost");
    await answer(0, new Error("lost"));
    await failed;
    expect(what()).toEqual(["a", ["b", "c"]]);
    await answer(1);
    expect(await Promise.all(others)).toEqual(["B", "C"]);
  });

  it("do not wait for the one before when there are enough of them", () => {
    const { ask, what } = desk();
    for (const name of ["a", "b", "c", "d", "e"]) void ask(name);
    expect(what()).toEqual(["a", ["b", "c", "d"]]);
  });

  it("wait no longer for the one before than the longest delay", () => {
    vi.useFakeTimers();
    const { ask, what } = desk();
    void ask("a");
    void ask("b");
    vi.advanceTimersByTime(9);
    void ask("c");
    expect(what()).toEqual(["a"]);
    vi.advanceTimersByTime(1);
    expect(what()).toEqual(["a", ["b", "c"]]);
    void ask("d");
    vi.advanceTimersByTime(10);
    expect(what()).toEqual(["a", ["b", "c"], "d"]);
  });

  it("weigh no more together than the limit, and what is heavier by itself goes alone and at once", async () => {
    const { ask, what, answer } = desk({ ...LIMITS, maxSize: 10 });
    for (const name of ["a", "60", "101", "40", "1", "50"]) void ask(name);
    expect(what()).toEqual(["a", "101"]);
    await answer(0);
    expect(what()).toEqual(["a", "101", ["60", "40"], ["1", "50"]]);
  });
});

describe("a group that fails", () => {
  it("and has done nothing lets each member ask alone, with its own answer or error", async () => {
    const { ask, what, answer } = desk();
    const [first, second, third] = ["a", "b", "c"].map(ask);
    await answer(0);
    await answer(1, new Refused("a check"));
    expect(what()).toEqual(["a", ["b", "c"], "b", "c"]);
    const failed = expect(second).rejects.toThrow("its own");
    await answer(2, new Error("its own"));
    await answer(3);
    await failed;
    expect(await Promise.all([first, third])).toEqual(["A", "C"]);
  });

  it("and may have done it all gives each member that failure, and asks nothing again", async () => {
    const { ask, what, answer } = desk();
    const [, ...members] = ["a", "b", "c"].map(ask);
    await answer(0);
    const failed = Promise.all(members.map((one) => expect(one).rejects.toThrow("told: lost")));
    await answer(1, new Error("lost"));
    await failed;
    expect(what()).toEqual(["a", ["b", "c"]]);
  });

  it("because there are no groups here is the last one", async () => {
    const { ask, what, answer } = desk();
    for (const name of ["a", "b", "c"]) void ask(name);
    await answer(0);
    await answer(1, new Impossible("not known"));
    void ask("d");
    void ask("e");
    expect(what()).toEqual(["a", ["b", "c"], "b", "c", "d", "e"]);
  });
});

describe("a group that is answered", () => {
  it("may send single members on to ask alone", async () => {
    const { ask, what, answer } = desk(LIMITS, { together: async () => [() => "shared", "alone"] });
    const [, second, third] = ["a", "b", "c"].map(ask);
    await answer(0);
    expect(await second).toBe("shared");
    expect(what()).toEqual(["a", "c"]);
    await answer(1);
    expect(await third).toBe("C");
  });

  it("fails only the member whose share cannot be read", async () => {
    const unreadable = () => {
      throw new Error("unreadable");
    };
    const { ask, answer } = desk(LIMITS, { together: async () => [unreadable, () => "shared"] });
    const [, second, third] = ["a", "b", "c"].map(ask);
    const failed = expect(second).rejects.toThrow("unreadable");
    await answer(0);
    await failed;
    expect(await third).toBe("shared");
  });
});
