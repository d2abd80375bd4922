import { describe, expect, it } from "vitest";
import { answer, cutAfter, cutBefore, raw } from "../support/hostile-server.ts";
import { CONTENT, expectOneAction, hostileWorld, problem } from "./support/hostile-client.ts";

const MAX_PAUSE_MS = 30_000;

/** Values that a server has no business to send, and those that look like it. */
const waits = [
  ...["NaN", "Infinity", "-5", "1e9", "2.5", "0x10", "soon", "", " ", "1, 2", "999999999999999999999999", "+3", "١٢"],
  ...["Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 99 Zzz 2026 99:99:99 GMT"],
  ...[
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "2027-01-01T00:00:00Z",
    "Sun, 06 Nov 1994 08:49:37",
  ],
];

describe("a Retry-After without sense", () => {
  it.each(waits)("ends in a pause that is bounded: %j", async (value) => {
    const world = await hostileWorld();
    const header = `retry-after: ${Buffer.from(value).toString("latin1")}\r\ncontent-length: 0\r\n\r\n`;
    world.plan(...[503, 429, 409].map((status) => raw(`HTTP/1.1 ${status} Later\r\n${header}`)));
    expect(await world.submit()).toMatchObject({ kind: "succeeded", replayed: false });
    expect(world.pauses).toHaveLength(3);
    for (const pauseMs of world.pauses) {
      expect(pauseMs).toBeGreaterThanOrEqual(0);
      expect(pauseMs).toBeLessThanOrEqual(MAX_PAUSE_MS);
    }
    expectOneAction(world);
    expect(world.executed).toHaveLength(1);
  });
});

const YEAR_MS = 31_556_952_000;

describe("a clock that jumps", () => {
  it.each([YEAR_MS, -YEAR_MS, 6_000, -6_000])(
    "by %i ms during the attempts makes no second key and no second execution",
    async (jump) => {
      let wallMs = 1_800_000_000_000;
      let steadyMs = 0;
      const pause = async (ms: number) => {
        steadyMs += ms;
        wallMs += ms + jump;
      };
      const world = await hostileWorld({ now: () => wallMs, monotonicMs: () => steadyMs, pause });
      world.plan(cutAfter, cutAfter);
      const result = await world.submit();
      // A year ahead, the retry window is over by the wall clock, which alone tells of a computer that slept.
      if (jump === YEAR_MS) expect(result).toMatchObject({ kind: "unknown", why: "window_over", sent: true });
      else expect(result).toMatchObject({ kind: "succeeded", replayed: true });
      expect(world.events).toContainEqual({ name: "order-42", kind: "warning", what: "clock_moved" });
      expectOneAction(world);
      expect(world.executed).toHaveLength(1);
    },
  );

  it.each([YEAR_MS, -YEAR_MS])(
    "by %i ms between making and sending gives up nothing that was never sent",
    async (jump) => {
      const world = await hostileWorld();
      await world.client.submission("order-42", { url: `${world.url}/things`, json: CONTENT });
      world.pass(jump);
      expect(await (await world.restarted().pending())[0]?.send()).toMatchObject({
        kind: "succeeded",
        replayed: false,
      });
      expectOneAction(world);
    },
  );

  it("back between two runs sends nothing that may have been carried out: nobody can tell what passed", async () => {
    const world = await hostileWorld({ retryWindowMs: 1 });
    world.plan(cutAfter);
    expect(await world.submit()).toMatchObject({ kind: "unknown", sent: true });
    world.pass(-YEAR_MS);
    const results = await world.restarted({ retryWindowMs: 600_000 }).resume();
    expect(results.get("order-42")).toMatchObject({ kind: "unknown", why: "retention_over", sent: true });
    expect(world.seen).toHaveLength(1);
    expectOneAction(world);
  });
});

describe("a server that forgets", () => {
  it("is asked no more once the time is over for which it said that it keeps answers", async () => {
    const world = await hostileWorld();
    world.plan(
      answer(503, { "idempotency-retention": "60" }),
      cutAfter,
      ...Array.from({ length: 50 }, () => cutBefore),
    );
    expect(await world.submit()).toMatchObject({ kind: "unknown", why: "retention_over", sent: true });
    expect(world.executed).toHaveLength(1);
    const asked = world.seen.length;
    world.pass(60_000);
    await world.forget();
    world.plan();
    for (const client of [world.client, world.restarted()]) {
      expect((await client.resume()).get("order-42")).toMatchObject({ kind: "unknown", why: "retention_over" });
    }
    expect(world.seen).toHaveLength(asked);
    expect(world.executed).toHaveLength(1);
    expectOneAction(world);
  });

  it.each(["0", "-1", "NaN", "Infinity", "1e3", "99999999999999999999", "", "60, 60"])(
    "does not run it twice whatever it says of its retention (%j)",
    async (retention) => {
      const world = await hostileWorld();
      world.plan(
        raw(`HTTP/1.1 503 Later\r\nidempotency-retention: ${retention}\r\ncontent-length: 0\r\n\r\n`),
        cutAfter,
      );
      const result = await world.submit();
      if (retention === "0") expect(result).toMatchObject({ kind: "unknown", why: "retention_over" });
      else expect(result).toMatchObject({ kind: "succeeded", replayed: true });
      expectOneAction(world);
    },
  );
});

describe("a form that was edited after its answer was lost", () => {
  it("is held until what was sent first is known, and then goes out under a key of its own", async () => {
    const world = await hostileWorld({ retryWindowMs: 1 });
    const url = `${world.url}/things`;
    world.plan(cutAfter);
    expect(await world.submit()).toMatchObject({ kind: "unknown", why: "window_over", sent: true });
    const edited = { url, json: { ...CONTENT, amount: 1300 } };
    const later = world.restarted({ retryWindowMs: 600_000 });
    expect(await later.submit("order-42", edited)).toEqual({ kind: "in_the_way", name: "order-42", settled: false });
    expect(world.seen).toHaveLength(1);
    expect(await (await later.pending())[0]?.send()).toMatchObject({ kind: "succeeded", replayed: true });
    expect(await later.submit("order-42", edited)).toEqual({ kind: "in_the_way", name: "order-42", settled: true });
    expect(await later.submit("order-43", edited)).toMatchObject({ kind: "succeeded", replayed: false });
    expect(world.seen.map(({ key }) => key === world.seen[0]?.key)).toEqual([true, true, false]);
    expect(world.executed).toEqual([JSON.stringify(CONTENT), JSON.stringify(edited.json)]);
  });

  it("goes out at once where the server has refused what was sent first", async () => {
    const world = await hostileWorld();
    world.plan(problem(422, { code: "amount_too_small" }));
    expect(await world.submit()).toMatchObject({
      kind: "refused",
      retry: "new_key",
      certain: true,
      code: "amount_too_small",
    });
    const edited = { url: `${world.url}/things`, json: { ...CONTENT, amount: 1300 } };
    expect(await world.client.submit("order-42", edited)).toMatchObject({ kind: "succeeded", replayed: false });
    expect(new Set(world.seen.map(({ key }) => key)).size).toBe(2);
    expect(world.executed).toEqual([JSON.stringify(edited.json)]);
  });
});
