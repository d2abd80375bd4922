import { type AfterFailure, createOncekey, type Oncekey, type OncekeyOptions, ok, reject, type Store } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { memoryStore } from "oncekey/memory";
import { fromTransaction, postgresStore } from "oncekey/postgres";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { runCaptured } from "../support/captured.ts";
import { createDatabase, testPool } from "../support/postgres.ts";

const DAY_MS = 86_400_000;
const scope = { tenant: "acme", client: null };
const refusal = { status: 409, headers: [], body: new TextEncoder().encode("sold out") };
const success = { status: 201, headers: [], body: new TextEncoder().encode("yours") };

/** An instance whose operations refuse until they are told otherwise. */
async function seats(
  store: Store<unknown>,
  afterFailure: AfterFailure,
  options: Partial<OncekeyOptions<unknown>> = {},
) {
  const once: Oncekey<unknown> = createOncekey({ store, afterFailure, waitMs: 0, onError: () => {}, ...options });
  const seen: { readonly reference: string; readonly derived: string | null }[] = [];
  let isSoldOut = true;
  const reserve = once.transaction({
    name: "seats.reserve",
    version: 1,
    async run({ reference }) {
      seen.push({ reference, derived: null });
      return isSoldOut ? reject(409, { code: "sold_out" }) : ok({});
    },
  });
  const book = once.phases({
    name: "seats.book",
    version: 1,
    async run(op) {
      const derived = await op.call("ask", {
        timeoutMs: 1_000,
        request: {},
        run: async ({ key }) => key,
        recover: { dedupes: { forMs: 3_600_000 } },
      });
      return op.complete(async ({ reference }) => {
        seen.push({ reference, derived });
        return isSoldOut ? reject(409, { code: "sold_out" }) : ok({});
      });
    },
  });
  const wrap = once.capture({ name: "seats.wrap", version: 1, maxDurationMs: 5_000, reconcile: async () => unsure() });
  await once.start();
  const sweeper = createSweeper(once);
  return {
    seen,
    purge: async () => (await sweeper.runOnce()).purged,
    sell: () => {
      isSoldOut = false;
    },
    run: (kind: "transaction" | "phases", payload: string) =>
      once.run(kind === "transaction" ? reserve : book, { scope, key: "k", input: { body: payload } }),
    capture: async (payload: string) => {
      let runs = 0;
      const handler = async () => {
        runs++;
        return isSoldOut ? refusal : success;
      };
      const result = await runCaptured(wrap, { handler, payload });
      return { kind: result.kind, runs };
    },
  };
}

function unsure(): never {
  throw new Error("Nobody asks here.");
}

const stores: readonly (readonly [string, () => Promise<Store<unknown>>])[] = [
  ["memory", async () => memoryStore() as Store<unknown>],
  [
    "postgres",
    async () => {
      const { url } = await createDatabase();
      return postgresStore(fromPg(testPool(url))) as unknown as Store<unknown>;
    },
  ],
];

describe.each(stores)("after a failure, on %s", (_name, open) => {
  describe.each(["transaction", "phases"] as const)("%s", (kind) => {
    it("replay: the rejection is the key's answer, whatever would happen now", async () => {
      const { run, sell, seen } = await seats(await open(), "replay");
      await run(kind, "a");
      sell();
      expect(await run(kind, "a")).toMatchObject({ kind: "replayed", outcome: { status: 409 } });
      expect(await run(kind, "b")).toMatchObject({ kind: "mismatch" });
      expect(seen).toHaveLength(1);
    });

    it("runAgain: the next request with the key runs, whatever its content; a success is kept", async () => {
      const { run, sell, seen } = await seats(await open(), "runAgain");
      expect(await run(kind, "a")).toMatchObject({ kind: "completed", outcome: { status: 409 } });
      expect(await run(kind, "b")).toMatchObject({ kind: "completed", outcome: { status: 409 } });
      sell();
      expect(await run(kind, "a")).toMatchObject({ kind: "completed", outcome: { status: 200 } });
      expect(await run(kind, "a")).toMatchObject({ kind: "replayed", outcome: { status: 200 } });
      expect(await run(kind, "b")).toMatchObject({ kind: "mismatch" });
      expect(seen).toHaveLength(3);
    });

    it("runAgain: every run is another one for the systems that it asks, purged or not", async () => {
      const { run, sell, purge, seen } = await seats(await open(), "runAgain");
      await run(kind, "a");
      expect(await purge()).toBe(1);
      await run(kind, "a");
      sell();
      await run(kind, "a");
      expect(new Set(seen.map(({ reference }) => reference)).size).toBe(3);
      expect(new Set(seen.map(({ derived }) => derived)).size).toBe(kind === "phases" ? 3 : 1);
    });
  });

  it("capture: the handler runs again after a refusal, and not after a success", async () => {
    const { capture, sell } = await seats(await open(), "runAgain");
    expect(await capture("a")).toEqual({ kind: "completed", runs: 1 });
    expect(await capture("a")).toEqual({ kind: "completed", runs: 1 });
    sell();
    expect(await capture("a")).toEqual({ kind: "completed", runs: 1 });
    expect(await capture("a")).toEqual({ kind: "replayed", runs: 0 });
  });
});

it.each(["transaction", "phases"] as const)(
  "runAgain: a failure that was stored for a time and with a tombstone refuses late retries all the same (%s)",
  async (kind) => {
    const time = fakeClock();
    const store = memoryStore({ clock: time.now }) as Store<unknown>;
    const options = { tombstoneMs: DAY_MS, clock: time.clock };
    await (await seats(store, "replay", options)).run(kind, "a");
    const { run, purge, seen } = await seats(store, "runAgain", options);
    expect(await run(kind, "a")).toMatchObject({ kind: "replayed", outcome: { status: 409 } });
    await time.advance(DAY_MS);
    expect(await run(kind, "a")).toMatchObject({ kind: "gone" });
    await purge();
    expect(await run(kind, "a")).toMatchObject({ kind: "gone" });
    expect(seen).toEqual([]);
  },
);

it("runAgain: a run in a transaction of the caller's is another one too", async () => {
  const { url } = await createDatabase();
  const pool = testPool(url);
  const once = createOncekey({ store: postgresStore(fromPg(pool)), afterFailure: "runAgain", waitMs: 0 });
  const seen: string[] = [];
  const reserve = once.transaction({
    name: "seats.reserve",
    version: 1,
    async run({ reference }) {
      seen.push(reference);
      return reject(409, { code: "sold_out" });
    },
  });
  await once.start();
  await once.run(reserve, { scope, key: "k" });
  const client = await pool.connect();
  await client.query("BEGIN");
  await once.run(reserve, { scope, key: "k", transaction: fromTransaction(client) });
  await client.query("COMMIT");
  client.release();
  expect(new Set(seen).size).toBe(2);
});
