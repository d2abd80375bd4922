import { created, createOncekey, type EncryptionKey, found, none } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";

const LEASE_MS = 1_000;
const scopeOf = (tenant: string) => ({ tenant, client: null });
const ringOf = (id: number): EncryptionKey => ({ id, key: new Uint8Array(32).fill(id) });

/** Two accounts at the payment provider; a key that was used at one is unknown at the other. */
function provider() {
  const accounts = new Map<string, Map<string, string>>();
  const refused: string[] = [];
  const account = (secret: string) => {
    const made = accounts.get(secret);
    if (made === undefined) refused.push(secret);
    return made;
  };
  return { accounts, account, refused };
}

async function world(keys: readonly EncryptionKey[]) {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const psp = provider();
  /** The application's own secrets, by what a request's context names; never stored with an entry. */
  const vault: Record<string, string> = { account_acme: "sk_acme", account_globex: "sk_globex" };
  for (const secret of Object.values(vault)) psp.accounts.set(secret, new Map());
  const asked: string[] = [];
  const worker = async (encryptionKeys: readonly EncryptionKey[], dies: boolean) => {
    const own = Object.create(store) as MemoryStore;
    const once = createOncekey({ store: own, clock: time.clock, leaseMs: LEASE_MS, encryptionKeys, onError: () => {} });
    const operation = once.phases({
      name: "charges.create",
      version: 1,
      async run(op) {
        const { pspAccount } = op.context as { pspAccount: string };
        const secret = vault[pspAccount] ?? "none";
        asked.push(`${op.scope.tenant}:${secret}`);
        const { amount } = op.input.body as { amount: bigint };
        const payment = await op.call("authorize", {
          timeoutMs: 500,
          request: { amount },
          run: async ({ key, request }) => {
            psp.account(secret)?.set(key, `${secret}:${request.amount}`);
            if (dies) {
              own.renew = () => Promise.reject(new Error("dead"));
              for (const method of ["recordCall", "suspend", "markUnknown", "openIntent"] as const) {
                Object.defineProperty(own, method, { value: () => new Promise(() => {}) });
              }
              return new Promise<{ id: string }>(() => {});
            }
            return { id: psp.account(secret)?.get(key) ?? "" };
          },
          recover: {
            find: async ({ key }) => {
              const id = psp.account(secret)?.get(key);
              return id === undefined ? none() : found({ id });
            },
            settlesWithinMs: 5_000,
          },
        });
        return op.complete(async () => created("/charges/1", { payment: payment.id }));
      },
    });
    await once.start();
    const run = (tenant: string, amount: bigint) =>
      once.run(operation, {
        scope: scopeOf(tenant),
        key: "k",
        input: { body: { amount } },
        context: { pspAccount: `account_${tenant}` },
      });
    return { once, operation, run, sweeper: createSweeper(once) };
  };
  const first = await worker(keys, true);
  void first.run("acme", 9_007_199_254_740_993n);
  void first.run("globex", 5n);
  await time.advance(LEASE_MS + 10);
  return { time, store, psp, asked, worker };
}

const taken = async (store: MemoryStore) =>
  store.takeDue({ operation: "charges.create", runKind: "phases", operationVersion: 1 }, 10, 1);

describe("a resume without a client", () => {
  it.each([
    ["in the clear", []],
    ["encrypted", [ringOf(1)]],
  ])("resolves each tenant's own credentials from its declared context, and no other's (%s)", async (_, keys) => {
    const { time, psp, asked, worker } = await world(keys);
    asked.length = 0;
    const { sweeper, run } = await worker(keys, false);
    expect(await time.advanceUntil(sweeper.runOnce())).toMatchObject({ resumed: 2, failed: 0 });
    expect(asked.toSorted()).toEqual(["acme:sk_acme", "globex:sk_globex"]);
    expect([...(psp.accounts.get("sk_acme")?.values() ?? [])]).toEqual(["sk_acme:9007199254740993"]);
    expect([...(psp.accounts.get("sk_globex")?.values() ?? [])]).toEqual(["sk_globex:5"]);
    expect(psp.refused).toEqual([]);
    const replayed = await run("acme", 9_007_199_254_740_993n);
    expect(replayed.kind === "replayed" && Buffer.from(replayed.outcome.body).toString()).toContain("sk_acme:");
  });
});

describe("what is stored for a resume", () => {
  it("does not show input or context where keys are set, and shows them where not", async () => {
    for (const keys of [[], [ringOf(1)]]) {
      const { store } = await world(keys);
      const entries = await taken(store);
      expect(entries).toHaveLength(2);
      for (const { entry } of entries) {
        const text = Buffer.from([...(entry?.input ?? []), ...(entry?.context ?? [])]).toString("latin1");
        expect(text.includes("amount")).toBe(keys.length === 0);
        expect(text.includes("account_")).toBe(keys.length === 0);
      }
    }
  });

  it("is opened by every key of a ring that has moved on", async () => {
    const { time, worker } = await world([ringOf(1)]);
    const { sweeper } = await worker([ringOf(2), ringOf(1)], false);
    expect(await time.advanceUntil(sweeper.runOnce())).toMatchObject({ resumed: 2, failed: 0 });
  });

  it("does not open in another entry: acme's context put into globex's row reaches nothing", async () => {
    const { time, store, psp, worker } = await world([ringOf(1)]);
    const before = psp.accounts.get("sk_acme")?.size;
    const { takeDue } = store;
    let foreign: Uint8Array | null = null;
    store.takeDue = async (...all) => {
      const entries = await takeDue(...all);
      const acme = entries.find(({ entry }) => entry?.tenant === "acme")?.entry;
      foreign = acme?.context ?? foreign;
      return entries.map((one) =>
        one.entry?.tenant === "globex" ? { ...one, entry: { ...one.entry, context: foreign } } : one,
      );
    };
    const { sweeper } = await worker([ringOf(1)], false);
    expect(await time.advanceUntil(sweeper.runOnce())).toMatchObject({ resumed: 1, failed: 1 });
    expect(psp.accounts.get("sk_acme")?.size).toBe(before);
  });

  it("ends in needs_recovery, not in a loop, where no process can open it", async () => {
    const { time, store, worker } = await world([ringOf(1)]);
    const { sweeper } = await worker([ringOf(2)], false);
    let failed = 0;
    for (let round = 0; round < 120; round++) {
      failed += (await time.advanceUntil(sweeper.runOnce())).failed;
      await time.advance(1_000);
    }
    // Five more attempts of each, then the pauses of a given-up entry.
    expect(failed).toBeGreaterThanOrEqual(10);
    expect(failed).toBeLessThanOrEqual(16);
    await time.advance(300_000);
    const entries = await taken(store);
    expect(entries.map(({ from }) => from)).toEqual(["needs_recovery", "needs_recovery"]);
    expect(entries[0]?.entry?.reason).toBe("gave_up: the operation threw (OncekeyError)");
  });
});
