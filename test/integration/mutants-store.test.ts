import { fromPg } from "oncekey/drivers/pg";
import { memoryStore } from "oncekey/memory";
import { postgresStore } from "oncekey/postgres";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { createDatabase, passTime, testPool } from "../support/postgres.ts";
import { completion, newEntry } from "../support/store-values.ts";

const LEASE_MS = 30_000;

async function postgres() {
  const { url } = await createDatabase();
  return { store: postgresStore(fromPg(testPool(url))), pass: (ms: number) => passTime(url, ms) };
}

async function memory() {
  const time = fakeClock();
  return { store: memoryStore({ clock: time.now }), pass: time.advance };
}

describe.each([
  ["memory", memory],
  ["postgres", postgres],
] as const)("a store (%s)", (_, open) => {
  it("gives a claim nothing of an entry whose lease has lapsed: only a takeover counts the attempt", async () => {
    const { store, pass } = await open();
    const entry = newEntry();
    await store.claim(entry, LEASE_MS);
    await pass(LEASE_MS + 1);
    const later = newEntry({ id: entry.id });
    expect(await store.claim(later, LEASE_MS)).toBe(null);
    const kept = await store.read(entry.id);
    expect(kept).toMatchObject({ attempt: 1, state: "in_progress" });
    expect(Buffer.from(kept?.fence ?? []).equals(entry.fence)).toBe(true);
    expect(kept?.clock.claimableInMs).toBeLessThanOrEqual(0);
  });

  it("takes the completion of a slow owner, by the fence that it claimed with, after its entry was marked", async () => {
    const { store } = await open();
    const entry = newEntry({ runKind: "capture" });
    await store.claim(entry, LEASE_MS);
    const mark = { reason: "owner_lost", provisional: null, sweepInMs: null, quietMs: 0 };
    expect(await store.markUnknown(entry.id, entry.fence, mark)).toBe(true);
    expect(await store.complete(entry.id, entry.fence, completion())).toBe(true);
    expect(await store.read(entry.id)).toMatchObject({ state: "succeeded" });
  });
});
