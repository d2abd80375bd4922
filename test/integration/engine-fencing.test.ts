import { assertOwned, type Clock, type RunKind, systemClock } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { passTime, query, testPool } from "../support/postgres.ts";
import { answerOf, type OrdersOptions, orders } from "./support/orders.ts";
import { effects, entries, ordersDatabase } from "./support/rows.ts";

const LONG_AGO_MS = 10 * 60_000;

let url: string;

beforeAll(async () => {
  url = await ordersDatabase();
});

type Client = pg.PoolClient;
const instance = (more: Partial<OrdersOptions<Client>> = {}) => orders({ driver: fromPg(testPool(url)), ...more });
const entryOf = async (key: string) => (await entries(url)).find((entry) => entry.key === key);

/** An instance that blocks at one place or engine point, once. */
async function holding(at: string, more: Partial<OrdersOptions<Client>> = {}) {
  const entered = gate();
  const finish = gate();
  const hold = async (reached: string) => {
    if (reached !== at) return;
    entered.open();
    await finish.promise;
  };
  const { once, ...rest } = more;
  const { run } = await instance({ ...rest, at: hold, once: { ...once, onPoint: hold } });
  return { run, entered: entered.promise, finish: finish.open };
}

/** A clock on which a paused process believes for ever that no time has passed, and renews nothing. */
const STOPPED: Clock = { ...systemClock, monotonicMs: () => 0, after: () => () => {} };

describe("the fence", () => {
  it("is random: 16 bytes, another one at every takeover, while the attempts count up (V9)", async () => {
    const key = "fences";
    const fences: unknown[] = [];
    const abandoned: (() => void)[] = [];
    for (let attempt = 1; attempt <= 5; attempt++) {
      const dying = await holding("between");
      void dying.run("phases", key);
      await dying.entered;
      abandoned.push(dying.finish);
      const entry = await entryOf(key);
      expect(entry).toMatchObject({ attempt, fence: expect.stringMatching(/^[0-9a-f]{32}$/) });
      fences.push(entry?.fence);
      await passTime(url, LONG_AGO_MS);
    }
    expect(new Set(fences).size).toBe(5);
    const { run } = await instance();
    expect((await run("phases", key)).kind).toBe("completed");
    for (const finish of abandoned) finish();
    expect(await effects(url, key)).toHaveLength(1);
  });

  // The local deadline is asleep here: the database alone must refuse.
  it.each([
    "phase:placed:entered",
    "record_phase:placed:before",
    "between",
    "phase:complete:entered",
    "complete:before",
  ])("refuses an owner that slept at %s while another one took over and finished", async (place) => {
    const key = `asleep-${place}`;
    const asleep = await holding(place, { once: { clock: STOPPED }, sends: false });
    const zombie = asleep.run("phases", key);
    await asleep.entered;
    await passTime(url, LONG_AGO_MS);
    const { run } = await instance();
    const taken = await run("phases", key);
    expect(taken.kind).toBe("completed");
    asleep.finish();
    expect((await zombie).kind).toBe("lease_lost");
    expect(await effects(url, key)).toHaveLength(1);
    expect(answerOf(await run("phases", key))).toBe(answerOf(taken));
  });

  it.each([
    ["record_phase:placed:before", "phase"],
    ["complete:before", "between"],
  ])("refuses an owner that slept at %s while another one is still at work (at %s)", async (place, at) => {
    const key = `asleep-${place}-working`;
    const asleep = await holding(place, { once: { clock: STOPPED }, sends: false });
    const zombie = asleep.run("phases", key);
    await asleep.entered;
    await passTime(url, LONG_AGO_MS);
    const successor = await holding(at, { sends: false });
    const taken = successor.run("phases", key);
    await successor.entered;
    asleep.finish();
    expect((await zombie).kind).toBe("lease_lost");
    successor.finish();
    expect((await taken).kind).toBe("completed");
    expect(await effects(url, key)).toHaveLength(1);
  });

  it("stops an owner that slept when it sends a message which its successor has sent", async () => {
    const key = "asleep-message";
    const asleep = await holding("phase:complete:entered", { once: { clock: STOPPED } });
    const zombie = asleep.run("phases", key);
    await asleep.entered;
    await passTime(url, LONG_AGO_MS);
    const { run } = await instance();
    const taken = await run("phases", key);
    asleep.finish();
    // Somebody was faster: the client comes back with the same key, and gets the answer.
    expect((await zombie).kind).toBe("contention");
    expect(answerOf(await run("phases", key))).toBe(answerOf(taken));
    const sent = `SELECT FROM oncekey.outbox WHERE payload::jsonb ->> 'order' = '${key}'`;
    expect(await query(url, sent)).toHaveLength(1);
    expect(await effects(url, key)).toHaveLength(1);
  });

  it("reaches a captured handler's own transaction where it asks, and only there", async () => {
    const key = "asserted";
    const pool = testPool(url);
    const slept = gate();
    const goOn = gate();
    const at: OrdersOptions<Client>["at"] = async (place) => {
      if (place !== "capture") return;
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        await client.query("INSERT INTO effect VALUES ('refund', $1, 1, 1)", [key]);
        slept.open();
        await goOn.promise;
        await assertOwned(client);
        await client.query("COMMIT");
      } catch (error) {
        await client.query("ROLLBACK");
        throw error;
      } finally {
        client.release();
      }
    };
    const asleep = await instance({ at, once: { clock: STOPPED } });
    const zombie = asleep.run("capture", key);
    await slept.promise;
    await passTime(url, LONG_AGO_MS);
    const { run } = await instance();
    expect((await run("capture", key)).kind).toBe("unknown");
    goOn.open();
    expect((await zombie).kind).toBe("lease_lost");
    expect((await effects(url, key)).map(({ kind }) => kind)).toEqual(["capture"]);
  });
});

describe("retention", () => {
  it("counts from completion, not from the claim: a retry right after a long run is replayed (V24)", async () => {
    const key = "long-run";
    const slow = await holding("between", { once: { clock: STOPPED } });
    const first = slow.run("phases", key);
    await slow.entered;
    // Longer than the whole retention lies between claim and completion.
    await passTime(url, 25 * 3_600_000);
    slow.finish();
    expect((await first).kind).toBe("completed");
    expect(await entryOf(key)).toMatchObject({ kept: true });
    const { run } = await instance();
    expect(answerOf(await run("phases", key))).toBe(answerOf(await first));
    expect((await effects(url, key)).length).toBe(1);
  });
});

describe("another run kind under the same operation name (V17, V18)", () => {
  const LEFT = ["phases", "capture"] as const;
  const pairs = LEFT.flatMap((left) =>
    (["transaction", "phases", "capture"] as const)
      .filter((kind) => kind !== left)
      .map((kind) => [left, kind] as const),
  );
  const only = (kind: RunKind) => ({ name: "orders", kinds: [kind] });
  const bound = { bound: true, waitMs: 0 };

  it.each(pairs)(
    "never takes a lapsed %s entry over as %s: it runs nothing, and the slow owner still counts",
    async (left, kind) => {
      const key = `${left}-then-${kind}`;
      const owner = await holding(left === "phases" ? "between" : "capture", only(left));
      const slow = owner.run(left, key, bound);
      await owner.entered;
      const other = await instance(only(kind));
      expect((await other.run(kind, key, bound)).kind).toBe("busy");
      await passTime(url, LONG_AGO_MS);
      expect((await other.run(kind, key, bound)).kind).toBe("unknown");
      expect(await entryOf(key)).toMatchObject({ run_kind: left, attempt: 1 });
      owner.finish();
      expect((await slow).kind).toBe("completed");
      expect(answerOf(await other.run(kind, key, bound))).toBe(answerOf(await slow));
      expect((await effects(url, key)).map((row) => row.kind)).toEqual([left]);
    },
  );

  it.each(["transaction", "capture"] as const)(
    "never takes over as %s what phases code gave back after a throw",
    async (kind) => {
      const key = `given-back-then-${kind}`;
      const at = (place: string) => {
        if (place === "between") throw new Error("boom");
      };
      const failing = await instance({ ...only("phases"), at });
      await expect(failing.run("phases", key, bound)).rejects.toThrow("boom");
      expect(await entryOf(key)).toMatchObject({ recovery_point: "placed", lapsed: true });
      const other = await instance(only(kind));
      expect((await other.run(kind, key, bound)).kind).toBe("unknown");
      const repaired = await instance(only("phases"));
      expect((await repaired.run("phases", key, bound)).kind).toBe("completed");
      expect(await effects(url, key)).toHaveLength(1);
    },
  );
});
