import { type MemoryStore, memoryStore } from "oncekey/memory";
import { expectOnce, fakeClock, faultyProvider, faultyStore, forEachCrashPoint, withDuplicates } from "oncekey/testing";
import { expect, test } from "vitest";
import { chargeSteps, chargesApp } from "./charges.ts";

const request = { path: "/charges", body: { amount: 5 } };

/** What outlives a process: its database, its provider, time. */
function world() {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const psp = faultyProvider({ dedupes: false, now: time.now });
  const provider = { call: psp.call, recover: { find: psp.find, cancel: psp.cancel } };
  const start = (own: MemoryStore, onPoint?: (point: string) => Promise<void>) => {
    const crashing = onPoint === undefined ? {} : { onPoint };
    return chargesApp({ store: own, clock: time.clock, leaseMs: 1_000, onError: () => {}, ...crashing }, provider);
  };
  return { time, store, psp, start };
}

test("wherever the process dies, the customer is charged once", async () => {
  await forEachCrashPoint(chargeSteps(true), async (crash) => {
    const { time, store, psp, start } = world();
    const dying = await start(crash.store(store), crash.onPoint);
    const app = await start(store);
    await expectOnce({ app, request, effects: () => psp.effects.length, dies: { app: dying, at: crash }, time });
    expect(store.rows("settlements")).toHaveLength(1);
  });
});

test.each(["fail", "drop", "late"] as const)("a provider that answers nothing (%s) charges once", async (step) => {
  const { time, store, psp, start } = world();
  psp.script.push(step, step);
  const app = await start(store);
  await expectOnce({ app, request, effects: () => psp.effects.length, faults: true, time });
  psp.land();
  expect(psp.effects).toHaveLength(store.rows("settlements").length);
});

test("a database that fails now and then charges once", async () => {
  const { time, store, psp, start } = world();
  const faulty = faultyStore(store, { seed: 42, percent: 20 });
  const app = await start(faulty.store);
  await expectOnce({ app, request, effects: () => psp.effects.length, faults: true, time });
  expect(faulty.happened.length).toBeGreaterThan(0);
});

test("a suite of before runs unchanged, each of its requests arriving several times", async () => {
  const { time, store, start } = world();
  const app = withDuplicates(await start(store), { hangUp: true, time });
  const headers = { "content-type": "application/json", "idempotency-key": "k" };
  const answer = await app.fetch("/charges", { method: "POST", headers, body: '{"amount":5}' });
  expect([answer.status, await answer.json()]).toMatchObject([201, { amount: 5 }]);
  expect([store.rows("charges").length, app.duplicated]).toEqual([1, 1]);
});
