import { created, createOncekey, type Recover } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { type Provider, provider } from "../support/provider.ts";

const CLIENT_RETRIES_MS = 10_000;
const WINDOW_MS = 20_000;
const TIMEOUT_MS = 100;
/** What the engine leaves for a send that is slow to start. */
const MARGIN_MS = 1_000;

type Form = (psp: Provider) => Recover<number, { id: string }>;

interface Terms {
  readonly claimCommit?: "synchronous";
  readonly recover?: Form;
  readonly dedupesForMs?: number;
  /** A phase comes before the call. */
  readonly books?: boolean;
}

const dedupes: Form = () => ({ dedupes: { forMs: WINDOW_MS } });
const cancels: Form = (psp) => ({ find: ({ key }) => psp.find(key), cancel: ({ key }) => psp.cancel(key) });

/** Charges whose claim may be lost, on a store whose commits a test can watch. */
async function world({ claimCommit, recover = dedupes, dedupesForMs = WINDOW_MS, books = false }: Terms = {}) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const psp = provider({ dedupes: true });
  const log: string[] = [];
  const once = createOncekey<MemoryTransaction>({
    store: watched(store, log),
    clock: time.clock,
    waitMs: 0,
    leaseMs: 1_000,
    clientRetryWindowMs: CLIENT_RETRIES_MS,
    onError: () => {},
  });
  const charges = once.phases({
    name: "charges.create",
    version: 1,
    maxDurationMs: 1_000,
    maxAttempts: 100,
    ...(claimCommit === undefined ? { claimCommit: "asynchronous", dedupesForMs } : { claimCommit }),
    async run(op) {
      if (books) await op.phase("booked", async () => 1);
      const { id: receipt } = await op.call("pay", {
        timeoutMs: TIMEOUT_MS,
        request: 1,
        async run({ key }) {
          log.push("send");
          return psp.call(key);
        },
        recover: recover(psp),
      });
      return op.complete(async () => created("/charges/1", { receipt }));
    },
  });
  await once.start();
  const scope = { tenant: "acme", client: null };
  const run = () => time.advanceUntil(once.run(charges, { scope, key: "k", input: {} }));
  return { run, time, psp, log };
}

/** Notes how claims are committed, and which intents are. */
function watched(store: ReturnType<typeof memoryStore>, log: string[]): typeof store {
  const claim: typeof store.claim = async (entry, leaseMs, commit) => {
    log.push(`claim ${commit}`);
    return store.claim(entry, leaseMs, commit);
  };
  const openIntent: typeof store.openIntent = async (...given) => {
    const opened = await store.openIntent(...given);
    log.push("intent");
    return opened;
  };
  return Object.create(store, { claim: { value: claim }, openIntent: { value: openIntent } });
}

/** The last age of the entry at which the call is still sent: attempts that fail, until the window is over. */
async function lastSendMs(terms: Terms): Promise<number> {
  const { run, time, psp } = await world(terms);
  const claimedAtMs = time.now();
  let lastMs = 0;
  psp.down = true;
  for (;;) {
    const before = time.now();
    const result = await run();
    if (result.kind === "unknown" && result.reason.startsWith("dedupe_window_over")) return lastMs;
    if (result.kind === "unknown") lastMs = before - claimedAtMs;
    await time.advance(250);
  }
}

describe("a claim that the database may lose", () => {
  it("is asked for by the operation alone", async () => {
    const { run, log } = await world();
    expect((await run()).kind).toBe("completed");
    expect(log).toEqual(["claim asynchronous", "send"]);
    const other = await world({ claimCommit: "synchronous" });
    await other.run();
    expect(other.log).toEqual(["claim synchronous", "send"]);
  });

  it("is made durable by the intent before anything is sent that nobody dedupes", async () => {
    const { run, log } = await world({ recover: cancels, dedupesForMs: 0 });
    expect((await run()).kind).toBe("completed");
    expect(log).toEqual(["claim asynchronous", "intent", "send"]);
  });

  it("shortens the window of its first call by the time for which clients go on", async () => {
    const mostMs = WINDOW_MS - TIMEOUT_MS - MARGIN_MS;
    const lossy = await lastSendMs({});
    expect(lossy).toBeGreaterThan(0);
    expect(lossy).toBeLessThanOrEqual(mostMs - CLIENT_RETRIES_MS);
    const durable = await lastSendMs({ claimCommit: "synchronous" });
    expect(durable).toBeGreaterThan(mostMs - CLIENT_RETRIES_MS);
    expect(durable).toBeLessThanOrEqual(mostMs);
  });

  it("shortens no window behind a phase, whose commit made the claim durable", async () => {
    expect(await lastSendMs({ books: true })).toBeGreaterThan(WINDOW_MS - TIMEOUT_MS - MARGIN_MS - CLIENT_RETRIES_MS);
  });

  it("refuses a call that dedupes for less than start() was told, before anything is sent", async () => {
    for (const dedupesForMs of [0, WINDOW_MS + 1]) {
      const { run, psp } = await world({ dedupesForMs });
      await expect(run()).rejects.toMatchObject({
        code: "oncekey_recover_missing",
        message: expect.stringMatching(/dedupesForMs/),
      });
      expect(psp.sent).toEqual([]);
    }
  });
});
