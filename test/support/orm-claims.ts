import { expect } from "vitest";
import type { OrmCases } from "./orm-commits.ts";
import { answerOf, type OrmWorld, times } from "./orm-world.ts";

/** So many calls at the same time, spread over the keys and over several instances. */
async function race({ runOn, rows, states }: OrmWorld, keys: readonly string[], calls: number): Promise<void> {
  const results = await Promise.all(
    Array.from({ length: calls }, async (_, index) => {
      const key = keys[index % keys.length] as string;
      return { key, result: await runOn(Math.floor(index / keys.length), key) };
    }),
  );
  for (const key of keys) {
    const mine = results.filter((one) => one.key === key).map(({ result }) => result);
    expect(mine.filter(({ kind }) => kind === "completed")).toHaveLength(1);
    expect(mine.filter(({ kind }) => kind === "replayed")).toHaveLength(calls / keys.length - 1);
    expect(new Set(mine.map(answerOf)).size).toBe(1);
    expect([await rows("booking", key), await states(key)]).toEqual([1, ["succeeded"]]);
  }
}

/** One owner a key. */
export const claiming: OrmCases = {
  "gives a thousand claims of one key one owner": (world) => race(world, ["one-of-a-thousand"], 1_000),

  "gives a thousand claims of twenty keys one owner each": (world) =>
    race(
      world,
      Array.from({ length: 20 }, (_, index) => `one-of-fifty-${index}`),
      1_000,
    ),

  "answers with the other's outcome when its own last insert meets a row that slipped in": async (world) => {
    const { run, rows, admin } = world;
    const key = "slipped-in";
    const theirs = await run(key);
    await admin(`CREATE TABLE other AS SELECT * FROM oncekey.entry WHERE key = '${key}'`);
    await admin(`DELETE FROM oncekey.entry WHERE key = '${key}'; DELETE FROM booking WHERE id = '${key}'`);
    let ran = 0;
    const slipIn = async () => {
      ran += 1;
      await admin("INSERT INTO oncekey.entry SELECT * FROM other");
    };
    const result = await run(key, slipIn);
    expect([result.kind, ran, await rows("booking", key)]).toEqual(["replayed", 1, 0]);
    expect(answerOf(result)).toBe(answerOf(theirs));
  },
};

/** Connections that break. */
export const losing: OrmCases = {
  "stores nothing when the connection is lost before COMMIT, and runs at the next call": async (world) => {
    const { orm, run, admin, rows, states } = world;
    const cut = times(1, async (tx) => {
      const [server] = await orm.driver.run("SELECT pg_backend_pid()::int AS pid", [], tx);
      await admin(`SELECT pg_terminate_backend(${server?.pid}, 5000)`);
      await orm.insert(tx, "seat", "never sat on");
    });
    expect((await run("cut", cut)).kind).toBe("store_unavailable");
    expect([await rows("booking", "cut"), await states("cut")]).toEqual([0, []]);
    expect((await run("cut")).kind).toBe("completed");
    expect(await rows("booking", "cut")).toBe(1);
  },

  "finds out what became of a COMMIT whose answer was lost, and never guesses": async (world) => {
    const { run, rows, loseNextCommitAnswer } = world;
    const first = await run("lost-answer", async () => loseNextCommitAnswer());
    // The look-up after the loss may meet a broken connection itself; then nothing is claimed.
    expect(["completed", "commit_unknown"]).toContain(first.kind);
    const retry = await run("lost-answer");
    expect(retry.kind).toBe("replayed");
    if (first.kind === "completed") expect(answerOf(first)).toBe(answerOf(retry));
    expect(await rows("booking", "lost-answer")).toBe(1);
  },
};
