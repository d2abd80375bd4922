import { fromPg } from "oncekey/drivers/pg";
import { type Driver, migrate, type PostgresStoreOptions, postgresStore } from "oncekey/postgres";
import type { PoolClient } from "pg";
import { describe, expect, it, vi } from "vitest";
import type { Session } from "../../src/core/store.ts";
import { gate } from "../support/gate.ts";
import {
  atEnd,
  createDatabase,
  query,
  startTestServer,
  type TestDatabaseOptions,
  testPool,
} from "../support/postgres.ts";
import { completion, type EntryValues, limits, newEntry } from "../support/store-values.ts";
import { gatedDriver } from "./support/gated-driver.ts";

const LEASE_MS = 60_000;
/** Whatever the machine does meanwhile, a group goes when the statement before it is answered. */
const PATIENT = { maxDelayMs: 1_000 };

async function world(options: TestDatabaseOptions = {}, store: PostgresStoreOptions = { groups: PATIENT }) {
  const { url } = await createDatabase(options);
  const gated = gatedDriver(fromPg(testPool(url, { max: 16 })));
  return { url, ...gated, store: postgresStore(gated.driver, store) };
}

type World = Awaited<ReturnType<typeof world>>;

/** The first goes alone and is held; the others gather behind it. Each with its own result. */
async function behind<R>(
  { hold, take }: World,
  name: "read" | "claim" | "complete",
  [first, ...others]: readonly (() => Promise<R>)[],
): Promise<PromiseSettledResult<R>[]> {
  take();
  const held = hold(name);
  const asked = [first?.(), ...others.map((ask) => ask())] as Promise<R>[];
  const settled = Promise.allSettled(asked);
  held.open();
  return settled;
}

const values = <R>(settled: readonly PromiseSettledResult<R>[]) =>
  settled.map((one) => (one.status === "fulfilled" ? one.value : one.reason));

const claims = ({ store }: World, entries: readonly EntryValues[], leaseMs = LEASE_MS) =>
  entries.map((entry) => () => store.claim(entry, leaseMs));

async function claimed(at: World, count: number): Promise<EntryValues[]> {
  const entries = Array.from({ length: count }, () => newEntry({ runKind: "capture" }));
  await Promise.all(entries.map((entry) => at.store.claim(entry, LEASE_MS)));
  at.take();
  return entries;
}

describe("claims that come while one is under way", () => {
  it("are one statement, whoever wins, and each caller is told of its own row", async () => {
    const at = await world();
    const [taken] = (await claimed(at, 1)) as [EntryValues];
    const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index);
    const hostile = { tenant: "tänant", client: "", key: `'"\\ %_$1 🗝 \u0001`, operationVersion: 7 };
    const entries = [
      newEntry(),
      newEntry({ ...hostile, wireDigest: everyByte.slice(0, 35), input: everyByte, context: new Uint8Array(0) }),
      newEntry({ client: null, correlation: "trace" }),
      newEntry({ id: taken.id }),
    ];
    const results = values(await behind(at, "claim", claims(at, entries)));
    // The last one looks whether the row is its own, as a lone claim does.
    expect(at.take()).toEqual(["claim", "claim_group", "read"]);
    for (const [index, entry] of entries.slice(0, 3).entries()) {
      expect(results[index]).toMatchObject({ ...plain(entry), state: "in_progress", attempt: 1 });
      expect(await at.store.read(entry.id)).toMatchObject(plain(entry));
    }
    expect(results[3]).toBeNull();
    expect(await at.store.read(taken.id)).toMatchObject({ fence: taken.fence });
  });

  it("of one identity have one winner, the first; the same claim sent twice is told the same row", async () => {
    const at = await world();
    const won = newEntry();
    const others = [newEntry({ id: won.id }), newEntry({ id: won.id })];
    const results = values(await behind(at, "claim", claims(at, [newEntry(), won, ...others, won])));
    expect(at.take().filter((name) => name.startsWith("claim"))).toEqual(["claim", "claim_group"]);
    expect(results.slice(2, 4)).toEqual([null, null]);
    expect(results[1]).toMatchObject({ fence: won.fence, state: "in_progress" });
    expect(results[4]).toMatchObject({ fence: won.fence, createdAt: (results[1] as { createdAt: Date }).createdAt });
  });

  it("have leases of their own, none of them dead at birth", async () => {
    const at = await world();
    const lasting = [newEntry(), newEntry(), newEntry()];
    const asked = lasting.map((entry, index) => () => at.store.claim(entry, (index + 1) * 100_000));
    const results = values(await behind(at, "claim", asked)) as { clock: { claimableInMs: number } }[];
    expect(at.take()).toEqual(["claim", "claim_group"]);
    for (const [index, { clock }] of results.entries()) {
      expect(clock.claimableInMs).toBeGreaterThan(index * 100_000);
      expect(clock.claimableInMs).toBeLessThanOrEqual((index + 1) * 100_000);
    }
  });

  it.each([
    ["a row that a check refuses", { tenant: "x".repeat(256) }, "23514"],
    ["text that the server cannot hold", { key: "a\u0000b" }, "22021"],
  ])("fail alone where one of them is %s, and the others are granted", async (_, wrong, code) => {
    const at = await world();
    const entries = [newEntry(), newEntry(), newEntry(wrong), newEntry()];
    const settled = await behind(at, "claim", claims(at, entries));
    expect(at.take()).toEqual(["claim", "claim_group", "claim", "claim", "claim"]);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
    expect(values(settled)[2]).toMatchObject({ code });
    expect(JSON.stringify(values(settled)[2])).not.toContain("x".repeat(20));
    for (const index of [0, 1, 3]) expect(values(settled)[index]).toMatchObject({ id: entries[index]?.id });
  });

  it("do not wait for one of them that has to: it waits by itself", async () => {
    const at = await world();
    const entries = [newEntry(), newEntry(), newEntry(), newEntry()];
    const slow = entries[2] as EntryValues;
    const inserting = await openTransaction(at, async (session) => {
      await session.lock(slow.id, slow.fingerprint, limits);
      await session.insertFinished({ ...slow, fence: newEntry().fence }, completion());
    });
    at.take();
    const { quick, slowly } = await withOneSlow(at, "claim", claims(at, entries), 2);
    for (const granted of quick) expect(granted).toMatchObject({ attempt: 1 });
    expect(at.take()).toEqual(["claim", "claim_group", "claim", "claim", "claim"]);
    await inserting.end("rolled back");
    // On a very slow machine its own limit may have ended the wait.
    const end = (await slowly) as { fence?: Uint8Array; kind?: string };
    expect([slow.fence, "contention"]).toContainEqual(end.fence ?? end.kind);
  });

  it("are all told that nobody knows where the connection is lost, and none is sent again", async () => {
    const at = await world();
    at.fail("claim_group", Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
    const settled = await behind(at, "claim", claims(at, [newEntry(), newEntry(), newEntry()]));
    expect(at.take()).toEqual(["claim", "claim_group"]);
    for (const reason of values(settled).slice(1)) expect(reason).toMatchObject({ kind: "unavailable" });
    expect(values(settled)[1]).not.toBe(values(settled)[2]);
  });

  it("whose answer was lost know their rows again by their fences when they are sent again", async () => {
    const at = await world();
    const entries = [newEntry(), newEntry(), newEntry()];
    const dropping: Driver<unknown> = { ...(at.driver as Driver<unknown>) };
    let isLost = false;
    dropping.run = async (sql, parameters, tx) => {
      const rows = await (at.driver as Driver<unknown>).run(sql, parameters, tx);
      if (!sql.includes("json_to_recordset") || isLost) return rows;
      isLost = true;
      throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    };
    const losing = { ...at, store: postgresStore(dropping, { groups: PATIENT }) } as World;
    const lost = await behind(losing, "claim", claims(losing, entries));
    expect(lost.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    const again = values(await behind(losing, "claim", claims(losing, entries)));
    for (const [index, entry] of entries.entries())
      expect(again[index]).toMatchObject({ fence: entry.fence, attempt: 1 });
  });

  it("are bounded in bytes: what is heavier by itself goes alone, the rest in several statements", async () => {
    const at = await world();
    const entries = [0, 200_000, 200_000, 200_000, 600_000, 0].map((length) =>
      newEntry({ input: new Uint8Array(length).fill(7) }),
    );
    const results = values(await behind(at, "claim", claims(at, entries)));
    expect(at.take().toSorted()).toEqual(["claim", "claim", "claim_group", "claim_group"].toSorted());
    for (const [index, entry] of entries.entries()) {
      expect((results[index] as { input: Uint8Array }).input.length).toBe(entry.input?.length);
    }
  });
});

/** What is compared of an entry: not the clock. */
function plain({ id, tenant, client, operation, key, fence, input, context, correlation, wireDigest }: EntryValues) {
  return { id, tenant, client, operation, key, fence, input, context, correlation, wireDigest };
}

describe("look-ups that come while one is under way", () => {
  it("are one statement: what is there, what is not, and the same one twice", async () => {
    const at = await world();
    const [one, other] = (await claimed(at, 2)) as [EntryValues, EntryValues];
    const absent = newEntry();
    const ids = [absent, one, absent, other, one].map(({ id }) => id);
    const results = values(
      await behind(
        at,
        "read",
        ids.map((id) => () => at.store.read(id)),
      ),
    );
    expect(at.take()).toEqual(["read", "read_group"]);
    expect(results.map((entry) => (entry as EntryValues | null)?.fence ?? null)).toEqual([
      null,
      one.fence,
      null,
      other.fence,
      one.fence,
    ]);
    // Each has its own bytes, which it may change.
    (results[1] as EntryValues).fence.fill(0);
    expect((results[4] as EntryValues).fence).toEqual(one.fence);
  });

  it("of a long outcome go alone", async () => {
    const at = await world();
    const [short, long] = (await claimed(at, 2)) as [EntryValues, EntryValues];
    const content = new Uint8Array(20_000).fill(1);
    await at.store.complete(short.id, short.fence, completion());
    await at.store.complete(long.id, long.fence, {
      ...completion(),
      outcome: { status: 201, content, pointer: null },
    });
    const ids = [short, short, long].map(({ id }) => id);
    const results = values(
      await behind(
        at,
        "read",
        ids.map((id) => () => at.store.read(id)),
      ),
    );
    expect(at.take()).toEqual(["read", "read_group", "read"]);
    expect(results[1]).toMatchObject({ state: "succeeded", outcome: completion().outcome });
    expect(results[2]).toMatchObject({ state: "succeeded", outcome: { content } });
  });

  it("see what was committed before they were asked, though another look-up was under way then", async () => {
    const at = await world();
    const entry = newEntry();
    const held = at.hold("read");
    const early = at.store.read(newEntry().id);
    await at.store.claim(entry, LEASE_MS);
    const late = [at.store.read(entry.id), at.store.read(entry.id)];
    held.open();
    await early;
    for (const found of await Promise.all(late)) expect(found).toMatchObject({ fence: entry.fence });
    expect(at.take()).toEqual(["read", "claim", "read_group"]);
  });
});

describe("completions that come while one is under way", () => {
  const completions = ({ store }: World, entries: readonly Pick<EntryValues, "id" | "fence">[]) =>
    entries.map(
      ({ id, fence }) =>
        () =>
          store.complete(id, fence, completion()),
    );

  it("are one statement; a fence that owns nothing is told so, by a statement of its own", async () => {
    const at = await world();
    const entries = await claimed(at, 4);
    const zombie = { ...(entries[2] as EntryValues), fence: newEntry().fence };
    const asked = [entries[0], entries[1], zombie, entries[3]] as EntryValues[];
    const results = values(await behind(at, "complete", completions(at, asked)));
    expect(at.take()).toEqual(["complete", "complete_group", "complete"]);
    expect(results).toEqual([true, true, false, true]);
    const states = await query(at.url, "SELECT state, count(*)::int AS n FROM oncekey.entry GROUP BY state ORDER BY 1");
    expect(states).toEqual([
      { state: "in_progress", n: 1 },
      { state: "succeeded", n: 3 },
    ]);
    expect(await at.store.read(asked[1]?.id as Uint8Array)).toMatchObject({
      outcome: completion().outcome,
      outcomeGone: false,
    });
  });

  it("store what a lone one stores: states, gone outcomes, pointers, retention and tombstones", async () => {
    const at = await world();
    const gone = { ...completion({ tombstoneMs: 9_000 }), outcome: { status: 402, content: null, pointer: null } };
    const away = { ...completion(), outcome: { status: 201, content: new Uint8Array([1, 0]), pointer: "bodies/1" } };
    const kinds = [completion(), { ...gone, state: "failed" as const }, away, completion({ retentionMs: 0 })];
    const stored = async (ask: (entries: EntryValues[]) => Promise<unknown>) => {
      const entries = await claimed(at, kinds.length);
      await ask(entries);
      const rows = entries.map(({ id }) =>
        query(
          at.url,
          `SELECT state, status, encode(outcome, 'hex') AS outcome, outcome_gone, body_pointer, lease_until, sweep_at,
             settles_at, expires_at - completed_at AS kept, tombstone_until - expires_at AS tombstone
           FROM oncekey.entry WHERE id = decode('${Buffer.from(id).toString("hex")}', 'hex')`,
        ),
      );
      return Promise.all(rows);
    };
    const complete = (entries: EntryValues[]) =>
      entries.map((entry, index) => () => at.store.complete(entry.id, entry.fence, kinds[index] ?? completion()));
    const alone = await stored(async (entries) => {
      for (const ask of complete(entries)) await ask();
    });
    const [leading] = (await claimed(at, 1)) as [EntryValues];
    const lead = () => at.store.complete(leading.id, leading.fence, completion());
    const together = await stored(async (entries) => behind(at, "complete", [lead, ...complete(entries)]));
    expect(at.take()).toEqual(["complete", "complete_group"]);
    expect(together).toEqual(alone);
  });

  it("of one entry complete it once", async () => {
    const at = await world();
    const [first, twice] = (await claimed(at, 2)) as [EntryValues, EntryValues];
    const results = values(await behind(at, "complete", completions(at, [first, twice, twice])));
    expect(at.take()).toEqual(["complete", "complete_group", "complete"]);
    expect(results).toEqual([true, true, false]);
    const stale = { ...twice, fence: newEntry().fence };
    const [another, owned] = (await claimed(at, 2)) as [EntryValues, EntryValues];
    const mixed = [another, { ...stale, id: owned.id }, owned];
    expect(values(await behind(at, "complete", completions(at, mixed)))).toEqual([true, false, true]);
  });

  it("do not wait for one whose row somebody else holds: it waits by itself", async () => {
    const at = await world();
    const entries = await claimed(at, 3);
    const slow = entries[1] as EntryValues;
    const holding = await openTransaction(at, async ({ tx }) => {
      expect(await at.store.owns(tx, slow.id, slow.fence)).toBe(true);
    });
    at.take();
    const { quick, slowly } = await withOneSlow(at, "complete", completions(at, entries), 1);
    expect(quick).toEqual([true, true]);
    expect(at.take()).toEqual(["complete", "complete_group", "complete"]);
    await holding.end("committed");
    expect(await slowly).toBe(true);
  });
});

/** A transaction that stays open until the test ends it. */
async function openTransaction({ store }: World, inside: (session: Session<PoolClient>) => Promise<unknown>) {
  const entered = gate();
  const ended = gate();
  let how: "committed" | "rolled back" = "committed";
  const running = store.transaction(async (session) => {
    await inside(session);
    entered.open();
    await ended.promise;
    if (how === "rolled back") throw new Error(how);
  });
  const over = running.then(
    () => {},
    (error: Error) => expect(error.message).toBe("rolled back"),
  );
  await Promise.race([entered.promise, running]);
  return {
    end(as: typeof how) {
      how = as;
      ended.open();
      return over;
    },
  };
}

/** All of them in one group behind the first. The slow one has no end while the others have theirs. */
async function withOneSlow<R>(
  at: World,
  name: "claim" | "complete",
  asks: readonly (() => Promise<R>)[],
  slow: number,
) {
  let isOver = false;
  const held = at.hold(name);
  const asked = asks.map((ask) => ask());
  const slowly = (asked[slow] as Promise<R>).then(
    (value) => {
      isOver = true;
      return value;
    },
    (error: unknown) => error,
  );
  held.open();
  const quick = await Promise.all(asked.filter((_, index) => index !== slow));
  expect(isOver).toBe(false);
  return { quick, slowly };
}

describe("a group's commit", () => {
  it("is synchronous where commits are asynchronous by default: a crash of the server forgets none of it", async () => {
    const server = await startTestServer({ settings: { synchronous_commit: "off", wal_writer_delay: "10s" } });
    atEnd(() => server.close());
    const at = await world({ server });
    const entries = [newEntry(), newEntry(), newEntry()];
    await behind(at, "claim", claims(at, entries));
    expect(at.take()).toEqual(["claim", "claim_group"]);
    await query(at.url, "CREATE TABLE lost (n int)");
    await server.restart("immediate");
    const found = ({ id }: EntryValues): Promise<unknown> =>
      at.store.read(id).catch(() => found({ id } as EntryValues));
    for (const entry of entries) expect(await found(entry)).toMatchObject({ state: "in_progress" });
    const complete = entries.map(
      ({ id, fence }) =>
        () =>
          at.store.complete(id, fence, completion()),
    );
    await behind(at, "complete", complete);
    expect(at.take()).toEqual(["complete", "complete_group"]);
    await server.restart("immediate");
    for (const entry of entries) expect(await found(entry)).toMatchObject({ state: "succeeded" });
  });

  it.each(["repeatable read", "serializable"] as const)("is right at %s, too", async (isolation) => {
    const at = await world({ isolation });
    const entries = [newEntry(), newEntry(), newEntry(), newEntry()];
    const rival = postgresStore(fromPg(testPool(at.url)), { groups: PATIENT });
    const rivals = entries.map((entry) => newEntry({ id: entry.id }));
    const both = [
      ...entries.map((entry) => at.store.claim(entry, LEASE_MS)),
      ...rivals.map((entry) => rival.claim(entry, LEASE_MS)),
    ];
    const told = await Promise.all(both);
    for (const [index] of entries.entries()) {
      expect([told[index], told[index + entries.length]].filter((entry) => entry !== null)).toHaveLength(1);
    }
  });
});

describe("groups of two processes that meet over the same entries", () => {
  const WAITING = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

  /** It waits for locks as long as it takes, and would soon notice a circle. */
  function patient(url: string, errors: unknown[]) {
    const { driver, ...gated } = gatedDriver(fromPg(testPool(url, { options: "-c deadlock_timeout=5ms" })));
    const run: typeof driver.run = (sql, parameters, tx) => {
      const [members, limit] = parameters;
      const isGroup = sql.includes("json_to_recordset") && limit !== undefined;
      return driver.run(sql, isGroup ? [members as string, "60000"] : parameters, tx).catch((error) => {
        errors.push(error.code);
        throw error;
      });
    };
    return { ...gated, store: postgresStore({ ...driver, run }, { groups: PATIENT }) };
  }

  it("never wait for each other in a circle, and grant each entry once", async () => {
    const at = await world();
    const errors: unknown[] = [];
    const entries = Array.from({ length: 9 }, () => newEntry()).toSorted((a, b) => Buffer.compare(a.id, b.id));
    const [middle] = entries.slice(4) as [EntryValues];
    const inserting = await openTransaction(at, async (session) => {
      await session.lock(middle.id, middle.fingerprint, limits);
      await session.insertFinished(middle, completion());
    });
    const told = [entries, entries.toReversed()].map(async (ordered) => {
      const { store, hold } = patient(at.url, errors);
      const held = hold("claim");
      const asked = [newEntry(), ...ordered].map(({ id }) => store.claim(newEntry({ id }), LEASE_MS));
      held.open();
      return (await Promise.all(asked)).slice(1).filter((entry) => entry !== null);
    });
    // Both are in the middle of their entries: in two orders, each would now have what the other one wants.
    await vi.waitUntil(async () => (await query(at.url, WAITING)).length === 2, { timeout: 30_000, interval: 20 });
    await inserting.end("rolled back");
    const granted = (await Promise.all(told)).flat();
    expect(errors).toEqual([]);
    expect(new Set(granted.map(({ id }) => Buffer.from(id).toString("hex"))).size).toBe(entries.length);
    expect(granted).toHaveLength(entries.length);
  });
});

describe("groups", () => {
  it("are off where that is asked, and where the driver cannot", async () => {
    const off = await world({}, { groups: false });
    const entries = [newEntry(), newEntry(), newEntry()];
    await behind(off, "claim", claims(off, entries));
    expect(off.take()).toEqual(["claim", "claim", "claim"]);
    const unable = postgresStore({ ...off.driver, groups: false }, { groups: true });
    await Promise.all(entries.map(({ id }) => unable.read(id)));
    expect(off.take()).toEqual(["read", "read", "read"]);
  });

  it("take limits that make sense only", async () => {
    const { driver } = await world();
    for (const groups of [
      { maxSize: 1 },
      { maxSize: 2.5 },
      { maxSize: 1_001 },
      { maxDelayMs: -1 },
      { maxDelayMs: NaN },
    ]) {
      expect(() => postgresStore(driver, { groups })).toThrow(
        expect.objectContaining({ code: "oncekey_config_invalid", message: expect.stringContaining("maxSize") }),
      );
    }
  });

  it("keep to their size, and work in a schema of another name", async () => {
    const { url } = await createDatabase({ migrated: false });
    const { driver, ...gated } = gatedDriver(fromPg(testPool(url)));
    await migrate(driver, { schema: "once_b" });
    const store = postgresStore(driver, { schema: "once_b", groups: { ...PATIENT, maxSize: 2 } });
    gated.take();
    const entries = Array.from({ length: 6 }, () => newEntry());
    for (const entry of await Promise.all(entries.map((one) => store.claim(one, LEASE_MS)))) {
      expect(entry).toMatchObject({ attempt: 1 });
    }
    // Of another schema than the one that the statements are known by: the first words must do.
    expect(gated.take().map((sql) => sql.includes("json_to_recordset"))).toEqual([false, true, true, false]);
  });
});
