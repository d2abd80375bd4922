import { fromPg } from "oncekey/drivers/pg";
import {
  discardMessages,
  entriesById,
  entryResolutions,
  inspectEntries,
  listMessages,
  postgresStore,
  recordedSummary,
  retryMessages,
  storeStatus,
} from "oncekey/postgres";
import { describe, expect, it } from "vitest";
import { createDatabase, passTime, testPool } from "../support/postgres.ts";
import { completion, newEntry, newMessage } from "../support/store-values.ts";

const CLAIM = { topics: ["*"], limit: 100, leaseMs: 60_000 };
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

async function world() {
  const { url } = await createDatabase();
  const driver = fromPg(testPool(url));
  return { url, driver, store: postgresStore(driver) };
}

describe("messages, as operators see them", () => {
  async function filled() {
    const { url, driver, store } = await world();
    const entryId = newEntry().id;
    await store.transaction(async (session) => {
      await session.send(
        newMessage({ id: "poison", topic: "invoice.created", orderBy: "o", entryId, correlation: "r1" }),
      );
      await session.send(newMessage({ id: "behind", topic: "invoice.created", orderBy: "o" }));
      await session.send(
        newMessage({ id: "slow", topic: "charge.settled", tenant: "globex", payload: '{"secret":1}' }),
      );
    });
    const claimed = await store.outbox.claim(CLAIM);
    const [poison, slow] = ["poison", "slow"].map((id) => claimed.find((message) => message.id === id));
    if (poison === undefined || slow === undefined) throw new Error("nothing was claimed");
    return { url, driver, store, entryId, poison, slow };
  }

  it("are listed in the order of their sending, by state, topic, tenant and entry, without what they tell", async () => {
    const { driver, store, entryId, poison, slow } = await filled();
    const ids = async (query: Parameters<typeof listMessages>[1]) =>
      (await listMessages(driver, query)).map(({ id }) => id);
    expect(await listMessages(driver, { topic: "charge.*" })).toMatchObject([
      { id: "slow", state: "pending", leased: true, attempts: 1, tenant: "globex", reason: null },
    ]);
    await store.outbox.bury(poison, "the other side answered 400");
    await store.outbox.delivered(slow);
    expect(await ids({})).toEqual(["poison", "behind", "slow"]);
    expect(await ids({ limit: 1 })).toEqual(["poison"]);
    expect(await ids({ state: "delivered" })).toEqual(["slow"]);
    expect(await ids({ tenant: "globex" })).toEqual(["slow"]);
    expect(await ids({ topic: "invoice" })).toEqual([]);
    const [dead, ...others] = await listMessages(driver, { entryId: hex(entryId) });
    expect(others).toEqual([]);
    expect(dead).toMatchObject({ state: "dead", leased: false, dueInMs: null, correlation: "r1" });
    expect(dead).toMatchObject({ reason: "the other side answered 400", entryId: hex(entryId) });
    expect(JSON.stringify(await listMessages(driver))).not.toContain("secret");
    expect((await storeStatus(driver)).messages).toMatchObject([
      { topic: "invoice.created", state: "dead", count: 1 },
      { topic: "invoice.created", state: "pending", count: 1 },
    ]);
  });

  it("that are dead are retried by topic with all their attempts before them, and then their order goes on", async () => {
    const { driver, store, poison } = await filled();
    await store.outbox.bury(poison, "refused");
    expect(await retryMessages(driver, { deadOf: "charge.*" })).toBe(0);
    expect(await retryMessages(driver, { deadOf: "invoice.*" })).toBe(1);
    const [again] = await store.outbox.claim(CLAIM);
    expect(again).toMatchObject({ id: "poison", attempt: 1 });
    if (again === undefined) throw new Error("it was not claimed");
    await store.outbox.delivered(again);
    expect((await store.outbox.claim(CLAIM)).map(({ id }) => id)).toEqual(["behind"]);
  });

  it("that wait for their next attempt are due at once; one that a relay holds is left to it", async () => {
    const { driver, store, poison } = await filled();
    expect(await retryMessages(driver, { ids: ["poison", "slow", "unknown"] })).toBe(0);
    expect(await discardMessages(driver, { ids: ["poison", "slow", "unknown"] })).toBe(0);
    await store.outbox.postpone(poison, 3_600_000, "503");
    expect(await store.outbox.claim(CLAIM)).toEqual([]);
    expect(await retryMessages(driver, { ids: ["poison"] })).toBe(1);
    expect((await store.outbox.claim(CLAIM)).map(({ id }) => id)).toEqual(["poison"]);
  });

  it("that are discarded are gone, and their order goes on; delivered ones are not touched", async () => {
    const { driver, store, poison, slow } = await filled();
    await store.outbox.bury(poison, "refused");
    await store.outbox.delivered(slow);
    expect(await discardMessages(driver, { ids: ["poison", "slow"] })).toBe(1);
    expect((await listMessages(driver)).map(({ id }) => id)).toEqual(["behind", "slow"]);
    expect((await store.outbox.claim(CLAIM)).map(({ id }) => id)).toEqual(["behind"]);
  });
});

describe("entries that need a person", () => {
  const mark = { provisional: null, quietMs: null };

  it("are grouped by operation and reason, with a few ids and the time of the next look", async () => {
    const { url, driver, store } = await world();
    const entries = [newEntry(), newEntry(), newEntry(), newEntry(), newEntry({ operation: "refunds.create" })];
    for (const entry of entries) {
      await store.claim(entry, 1_000);
      const sweepInMs = entry === entries[1] ? 60_000 : null;
      await store.markUnknown(entry.id, entry.fence, { ...mark, reason: "gave_up", sweepInMs });
      await passTime(url, 1_000);
    }
    const { recovery, entries: counts } = await storeStatus(driver);
    expect(counts.needs_recovery).toBe(5);
    expect(recovery).toMatchObject([
      { operation: "invoices.create", reason: "gave_up", count: 4 },
      { operation: "refunds.create", reason: "gave_up", count: 1, sweepInMs: null },
    ]);
    expect(recovery[0]?.ids).toEqual(entries.slice(0, 3).map(({ id }) => hex(id)));
    expect(recovery[0]?.sweepInMs).toBeGreaterThan(50_000);
    expect(recovery[0]?.oldestMs).toBeGreaterThanOrEqual(5_000);
  });

  it("are found by the beginning of their id, and show their audit, their intents and what ties them to logs", async () => {
    const { url, driver, store } = await world();
    const entry = newEntry({ correlation: "00-trace" });
    const { id, fence } = entry;
    await store.claim(entry, 1_000);
    await store.openIntent(id, fence, {
      call: "authorize",
      generation: 1,
      derivedKey: "k",
      requestDigest: new Uint8Array(32),
      form: "settles",
      settlesWithinMs: 60_000,
    });
    await store.markUnknown(id, fence, { reason: "gave_up", provisional: null, sweepInMs: null, quietMs: 0 });
    await passTime(url, 2_000);
    const prefix = hex(id).slice(0, 11);
    expect(await entriesById(driver, prefix)).toEqual(await inspectEntries(driver, { key: entry.key }));
    expect(await entriesById(driver, prefix)).toMatchObject([{ id: hex(id), correlation: "00-trace", sweepAt: null }]);
    expect(await entriesById(driver, "f".repeat(63))).toEqual([]);
    const { intents } = await recordedSummary(driver, hex(id));
    expect(intents).toMatchObject([{ call: "authorize", generation: 1, state: "open", form: "settles" }]);
    expect(intents[0]?.settlesInMs).toBeGreaterThan(50_000);
    const decision = {
      verdict: "succeeded" as const,
      completion: completion(),
      attempt: null,
      by: "ann",
      note: "asked the bank",
    };
    const resolve = (force: boolean) => store.resolve(id, { ...decision, force, fence: newEntry().fence });
    expect(await resolve(false)).toMatchObject({ kind: "unsettled", openIntents: [{ call: "authorize" }] });
    expect(await resolve(true)).toMatchObject({ kind: "resolved", from: "needs_recovery" });
    expect(await entryResolutions(driver, hex(id))).toMatchObject([
      {
        ...{ verdict: "succeeded", status: 201, forced: true, by: "ann", note: "asked the bank" },
        ...{ stateBefore: "needs_recovery", reasonBefore: "gave_up" },
        openIntents: [{ call: "authorize", generation: 1 }],
      },
    ]);
  });

  it("are settled by one of several that decide at once, and the audit has one row", async () => {
    const { url, driver, store } = await world();
    const { id, fence, ...rest } = newEntry();
    await store.claim({ id, fence, ...rest }, 1_000);
    await store.markUnknown(id, fence, { ...mark, reason: "gave_up", sweepInMs: null });
    await passTime(url, 2_000);
    const decided = await Promise.all(
      ["succeeded" as const, "failed" as const, "succeeded" as const, "failed" as const].map((verdict) =>
        store.resolve(id, {
          ...{
            verdict,
            completion: { ...completion(), state: verdict },
            attempt: 1,
            force: true,
            by: "ann",
            note: null,
          },
          fence: newEntry().fence,
        }),
      ),
    );
    expect(decided.map(({ kind }) => kind).sort()).toEqual(["finished", "finished", "finished", "resolved"]);
    const audit = await entryResolutions(driver, hex(id));
    expect(audit).toHaveLength(1);
    expect(await store.read(id)).toMatchObject({ state: audit[0]?.verdict });
  });
});
