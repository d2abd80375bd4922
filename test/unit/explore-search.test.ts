import { describe, expect, it } from "vitest";
import type { ExecutionTerms } from "../../lab/explore/execution.ts";
import { memoryBackend } from "../../lab/explore/memory.ts";
import { replay } from "../../lab/explore/replay.ts";
import { Diverged, labelsDigest, parseSchedule, scheduleText } from "../../lab/explore/schedule.ts";
import { createExploration } from "../../lab/explore/search.ts";
import { followLabels, shorten } from "../../lab/explore/shorten.ts";
import type { Actor, Budget, Deploy, Invariant, Outside, World } from "../../lab/explore/world.ts";

/** One number outside that processes read and write: each use of it is a step. */
interface Counter {
  value: number;
}

const counters = new WeakMap<object, Counter>();

function counterOf(scene: object): Counter {
  const counter = counters.get(scene) ?? { value: 0 };
  counters.set(scene, counter);
  return counter;
}

const counterIn = (outside: Outside | null) => outside?.state() as Counter;

/** Reads, then writes one more: two of them at once lose an update. */
const naive: Deploy = async (process, scene) => {
  const counter = counterOf(scene);
  const plain = <T>(label: string, perform: () => T) =>
    scene.step(process, { label, ways: [{ label: "", costs: null, perform }] });
  return {
    async attempt() {
      const seen = await plain("reads", () => counter.value);
      await plain("writes", () => {
        counter.value = seen + 1;
      });
      return { kind: "final", text: "done" };
    },
  };
};

/** Takes so many steps that touch nothing. */
const steps =
  (count: number): Deploy =>
  async (process, scene) => ({
    async attempt() {
      for (let index = 1; index <= count; index++) {
        await scene.step(process, { label: `step ${index}`, ways: [{ label: "", costs: null, perform: () => {} }] });
      }
      return { kind: "final", text: "done" };
    },
  });

const client = (name: string, via: string): Actor => ({
  kind: "client",
  name,
  request: null,
  identity: name,
  payload: "",
  via: [via],
  attempts: 1,
});

const noLostUpdate: Invariant = {
  name: "no update is lost",
  when: "end",
  check: ({ outside, told }) => {
    const { value } = counterIn(outside);
    return value === told.length ? null : `${told.length} were told, the counter is ${value}`;
  },
};

function worldOf(deploy: Deploy, names: readonly string[], own: Partial<World> = {}): World {
  return {
    name: "toy",
    about: "a toy",
    covers: [],
    budget: {},
    outside: (scene) => ({ events: () => [], instants: () => [], state: () => ({ ...counterOf(scene) }) }),
    processes: Object.fromEntries(names.map((name) => [name, deploy])),
    actors: names.map((name) => client(`client ${name}`, name)),
    invariants: [],
    ...own,
  };
}

const termsOf = (world: World, reduces = true, seed = "1"): ExecutionTerms => {
  return { world, seed, backend: memoryBackend, reduces };
};
const PLENTY = 1_000_000;
const SHORTEN = { executions: 10_000, withinMs: 60_000 };

describe("the explorer", () => {
  it("finds a planted lost update, gives the shortest schedule, and replays it by its text", async () => {
    const terms = termsOf(worldOf(naive, ["A", "B", "C"], { invariants: [noLostUpdate] }));
    const { found } = await createExploration(terms).until(PLENTY);
    if (found === null) throw new Error("The lost update was not found.");
    const shortest = await shorten(terms, found, SHORTEN);
    expect(shortest.isShortest).toBe(true);
    // Everybody asks, reads and writes once, whatever the order: no schedule to the end is shorter.
    expect(shortest.labels).toHaveLength(9);
    const { schedule, labels } = shortest;
    const parsed = parseSchedule(scheduleText("toy", "1", schedule, labels));
    expect(parsed).toEqual({ world: "toy", seed: "1", schedule, digest: labelsDigest(labels) });
    const lines: string[] = [];
    const { violation } = await replay(terms, parsed, (line) => void lines.push(line));
    expect(violation).toMatchObject({ invariant: "no update is lost" });
    expect(lines.filter((line) => line.includes("reads"))).toHaveLength(3);
  });

  it("shortens a schedule with choices that are not needed", async () => {
    const broken: Invariant = {
      name: "A never writes",
      when: "always",
      check: ({ outside }) => (counterIn(outside).value > 0 ? "it wrote" : null),
    };
    const budget: Partial<Budget> = { pauses: 1, ticks: 1 };
    const terms = termsOf(worldOf(naive, ["A", "B"], { invariants: [broken], budget }));
    const labels = ["client A asks A", "client B asks B", "A sleeps", "B reads", "A wakes", "A reads", "A writes"];
    const found = { invariant: broken.name, found: "it wrote", schedule: [0, 0, 0, 0, 0, 0, 0], labels };
    const shortest = await shorten(terms, found, SHORTEN);
    expect(shortest.labels).toHaveLength(3);
    // Where there is no time for all of them, needless choices are left out one by one.
    const shorter = await shorten(terms, found, { executions: 0, withinMs: 60_000 });
    expect(shorter).toMatchObject({ isShortest: false, invariant: broken.name });
    expect(shorter.labels.length).toBeLessThan(labels.length);
  });

  it("follows a schedule by what its choices are called, past those that there are not", async () => {
    const terms = termsOf(worldOf(naive, ["A", "B"], { invariants: [noLostUpdate] }));
    const asks = ["client A asks A", "client B asks B"];
    const lost = [...asks, "A reads", "is no choice", "B reads", "A writes", "B writes"];
    const found = await followLabels(terms, lost);
    expect(found).toMatchObject({
      invariant: "no update is lost",
      labels: lost.filter((one) => one !== "is no choice"),
    });
    expect(await followLabels(terms, [...asks, "A reads", "A writes", "B reads", "B writes"])).toBeNull();
  });

  it("makes each order once: with no reduction as many schedules as there are orders", async () => {
    // Two processes with an asking and two steps each: 6! / (3! × 3!) orders.
    const explored = await createExploration(termsOf(worldOf(steps(2), ["A", "B"]), false)).until(PLENTY);
    expect(explored).toMatchObject({ coverage: "complete", schedules: 20, reduced: 0, longest: 6, found: null });
    // Three: 9! / (3! × 3! × 3!).
    const three = await createExploration(termsOf(worldOf(steps(2), ["A", "B", "C"]), false)).until(PLENTY);
    expect(three).toMatchObject({ coverage: "complete", schedules: 1_680, longest: 9 });
  });

  it("visits each state once with reduction: a grid of places, and one schedule for each way back into it", async () => {
    const explored = await createExploration(termsOf(worldOf(steps(2), ["A", "B"]))).until(PLENTY);
    // 4 × 4 places; those with two ways on are 3 × 3. Each of them adds a schedule to the first one.
    expect(explored).toMatchObject({ coverage: "complete", schedules: 10, states: 9, longest: 6 });
  });

  it("hides nothing by reduction: whatever is found without it is found with it", async () => {
    for (const names of [
      ["A", "B"],
      ["A", "B", "C"],
    ]) {
      const world = worldOf(naive, names, { invariants: [noLostUpdate] });
      for (const reduces of [true, false]) {
        const { found } = await createExploration(termsOf(world, reduces)).until(PLENTY);
        expect(found?.invariant).toBe("no update is lost");
      }
    }
    const sound = worldOf(naive, ["A"], { invariants: [noLostUpdate] });
    for (const reduces of [true, false]) {
      expect((await createExploration(termsOf(sound, reduces)).until(PLENTY)).found).toBeNull();
    }
  });

  it("counts the same for the same seed, also where a world is sampled", async () => {
    const world = worldOf(steps(4), ["A", "B", "C"], { budget: { crashes: 1, pauses: 1, ticks: 1 } });
    const counts = async (seed: string) => {
      const { seconds: _, ...rest } = await createExploration(termsOf(world, true, seed)).until(120);
      return rest;
    };
    const first = await counts("7");
    expect(first).toMatchObject({ coverage: "sampled", schedules: 120 });
    expect(await counts("7")).toEqual(first);
    expect(await counts("8")).not.toEqual(first);
  });

  it("goes on where it stopped, to the same end as in one go", async () => {
    const world = worldOf(steps(3), ["A", "B"]);
    const whole = await createExploration(termsOf(world, false)).until(PLENTY);
    const parts = createExploration(termsOf(world, false));
    await parts.until(7);
    expect(await parts.until(PLENTY)).toMatchObject({ coverage: "complete", states: whole.states });
  });

  it("says that a world is not deterministic, and that a schedule does not fit", async () => {
    let runs = 0;
    const moody: Deploy = async (process, scene) => steps(runs++ > 4 ? 1 : 3)(process, scene);
    await expect(createExploration(termsOf(worldOf(moody, ["A", "B"]), false)).until(PLENTY)).rejects.toThrow(Diverged);
    const terms = termsOf(worldOf(steps(1), ["A"]));
    await expect(replay(terms, { schedule: [0, 5], digest: "" })).rejects.toThrow(Diverged);
    await expect(replay(terms, { schedule: [0, 0], digest: "00000000" })).rejects.toThrow(Diverged);
  });
});
