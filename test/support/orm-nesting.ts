import { expect } from "vitest";
import { type OrmCases, raised } from "./orm-commits.ts";
import type { OrmWorld } from "./orm-world.ts";

type Inside = (tx: unknown) => Promise<void>;

/** Where the library has no nested transactions: refused in clear words, and nothing is stored or spoilt. */
async function refused({ orm, run, rows, states }: OrmWorld, key: string, refusal: RegExp): Promise<void> {
  const inside = async () => expect.unreachable("it must be refused");
  expect(String(await raised(run(`${key}-refused`, (tx) => orm.nested(tx, inside))))).toMatch(refusal);
  expect(await rows("booking", `${key}-refused`)).toBe(0);
  expect(await states(`${key}-refused`)).toEqual([]);
  const caught = async (tx: unknown) => void (await raised(orm.nested(tx, inside)));
  expect((await run(`${key}-caught`, caught)).kind).toBe("completed");
  expect(await rows("booking", `${key}-caught`)).toBe(1);
}

/** A case for libraries with nested transactions; without, the refusal is what is checked. */
const nested = (key: string, check: (world: OrmWorld, key: string) => Promise<void>) => async (world: OrmWorld) => {
  const { refusal } = world.orm;
  await (refusal === undefined ? check(world, key) : refused(world, key, refusal));
};

/** Transactions inside the transaction. */
export const nesting: OrmCases = {
  "commits what a nested transaction wrote with the rest": nested("nests", async ({ orm, run, rows, states }, key) => {
    const inside: Inside = async (tx) => void (await orm.insert(tx, "seat", key));
    expect((await run(key, (tx) => orm.nested(tx, inside))).kind).toBe("completed");
    expect([await rows("seat", key), await rows("booking", key), await states(key)]).toEqual([1, 1, ["succeeded"]]);
  }),

  "rolls a nested transaction back alone, and goes on": nested("unnests", async ({ orm, run, rows, states }, key) => {
    const inside: Inside = async (tx) => {
      await orm.insert(tx, "seat", key);
      throw new Error("inner");
    };
    const result = await run(key, async (tx) => {
      expect(await raised(orm.nested(tx, inside))).toMatchObject({ message: "inner" });
      await orm.insert(tx, "seat", `${key} after`);
    });
    expect(result.kind).toBe("completed");
    expect([await rows("seat", key), await rows("seat", `${key} after`)]).toEqual([0, 1]);
    expect([await rows("booking", key), await states(key)]).toEqual([1, ["succeeded"]]);
  }),

  "goes on after a unique violation inside a nested transaction": nested("probes", async ({ orm, run, rows }, key) => {
    const inside: Inside = async (tx) => void (await orm.insert(tx, "seat", key));
    const result = await run(key, async (tx) => {
      await orm.insert(tx, "seat", key);
      await raised(orm.nested(tx, inside));
    });
    expect(result.kind).toBe("completed");
    expect([await rows("seat", key), await rows("booking", key)]).toEqual([1, 1]);
  }),

  "rolls back all of it when it throws after a nested transaction": nested(
    "throws-nested",
    async ({ orm, run, rows, states }, key) => {
      const inside: Inside = async (tx) => void (await orm.insert(tx, "seat", key));
      const failing = run(key, async (tx) => {
        await orm.nested(tx, inside);
        throw new Error("outer");
      });
      expect(await raised(failing)).toMatchObject({ message: "outer" });
      expect([await rows("seat", key), await rows("booking", key), await states(key)]).toEqual([0, 0, []]);
    },
  ),
};
