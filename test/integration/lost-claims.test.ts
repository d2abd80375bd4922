import { created, createOncekey, type Recover } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createDatabase, query, startTestServer, type TestServer, testPool } from "../support/postgres.ts";
import { type Provider, provider } from "../support/provider.ts";

const HOUR = 3_600_000;

/** A server of this file's own, for crashing. Nobody writes the log out by himself, so that what survives was waited for. */
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ settings: { wal_writer_delay: "10s", autovacuum: "off" } });
});

afterAll(() => server.close());

interface Terms {
  readonly claimCommit: "synchronous" | "asynchronous";
  readonly recover?: (psp: Provider) => Recover<number, { id: string }>;
  /** A phase comes before the call. */
  readonly books?: boolean;
}

const dedupes = () => ({ dedupes: { forMs: 24 * HOUR } });
const cancels = (psp: Provider) => ({
  find: ({ key }: { key: string }) => psp.find(key),
  cancel: ({ key }: { key: string }) => psp.cancel(key),
});

/** Charges whose first call lands while the database crashes; the answer is lost. */
async function crashedInCall({ claimCommit, recover = dedupes, books = false }: Terms) {
  const { url } = await createDatabase({ server });
  const psp = provider({ dedupes: true });
  const once = createOncekey({
    store: postgresStore(fromPg(testPool(url))),
    clientRetryWindowMs: HOUR,
    onError: () => {},
  });
  const found: unknown[] = [];
  const charges = once.phases({
    name: "charges.create",
    version: 1,
    claimCommit,
    ...(claimCommit === "asynchronous" ? { dedupesForMs: recover === dedupes ? 24 * HOUR : 0 } : {}),
    async run(op) {
      if (books) await op.phase("booked", async () => 1);
      const { id } = await op.call("pay", {
        timeoutMs: 60_000,
        request: 1,
        async run({ key }) {
          const answer = await psp.call(key);
          if (psp.sent.length > 1) return answer;
          await server.restart("immediate");
          found.push(...(await query(url, "SELECT state, attempt FROM oncekey.entry")));
          throw new Error("the connection was cut");
        },
        recover: recover(psp),
      });
      return op.complete(async () => created("/charges/1", { id }));
    },
  });
  await once.start();
  const run = () =>
    once.run(charges, { scope: { tenant: "acme", client: null }, key: "k", input: {}, waitMs: 0 }).catch(() => null);
  const first = await run();
  return { url, psp, run, first, found };
}

it("a crash of the database loses an asynchronous claim; the retry runs, and the other side dedupes its call", async () => {
  const { url, psp, run, first, found } = await crashedInCall({ claimCommit: "asynchronous" });
  expect(found).toEqual([]);
  expect(first?.kind).not.toBe("completed");
  expect(await query(url, "SELECT FROM oncekey.entry")).toEqual([]);
  const results = [];
  // A pool may hand out a connection once more that it does not know to be broken.
  while (results.at(-1) !== "completed" && results.length < 12) results.push((await run())?.kind);
  expect(results.at(-1)).toBe("completed");
  expect(psp.landed).toHaveLength(1);
  expect(psp.sent.length).toBeGreaterThan(1);
  expect(new Set(psp.sent).size).toBe(1);
  const entries = await query(url, "SELECT state, attempt FROM oncekey.entry");
  expect(entries).toEqual([{ state: "succeeded", attempt: 1 }]);
});

it.each([
  ["a synchronous claim", { claimCommit: "synchronous" }],
  ["an asynchronous claim behind which a phase was committed", { claimCommit: "asynchronous", books: true }],
  ["an asynchronous claim whose call has an intent", { claimCommit: "asynchronous", recover: cancels }],
] as const)("the same crash does not lose %s", async (_, terms) => {
  const { psp, found } = await crashedInCall(terms);
  expect(found).toEqual([{ state: "in_progress", attempt: 1 }]);
  expect(psp.landed).toHaveLength(1);
});
