import { OncekeyError } from "oncekey";
import { expect } from "vitest";
import { answerOf, type OrmWorld, times } from "./orm-world.ts";

/** A sentence about behaviour, and the check of it. */
export type OrmCases = Readonly<Record<string, (world: OrmWorld) => Promise<void>>>;

/** The error that a promise rejects with. */
export const raised = (failing: Promise<unknown>) =>
  failing.then(
    () => expect.unreachable("it must reject"),
    (error: unknown) => error,
  );

/** The first run of a key leaves nothing behind, the second is as good as new. */
async function leftNothing({ rows, states, run }: OrmWorld, key: string): Promise<void> {
  expect(await rows("booking", key)).toBe(0);
  expect(await states(key)).toEqual([]);
  expect((await run(key)).kind).toBe("completed");
  expect(await rows("booking", key)).toBe(1);
}

const endings = ["COMMIT", "ROLLBACK"].map((ending): [string, (world: OrmWorld) => Promise<void>] => [
  `says so when business code ends the transaction by ${ending}`,
  async (world) => {
    const { orm, run } = world;
    const key = `ended-by-${ending}`;
    const failing = run(
      key,
      times(1, (tx) => orm.execute(tx, ending)),
    );
    expect(await raised(failing)).toMatchObject({ code: "oncekey_transaction_lost" });
    expect(await world.states(key)).toEqual([]);
  },
]);

const reruns = ["40001", "40P01"].map((state): [string, (world: OrmWorld) => Promise<void>] => [
  `runs again what met ${state} in a write of the ORM`,
  async ({ run, rows, orm }) => {
    const key = `meets-${state}`;
    let tries = 0;
    const result = await run(key, async (tx) => {
      tries += 1;
      await orm.insert(tx, "booking", `refuse ${state}`);
    });
    expect([result.kind, tries]).toEqual(["completed", 3]);
    expect(await rows("booking", key)).toBe(1);
    expect(await rows("booking", `refuse ${state}`)).toBe(1);
  },
]);

/** Rows and entry: both or neither. */
export const committing: OrmCases = {
  "commits its rows and the entry together, and replays the answer": async ({ orm, run, rows, states }) => {
    const seat = "seat of commits";
    const first = await run("commits", (tx) => orm.insert(tx, "seat", seat));
    expect(first.kind).toBe("completed");
    expect(answerOf(await run("commits"))).toBe(answerOf(first));
    expect([await rows("booking", "commits"), await rows("seat", seat)]).toEqual([1, 1]);
    expect(await states("commits")).toEqual(["succeeded"]);
  },

  "rolls rows and entry back when it throws, and raises its error as it is": async (world) => {
    const thrown = Object.assign(new Error("of the business"), { code: "not_sql" });
    const boom = () => Promise.reject(thrown);
    expect(await raised(world.run("throws", times(1, boom)))).toBe(thrown);
    await leftNothing(world, "throws");
  },

  "keeps a refusal without its rows": async ({ refuse, rows, states }) => {
    const result = await refuse("refuses");
    expect(result).toMatchObject({ kind: "completed", outcome: { status: 422 } });
    expect(await refuse("refuses")).toMatchObject({ kind: "replayed", outcome: { status: 422 } });
    expect(await rows("booking", "refuses")).toBe(0);
    expect(await states("refuses")).toEqual(["failed"]);
  },

  "leaves a unique violation of the business to the business": async (world) => {
    const { orm } = world;
    let seen: unknown;
    const twice = times(1, async (tx) => {
      await orm.insert(tx, "seat", "taken-twice");
      await orm.insert(tx, "seat", "taken-twice").catch((error: unknown) => {
        seen = error;
        throw error;
      });
    });
    const error = await raised(world.run("takes-twice", twice));
    expect(error).toBe(seen);
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(OncekeyError);
    expect(await world.rows("seat", "taken-twice")).toBe(0);
    await leftNothing(world, "takes-twice");
  },

  "says so when business code swallowed an SQL error": async (world) => {
    const { orm } = world;
    const swallow = times(1, async (tx) => void (await orm.execute(tx, "SELECT 1 / 0").catch(() => {})));
    expect(await raised(world.run("swallows", swallow))).toMatchObject({ code: "oncekey_transaction_aborted" });
    await leftNothing(world, "swallows");
  },

  "is contention, with nothing stored, when a lock of the business is never gained": async (world) => {
    const { orm, run } = world;
    let result: unknown;
    await orm.driver.transaction(async (holder) => {
      await orm.execute(holder, "LOCK TABLE seat");
      result = await run(
        "waits",
        times(99, async (tx) => {
          await orm.execute(tx, "SET LOCAL lock_timeout = 20");
          await orm.insert(tx, "seat", "never gained");
        }),
      );
    });
    expect(result).toMatchObject({ kind: "contention" });
    expect(await world.states("waits")).toEqual([]);
    expect(await world.rows("booking", "waits")).toBe(0);
  },

  "passes statements of ours on as they are, and shows no parameter where they fail": async ({ orm }) => {
    const [row] = await orm.driver.run(`SELECT '?' || ' :a ?? \\? $2' AS text, '{"a":1}'::jsonb ? $1::text AS has`, [
      "a",
    ]);
    expect(row).toEqual({ text: "? :a ?? \\? $2", has: true });
    const secret = "known-to-nobody";
    const twice = "INSERT INTO seat (id) VALUES ($1::text), ($1::text)";
    const alone = () => orm.driver.run(twice, [secret]);
    const inside = () => orm.driver.transaction((tx) => orm.driver.run(twice, [secret], tx));
    for (const fail of [alone, inside]) {
      const error = (await raised(fail())) as Error;
      expect(error).toMatchObject({ code: "23505" });
      expect(`${error.message} ${error.stack}`).not.toContain(secret);
    }
  },

  ...Object.fromEntries(endings),
  ...Object.fromEntries(reruns),
};
