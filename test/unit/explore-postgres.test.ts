import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { worldNamed } from "../../lab/explore/job.ts";
import { comparable } from "../../lab/explore/postgres/compare.ts";
import { type House, openHouse } from "../../lab/explore/postgres/house.ts";
import { driveBoth } from "../../lab/explore/postgres/lockstep.ts";
import { BOTH_END, BOTH_MOVE, following, mover, moversWorld } from "../../lab/explore/postgres/movers.ts";
import type { Deploy, Process } from "../../lab/explore/world.ts";

describe("schedules on both stores", () => {
  let house: House;
  beforeAll(async () => {
    house = await openHouse("plain");
  });
  afterAll(() => house.close());

  it("waits for a lock in PostgreSQL where the memory store waits, and goes on when it is free", async () => {
    const pick = following(...BOTH_MOVE, ...BOTH_END);
    const driven = await driveBoth(house, moversWorld(), "1", pick);
    expect(driven).toMatchObject({ difference: null, waits: 1 });
    expect(driven.labels).toHaveLength(10);
  });

  it("rolls a crashed process back in both, and moves both clocks", async () => {
    const crash = following(...BOTH_MOVE, "A crashes", "B commits", "B asks for the time");
    const driven = await driveBoth(house, moversWorld(), "1", crash);
    expect(driven).toMatchObject({ difference: null, waits: 1 });
    const timer = (process: Process) => process.clock.after(1_234, () => {});
    const timed: Deploy = async (process, scene) => {
      timer(process);
      return mover(process, scene);
    };
    const tick = following("Ann asks A", "A inserts into row", "A moves the subject", "time moves by 1234 ms");
    expect(await driveBoth(house, moversWorld(timed), "1", tick)).toMatchObject({ difference: null });
    const { rows } = await house.observer.query("SELECT explored.clock_timestamp() AS at");
    expect(rows[0].at.toISOString()).toBe("2026-01-01T00:00:01.234Z");
  });

  it("tells where the two differ", async () => {
    let made = 0;
    const moody: Deploy = async (process, scene) => {
      const mine = made++;
      return {
        ...(await mover(process, scene)),
        attempt: () => process.store.clockMs().then(() => ({ kind: "final", text: `made as number ${mine}` })),
      };
    };
    const { difference } = await driveBoth(
      house,
      moversWorld(moody),
      "1",
      following("Ann asks A", "A asks for the time"),
    );
    expect(difference).toMatch(/^after "A asks for the time": told: memory .*number 0.*PostgreSQL .*number 2/);
  });

  it("compares tokens by their order and instants to a hundredth of a millisecond", () => {
    const [one, other] = [comparable(), comparable()];
    const token = (byte: number) => new Uint8Array(16).fill(byte);
    expect(one.text([token(1), token(2), token(1)])).toBe(other.text([token(7), token(9), token(7)]));
    expect(one.text([token(2), token(1)])).not.toBe(other.text([token(7), token(9)]));
    expect(one.text({ b: 1.001, a: undefined, c: 2n })).toBe(other.text({ c: 2n, b: 1.0014 }));
    expect(one.text({ b: 1 })).not.toBe(other.text({ b: 1.02 }));
    expect(one.text(new Uint8Array([1]))).not.toBe(other.text(new Uint8Array([2])));
  });
});

describe("schedules on the partitioned layout", () => {
  let house: House;
  beforeAll(async () => {
    house = await openHouse("partitioned");
  });
  afterAll(() => house.close());

  const drive = (...labels: string[]) => driveBoth(house, worldNamed("v17"), "1", following(...labels));

  it("refuses transaction code the outcome of an identity that phases code has claimed meanwhile (V23)", async () => {
    const begun = ["Ann asks A", "Bob asks B", "A takes the locks", "B looks", "A looks", "A inserts into effect"];
    const claimed = await drive(...begun, "B claims", "A inserts the finished entry", "B enters");
    expect(claimed).toMatchObject({ difference: null, apart: 0 });
    expect(claimed.labels).toHaveLength(9);
  });

  it("makes a claim wait for an outcome that is not committed, then refuses it (V23)", async () => {
    const begun = ["Bob asks B", "Ann asks A", "A takes the locks", "A looks", "A inserts into effect", "B looks"];
    const end = ["A inserts the finished entry", "B claims", "A commits", "time moves by 3 ms", "B looks"];
    const stored = await drive(...begun, ...end);
    expect(stored).toMatchObject({ difference: null, waits: 1, apart: 1 });
    expect(stored.labels).toHaveLength(11);
  });
});
