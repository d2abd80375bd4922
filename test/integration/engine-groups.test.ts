import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { query, startTestServer, type TestServer } from "../support/postgres.ts";
import { effects, entries, ordersDatabase } from "./support/rows.ts";
import { startWorkers, type Worker } from "./support/workers.ts";

const PROCESSES = 16;
const KEYS = 24;
const WAIT = { timeout: 60_000, interval: 50 };

/** A server of this file's own, which counts its statements, and looks for circles long before a group gives up waiting. */
let server: TestServer;
const fleets: Worker[] = [];

beforeAll(async () => {
  server = await startTestServer({
    settings: { shared_preload_libraries: "pg_stat_statements", deadlock_timeout: "5ms" },
  });
});

afterAll(async () => {
  await Promise.all(fleets.map((worker) => worker.kill()));
  await server.close();
});

async function fleet(count: number, settings: Omit<Parameters<typeof startWorkers>[1], "poolSize">): Promise<Worker[]> {
  const workers = await startWorkers(count, { poolSize: 4, ...settings });
  fleets.push(...workers);
  return workers;
}

const keys = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

/** Every process has an order of its own. */
const turned = <Item>(items: readonly Item[], by: number) =>
  items.map((_, index) => items[(index * 7 + by * 13) % items.length] as Item);

/** How often a statement of ours ran that is known by these words. */
async function calls(url: string, words: string): Promise<number> {
  const [row] = await query(
    url,
    `SELECT coalesce(sum(calls), 0)::int AS calls FROM pg_stat_statements
     JOIN pg_database ON pg_database.oid = dbid AND datname = current_database()
     WHERE query LIKE '%json_to_recordset%' AND query LIKE '%${words}%' AND query NOT LIKE '%pg_stat%'`,
  );
  return row?.calls as number;
}

describe.each(["phases", "capture"] as const)("groups of %s that 16 processes race over the same keys", (kind) => {
  it("run each key once and never wait for each other in a circle", async () => {
    const url = await ordersDatabase({ server });
    await query(url, "CREATE EXTENSION pg_stat_statements");
    const workers = await fleet(PROCESSES, { url });
    const all = keys(`${kind}-raced`, KEYS);
    const answers = await Promise.all(
      workers.map((worker, index) =>
        Promise.all(turned(all, index).map(async (key) => ({ key, ...(await worker.run({ kind, key })) }))),
      ),
    );
    for (const key of all) {
      const told = answers.flat().filter((answer) => answer.key === key);
      expect(told.filter((answer) => answer.kind === "completed")).toHaveLength(1);
      expect(told.filter((answer) => answer.kind === "replayed")).toHaveLength(PROCESSES - 1);
      expect(new Set(told.map(({ answer }) => answer)).size).toBe(1);
      expect(await effects(url, key)).toHaveLength(1);
    }
    expect(await calls(url, "INSERT INTO oncekey.entry")).toBeGreaterThan(0);
    if (kind === "capture") expect(await calls(url, "UPDATE oncekey.entry")).toBeGreaterThan(0);
    await Promise.all(workers.map((worker) => worker.kill()));
    // A connection hands in its statistics when it ends, at the latest.
    await vi.waitUntil(async () => (await connections(url)) === 0, WAIT);
    const [row] = await query(
      server.url,
      `SELECT deadlocks::int FROM pg_stat_database WHERE datname = '${nameOf(url)}'`,
    );
    expect(row).toEqual({ deadlocks: 0 });
  });
});

const nameOf = (url: string) => new URL(url).pathname.slice(1);

async function connections(url: string): Promise<number> {
  const [row] = await query(
    server.url,
    `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = '${nameOf(url)}' AND query LIKE '%oncekey%'`,
  );
  return row?.n as number;
}

/** Server processes that work on the database, or wait for its clients. */
async function backends(url: string): Promise<number> {
  const [row] = await query(
    server.url,
    `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = '${nameOf(url)}'`,
  );
  return row?.n as number;
}

/** Makes the server stop in the middle of a claim of that key, as long as the returned connection has the lock. */
async function holdingInserts(url: string, key: string): Promise<pg.Client> {
  await query(
    url,
    `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         WHILE NOT pg_try_advisory_xact_lock_shared(7) LOOP PERFORM pg_sleep(0.01); END LOOP;
         RETURN NEW;
       END $$`,
    `CREATE TRIGGER hold BEFORE INSERT ON oncekey.entry FOR EACH ROW WHEN (NEW.key = '${key}') EXECUTE FUNCTION hold()`,
  );
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  await holder.query("SELECT pg_advisory_lock(7)");
  return holder;
}

/** The server process that is in the middle of a group of claims. */
async function inTheMiddle(url: string): Promise<number> {
  return vi.waitUntil(async () => {
    const [row] = await query(
      url,
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'
       AND query LIKE '%INSERT INTO oncekey.entry%json_to_recordset%'`,
    );
    return row?.pid as number | undefined;
  }, WAIT);
}

describe("in the middle of a group of claims", () => {
  const LIMITS = { leaseMs: 1_000, maxDurationMs: 5_000 };

  /** All keys at once; the last one is asked for when others are under way. */
  async function held(kind: "phases" | "capture") {
    const url = await ordersDatabase({ server });
    const all = keys(`${kind}-killed`, 12);
    const holder = await holdingInserts(url, all.at(-1) as string);
    const [victim] = (await fleet(1, { url, ...LIMITS })) as [Worker];
    const running = all.map((key) => victim.run({ kind, key }).catch(() => ({ kind: "killed", answer: "" })));
    return { url, all, holder, victim, running, pid: await inTheMiddle(url) };
  }

  it.each(["phases", "capture"] as const)("a killed process leaves every %s as a lone claim would", async (kind) => {
    const { url, all, holder, victim, running } = await held(kind);
    await victim.kill();
    await holder.query("SELECT pg_advisory_unlock(7)");
    await holder.end();
    await Promise.all(running);
    // The server went on: what had been sent is committed, whole. What came later than the held group was never sent.
    await vi.waitUntil(async () => (await backends(url)) === 0, WAIT);
    const sent = new Set((await entries(url)).map(({ key }) => key));
    expect(sent).toContain(all.at(-1));
    expect(sent.size).toBeGreaterThan(1);
    const before = new Set((await effects(url)).map(({ key }) => key));
    const [other] = (await fleet(1, { url, ...LIMITS })) as [Worker];
    const answers = await Promise.all(all.map((key) => settledBy(other, kind, key)));
    for (const [index, key] of all.entries()) {
      // Nobody knows what the killed process did with what it had claimed as a whole, so nobody does it again.
      const isUnknown = kind === "capture" && sent.has(key);
      expect(await effects(url, key)).toHaveLength(isUnknown && !before.has(key) ? 0 : 1);
      expect(isUnknown ? ["unknown", "replayed"] : ["completed", "replayed"]).toContain(answers[index]);
    }
  });

  it("a killed connection leaves nothing of it behind, and each retry runs once", async () => {
    const { url, all, holder, victim, running, pid } = await held("phases");
    await query(url, `SELECT pg_terminate_backend(${pid})`);
    await holder.query("SELECT pg_advisory_unlock(7)");
    await holder.end();
    const first = await Promise.all(running);
    expect(first.map(({ kind }) => kind)).not.toContain("killed");
    const answers = await Promise.all(all.map((key) => settledBy(victim, "phases", key)));
    for (const [index, key] of all.entries()) {
      expect(["completed", "replayed"]).toContain(answers[index]);
      expect(await effects(url, key)).toHaveLength(1);
    }
  });
});

/** Asks until it is no longer that the first request is running: a killed process's lease has to lapse. */
async function settledBy(worker: Worker, kind: "phases" | "capture", key: string): Promise<string> {
  return vi.waitUntil(async () => {
    const answer = await worker.run({ kind, key, waitMs: 2_000 });
    return ["completed", "replayed", "unknown", "mismatch"].includes(answer.kind) ? answer.kind : undefined;
  }, WAIT);
}
