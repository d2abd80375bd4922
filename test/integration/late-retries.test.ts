import { created, createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { idempotent } from "oncekey/fetch";
import { postgresStore } from "oncekey/postgres";
import { createSweeper } from "oncekey/sweeper";
import type pg from "pg";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createDatabase, passTime, query, testPool } from "../support/postgres.ts";

const HOUR = 3_600_000;
const scope = () => ({ tenant: "acme", client: null });

afterEach(() => void vi.useRealTimers());

/** An instance that refuses late retries, on a database of its own, with an operation that leaves a row. */
async function service() {
  const { url } = await createDatabase();
  await query(url, "CREATE TABLE thing (id int GENERATED ALWAYS AS IDENTITY)");
  const pool = testPool(url);
  const once = createOncekey({ store: postgresStore(fromPg(pool)), refuseLateRetries: true });
  const operations = {
    transaction: once.transaction({ name: "t", version: 1, run: ({ tx }) => insert(tx) }),
    blind: once.transaction({ name: "b", version: 1, lookUp: "skip", run: ({ tx }) => insert(tx) }),
    phases: once.phases({ name: "p", version: 1, run: (op) => op.complete(({ tx }) => insert(tx)) }),
  };
  await once.start();
  const sweeper = createSweeper(once);
  return {
    url,
    ask: (kind: keyof typeof operations, firstSent: string) => {
      const headers = { "idempotency-key": "k", "idempotency-first-sent": firstSent };
      return idempotent(operations[kind], { scope })(new Request("http://localhost/", { method: "POST", headers }));
    },
    /** The instant that lay so long ago by the database's clock, as a client writes it. */
    ago: async (ms: number) => {
      const [row] = await query(url, "SELECT (extract(epoch FROM now()) * 1000)::float8 AS now");
      return new Date((row?.now as number) - ms).toUTCString();
    },
    purge: async () => {
      const { purged } = await sweeper.runOnce();
      expect(await query(url, "SELECT FROM oncekey.entry")).toEqual([]);
      return purged;
    },
    things: async () => (await query(url, "SELECT FROM thing")).length,
  };
}

async function insert(tx: pg.ClientBase) {
  const { rows } = await tx.query("INSERT INTO thing DEFAULT VALUES RETURNING id");
  return created(`/things/${rows[0].id}`, rows[0]);
}

describe("a late retry on PostgreSQL", () => {
  for (const kind of ["transaction", "blind", "phases"] as const) {
    it(`is refused after the purge, and nothing is run (${kind})`, async () => {
      const { url, ask, ago, purge, things } = await service();
      expect((await ask(kind, await ago(0))).status).toBe(201);
      await passTime(url, 23 * HOUR);
      const replay = await ask(kind, await ago(23 * HOUR));
      expect([replay.status, replay.headers.get("idempotent-replayed")]).toEqual([201, "true"]);

      await passTime(url, 2 * HOUR);
      // Expired and not purged yet counts as absent, and must not run either.
      expect((await ask(kind, await ago(25 * HOUR))).status).toBe(412);
      expect(await purge()).toBe(1);
      const late = await ask(kind, await ago(25 * HOUR));
      expect(late.status).toBe(412);
      expect(await late.json()).toMatchObject({ code: "idempotency_retry_too_late", retry: "never", state: "none" });
      expect(await things()).toBe(1);
      expect(await query(url, "SELECT FROM oncekey.entry")).toEqual([]);
    });
  }

  it("runs while it is young, also after a purge", async () => {
    const { url, ask, ago, purge, things } = await service();
    await ask("transaction", await ago(0));
    await passTime(url, 25 * HOUR);
    await purge();
    const response = await ask("transaction", await ago(HOUR));
    expect([response.status, response.headers.get("idempotent-replayed")]).toEqual([201, null]);
    expect(await things()).toBe(2);
  });

  it("is judged by the database's clock, wherever the process's own stands", async () => {
    const { ask, ago, things } = await service();
    const [fresh, late] = [await ago(0), await ago(25 * HOUR)];
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 48 * HOUR });
    expect((await ask("transaction", late)).status).toBe(412);
    vi.setSystemTime(Date.now() + 96 * HOUR);
    expect((await ask("transaction", fresh)).status).toBe(201);
    expect(await things()).toBe(1);
  });

  it("is refused for a malformed instant, with nothing run or stored", async () => {
    const { url, ask, things } = await service();
    const response = await ask("transaction", new Date().toISOString());
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: "idempotency_request_invalid", retry: "same_key" });
    expect(await things()).toBe(0);
    expect(await query(url, "SELECT FROM oncekey.entry")).toEqual([]);
  });
});
