import { setTimeout as sleep } from "node:timers/promises";
import { fromPg } from "oncekey/drivers/pg";
import { fromPostgresJs } from "oncekey/drivers/postgres-js";
import { type Driver, postgresStore } from "oncekey/postgres";
import postgres from "postgres";
import { describe, expect, it } from "vitest";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { atEnd, createDatabase, query, sharedServer, startTestServer, testPool } from "../support/postgres.ts";
import { completion, limits, newEntry } from "../support/store-values.ts";

const BUSINESS = "CREATE TABLE business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL)";

// The server is shared with other test files: only what happens in this database counts.
const LOCKS_HERE =
  "pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

async function database() {
  const { url } = await createDatabase();
  await query(url, BUSINESS);
  const pool = testPool(url, { max: 16 });
  return { url, pool, store: postgresStore(fromPg(pool)) };
}

describe("lost connections", () => {
  const drivers: Record<string, (url: string) => Driver<unknown>> = {
    pg: (url) => fromPg(testPool(url, { max: 2 })) as Driver<unknown>,
    "postgres-js": (url) => {
      const sql = postgres(url, { max: 2, onnotice: () => {} });
      atEnd(() => sql.end({ timeout: 1 }));
      return fromPostgresJs(sql) as Driver<unknown>;
    },
  };
  for (const [name, connect] of Object.entries(drivers)) {
    it(`says that the commit is unknown when its answer was lost, and the entry then tells (${name})`, async () => {
      const { url } = await createDatabase();
      const { port } = await sharedServer();
      const proxy = await cuttingProxy(port);
      atEnd(() => proxy.close());
      const store = postgresStore(connect(url.replace(`:${port}/`, `:${proxy.port}/`)));
      const entry = newEntry({ runKind: "transaction" });
      const lost = store.transaction(async (session) => {
        await session.lock(entry.id, entry.fingerprint, limits);
        await session.insertFinished(entry, completion());
        proxy.loseNextCommitAnswer();
      });
      await expect(lost).rejects.toMatchObject({ kind: "commit_unknown" });
      expect(await store.read(entry.id)).toMatchObject({ state: "succeeded" });
    });

    it(`says unavailable when the connection was lost before COMMIT (${name})`, async () => {
      const { url } = await createDatabase();
      const store = postgresStore(connect(url));
      const entry = newEntry({ runKind: "transaction" });
      const lost = store.transaction(async (session) => {
        await session.lock(entry.id, entry.fingerprint, limits);
        await query(url, `SELECT pg_terminate_backend(pid) FROM ${LOCKS_HERE}`);
        await session.insertFinished(entry, completion());
      });
      await expect(lost).rejects.toMatchObject({ kind: "unavailable" });
      expect(await store.read(entry.id).catch(() => store.read(entry.id))).toBeNull();
    });
  }

  it("lets the server end a transaction that idles too long, with nothing kept", async () => {
    const { url, store } = await database();
    const entry = newEntry({ runKind: "transaction" });
    const idle = store.transaction(async (session) => {
      await session.lock(entry.id, entry.fingerprint, { lockTimeoutMs: 1_000, idleTimeoutMs: 50 });
      while ((await query(url, `SELECT FROM ${LOCKS_HERE}`)).length > 0) await sleep(10);
      await session.insertFinished(entry, completion());
    });
    await expect(idle).rejects.toMatchObject({ kind: expect.stringMatching(/^(?:timeout|unavailable)$/) });
    expect(await store.read(entry.id)).toBeNull();
  });

  it("leaves the errors of other services to the handler's own handling", async () => {
    const { store } = await database();
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const failing = store.transaction(async () => {
      throw refused;
    });
    await expect(failing).rejects.toBe(refused);
  });
});

describe("a server that stops and comes back", () => {
  it("is unavailable meanwhile, crashes nothing, and serves again", async () => {
    const server = await startTestServer();
    atEnd(() => server.close());
    const { url } = await createDatabase({ server });
    const store = postgresStore(fromPg(testPool(url)));
    const entry = newEntry();
    await store.claim(entry, 60_000);
    await server.stop();
    for (const failing of [store.read(entry.id), store.claim(newEntry(), 1_000), store.transaction(async () => {})]) {
      await expect(failing).rejects.toMatchObject({ kind: "unavailable" });
    }
    await server.start();
    expect(await store.read(entry.id)).toMatchObject({ state: "in_progress" });
  });

  it("remembers a claim and a finished entry through its crash, even where commits are asynchronous by default", async () => {
    // Nobody else writes the log out, so that only a synchronous commit can have survived.
    const server = await startTestServer({ settings: { synchronous_commit: "off", wal_writer_delay: "10s" } });
    atEnd(() => server.close());
    const { url } = await createDatabase({ server });
    await query(url, BUSINESS);
    const store = postgresStore(fromPg(testPool(url)));
    await query(url, "INSERT INTO business (key) VALUES ('asynchronous')");
    const claimed = newEntry();
    const finished = newEntry({ runKind: "transaction" });
    await store.transaction(async (session) => {
      await session.lock(finished.id, finished.fingerprint, limits);
      await session.insertFinished(finished, completion());
    });
    await store.claim(claimed, 60_000);
    await query(url, "INSERT INTO business (key) VALUES ('lost')");
    await server.restart("immediate");
    expect(await store.read(claimed.id).catch(() => store.read(claimed.id))).toMatchObject({ state: "in_progress" });
    expect(await store.read(finished.id)).toMatchObject({ state: "succeeded" });
    expect(await query(url, "SELECT key FROM business")).toEqual([{ key: "asynchronous" }]);
  });
});

describe("connections (Q6)", () => {
  it("keeps one free of transactions, so that look-ups and renewals pass while they all hang", async () => {
    const { url } = await createDatabase();
    const store = postgresStore(fromPg(testPool(url, { max: 3 })));
    const entry = newEntry();
    await store.claim(entry, 60_000);
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    let inside = 0;
    const hanging = Array.from({ length: 6 }, () =>
      store.transaction(async () => {
        inside += 1;
        await opened;
      }),
    );
    while (inside < 2) await sleep(5);
    expect(await store.renew(entry.id, entry.fence, 60_000)).toBe(true);
    expect(await store.read(entry.id)).not.toBeNull();
    const insideMeanwhile = inside;
    open();
    await Promise.all(hanging);
    expect([insideMeanwhile, inside]).toEqual([2, 6]);
  });

  it("renews over the control driver where one is given, and says what it can promise", async () => {
    const { url } = await createDatabase();
    const driver = fromPg(testPool(url, { max: 1 }));
    const control = fromPg(testPool(url, { max: 1 })) as Driver<unknown>;
    expect(postgresStore(driver).traits).toEqual({ connections: 1, renews: false, abandons: true });
    expect(postgresStore({ ...driver, connections: null }).traits.renews).toBe("unknown");
    const store = postgresStore(driver, { control });
    expect(store.traits.renews).toBe(true);
    const entry = newEntry();
    await store.claim(entry, 60_000);
    await store.transaction(async () => {
      expect(await store.renew(entry.id, entry.fence, 60_000)).toBe(true);
    });
  });
});
