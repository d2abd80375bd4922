import { describe, expect, it } from "vitest";
import { beginExecution, type Execution } from "../../lab/explore/execution.ts";
import { memoryBackend } from "../../lab/explore/memory.ts";
import { createExploration } from "../../lab/explore/search.ts";
import type { Budget, Deploy, Process, World } from "../../lab/explore/world.ts";
import { StoreFailure } from "../../src/core/store.ts";

/** Writes one row in a transaction of its own, and tells what it heard. */
const writer: Deploy = async (process) => ({
  async attempt(request) {
    try {
      await process.store.transaction(async (session) => {
        await session.tx.insert("row", { of: request });
        await session.moveSubject(
          new Uint8Array(32),
          { tenant: "t", source: "s", subject: "x" },
          BigInt(Date.UTC(2026)),
        );
      });
      return { kind: "final", text: "written" };
    } catch (error) {
      return { kind: "later", text: error instanceof StoreFailure ? error.kind : "threw" };
    }
  },
});

function worldOf(deploy: Deploy, budget: Partial<Budget> = {}, own: Partial<World> = {}): World {
  const clientOf = (name: string, via: string) =>
    ({ kind: "client", name, request: name, identity: name, payload: "", via: [via], attempts: 1 }) as const;
  return {
    name: "faults",
    about: "a toy",
    covers: [],
    budget,
    processes: { A: deploy, B: deploy },
    actors: [clientOf("Ann", "A"), clientOf("Bob", "B")],
    invariants: [],
    ...own,
  };
}

const begin = (world: World, reduces = true) => beginExecution({ world, seed: "1", backend: memoryBackend, reduces });

const labels = (execution: Execution) => execution.choices().map(({ label }) => label);

/** Takes choices by their names, and raises where there is none of that name. */
async function follow(execution: Execution, ...wanted: readonly string[]): Promise<void> {
  for (const label of wanted) {
    const choice = execution.choices().find((one) => one.label === label);
    if (choice === undefined) throw new Error(`No "${label}" among ${labels(execution).join(", ")}`);
    await execution.take(choice);
  }
}

const rows = (execution: Execution) => execution.view().rows("row").length;
const heard = (execution: Execution) =>
  execution.view().told.map(({ client, answer }) => `${client.name}: ${answer.text}`);
const TO_COMMIT = ["Ann asks A", "A inserts into row", "A moves the subject"];

describe("what may go wrong in a schedule", () => {
  it("a COMMIT whose answer is lost has its effect, and is told as unknown", async () => {
    const execution = await begin(worldOf(writer, { lost: 1 }));
    await follow(execution, ...TO_COMMIT, "A commits: its answer is lost");
    expect([rows(execution), heard(execution)]).toEqual([1, ["Ann: commit_unknown"]]);
    expect(execution.left).toMatchObject({ lost: 0 });
    await execution.end();
  });

  it("a COMMIT that never arrives has none, and is told the same", async () => {
    const execution = await begin(worldOf(writer, { refused: 1 }));
    await follow(execution, ...TO_COMMIT, "A commits: its COMMIT never arrives");
    expect([rows(execution), heard(execution)]).toEqual([0, ["Ann: commit_unknown"]]);
    await execution.end();
  });

  it("a COMMIT adrift holds its locks until it arrives, or is lost for good", async () => {
    for (const [end, count] of [
      ["arrives", 2],
      ["never arrives", 1],
    ] as const) {
      const execution = await begin(worldOf(writer, { adrift: 1 }));
      await follow(execution, ...TO_COMMIT, "A commits: its COMMIT is adrift");
      expect([rows(execution), heard(execution)]).toEqual([0, ["Ann: commit_unknown"]]);
      await follow(execution, "Bob asks B", "B inserts into row", "B moves the subject");
      expect(labels(execution)).not.toContain("B commits");
      await follow(execution, `the COMMIT of A: ${end}`, "B commits");
      expect(rows(execution)).toBe(count);
      await execution.end();
    }
  });

  it("a crash rolls back, lets go of locks, and answers nobody", async () => {
    const execution = await begin(worldOf(writer, { crashes: 1 }));
    await follow(execution, ...TO_COMMIT, "Bob asks B", "B inserts into row", "B moves the subject");
    expect(labels(execution)).not.toContain("B commits");
    await follow(execution, "A crashes", "B commits");
    expect([rows(execution), heard(execution)]).toEqual([1, ["Bob: written"]]);
    await execution.end();
  });

  it("a crash may leave its COMMIT under way", async () => {
    const execution = await begin(worldOf(writer, { crashes: 1 }));
    await follow(execution, ...TO_COMMIT, "A crashes, its COMMIT under way");
    expect(rows(execution)).toBe(0);
    await follow(execution, "the COMMIT of A: arrives");
    expect([rows(execution), heard(execution)]).toEqual([1, []]);
    await execution.end();
  });

  it("what a sleeping process has sent is carried out; it hears of it when it wakes, and its timers do not fire", async () => {
    const fired: number[] = [];
    const sleeper: Deploy = async (process, scene) => {
      process.clock.after(100, () => void fired.push(process.clock.monotonicMs()));
      return writer(process, scene);
    };
    const execution = await begin(worldOf(sleeper, { pauses: 1, ticks: 2 }));
    await follow(execution, ...TO_COMMIT, "A sleeps", "A commits");
    expect([rows(execution), heard(execution)]).toEqual([1, []]);
    await follow(execution, "time moves by 100 ms");
    expect(fired).toHaveLength(1);
    await follow(execution, "A wakes");
    expect([heard(execution), fired.length]).toEqual([["Ann: written"], 1]);
    await follow(execution, "A's timers fire");
    expect(fired).toHaveLength(2);
    await execution.end();
  });

  it("time goes no further than a pause may last, nor than the world says", async () => {
    const timer = (process: Process) => process.clock.after(500, () => {});
    const deploy: Deploy = async (process, scene) => {
      timer(process);
      return writer(process, scene);
    };
    const paused = await begin(worldOf(deploy, { pauses: 1, ticks: 2, longestPauseMs: 400 }));
    await follow(paused, "Ann asks A");
    await follow(paused, "A inserts into row", "A sleeps");
    expect(labels(paused).filter((label) => label.startsWith("time"))).toEqual([]);
    await paused.end();
    const ended = await begin(worldOf(deploy, { ticks: 2, untilMs: 400 }));
    expect(labels(ended).filter((label) => label.startsWith("time"))).toEqual([]);
    await ended.end();
  });

  it("a step that nobody else sees is taken at once, and only with reduction", async () => {
    const reduced = await begin(worldOf(writer, { crashes: 1 }));
    await follow(reduced, "Ann asks A");
    expect(labels(reduced)).toEqual(["A inserts into row"]);
    await reduced.end();
    const whole = await begin(worldOf(writer, { crashes: 1 }), false);
    await follow(whole, "Ann asks A");
    expect(labels(whole)).toEqual(["A inserts into row", "Bob asks B", "A crashes"]);
    await whole.end();
  });

  it("a client that never gets an end breaks the progress that is asked for; a declared end does not", async () => {
    const stubborn: Deploy = async () => ({ attempt: async () => ({ kind: "later", text: "busy" }) });
    const terms = (own: Partial<World>) => ({
      world: worldOf(stubborn, {}, { progressWithinMs: 60_000, ...own }),
      seed: "1",
      backend: memoryBackend,
      reduces: true,
    });
    const stuck = await createExploration(terms({})).until(1_000);
    expect(stuck.found).toMatchObject({ invariant: "a fair continuation ends", found: "Ann was told later (busy)" });
    expect(stuck.found?.then?.length).toBeGreaterThan(0);
    const declared = await createExploration(terms({ declaredEnd: () => null })).until(1_000);
    expect(declared).toMatchObject({ coverage: "complete", found: null });
  });

  it("a process whose start takes a step is refused: nothing could let it go on", async () => {
    const eager: Deploy = async (process, scene) => {
      await scene.step(process, { label: "begins", ways: [{ label: "", costs: null, perform: () => {} }] });
      return {};
    };
    await expect(begin(worldOf(eager))).rejects.toThrow("deploying A takes a step");
  });
});
