import { created, createOncekey, type OncekeyOptions } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { postgresStore } from "oncekey/postgres";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { gate } from "../support/gate.ts";

type Options = Partial<OncekeyOptions<MemoryTransaction>>;

const instance = (options: Options = {}) => createOncekey({ store: memoryStore(), ...options });
const work = { name: "a", version: 1, run: async () => created("/a", {}) };

describe("start() refuses what would break a promise", () => {
  const refused: [string, Options, RegExp][] = [
    [
      "retention shorter than the client's retry window",
      { retentionMs: 1_000, clientRetryWindowMs: 2_000, waitMs: 10 },
      /clientRetryWindowMs/,
    ],
    ["retention shorter than the wait", { retentionMs: 1_000, clientRetryWindowMs: 0, waitMs: 900 }, /waitMs/],
    ["a lease that is too short", { leaseMs: 50 }, /leaseMs/],
    ["times that are no whole numbers", { waitMs: 0.5 }, /waitMs/],
    ["negative times", { retentionMs: -1 }, /retentionMs/],
    ["times that are no numbers", { leaseMs: Number.NaN }, /leaseMs/],
  ];
  it.each(refused)("%s", async (_, options, message) => {
    const once = instance(options);
    await expect(once.start()).rejects.toMatchObject({
      code: "oncekey_config_invalid",
      message: expect.stringMatching(message),
    });
  });

  it("an option that there is not: misspelt, it would quietly be its default", () => {
    const misspelt = { profle: "stripe" } as Options;
    expect(() => instance(misspelt)).toThrowError(
      expect.objectContaining({ code: "oncekey_config_invalid", message: expect.stringContaining('"profle"') }),
    );
  });

  it("asynchronous claims where one that is lost would have a second effect (V7, V8)", async () => {
    const lossy = { ...work, claimCommit: "asynchronous", maxDurationMs: 1_000 };
    const window = { clientRetryWindowMs: 10_000 };
    const cases = [
      ["capture", { ...lossy, dedupesForMs: 0 }, /run the handler twice/],
      ["transaction", { ...lossy, dedupesForMs: 0 }, /it has no claim/],
      ["phases", lossy, /needs dedupesForMs/],
      ["phases", { ...lossy, dedupesForMs: 10_999 }, /shorter than clientRetryWindowMs and maxDurationMs.*11000/],
      ["phases", { ...lossy, dedupesForMs: -1 }, /dedupesForMs must be/],
      ["phases", { ...lossy, dedupesForMs: 20_000, afterFailure: "runAgain" }, /afterFailure/],
      ["phases", { ...work, dedupesForMs: 20_000 }, /belongs to claimCommit/],
      ["phases", { ...work, claimCommit: "later" }, /claimCommit is/],
    ] as const;
    for (const [kind, definition, message] of cases) {
      const once = instance(window);
      once[kind](definition as never);
      await expect(once.start()).rejects.toMatchObject({
        code: "oncekey_config_invalid",
        message: expect.stringMatching(message),
      });
    }
    for (const dedupesForMs of [0, 11_000]) {
      const once = instance(window);
      once.phases({ ...lossy, dedupesForMs } as never);
      await expect(once.start()).resolves.toBeUndefined();
    }
  });

  it("onStoreDown: run outside capture", async () => {
    const once = instance();
    once.transaction({ ...work, onStoreDown: "run" } as never);
    await expect(once.start()).rejects.toMatchObject({ message: expect.stringMatching(/onStoreDown/) });
  });

  it("a pool that cannot make progress, for kinds that renew a lease", async () => {
    const store = memoryStore();
    const unknown = { ...store, traits: { ...store.traits, renews: "unknown" as const } };
    const once = createOncekey({ store: unknown });
    once.capture({ name: "a", version: 1 });
    await expect(once.start()).rejects.toMatchObject({ message: expect.stringMatching(/control/) });
    const fine = createOncekey({ store: unknown });
    fine.transaction(work);
    await expect(fine.start()).resolves.toBeUndefined();
  });

  it("two operations with one name, aliases included", async () => {
    for (const other of [{ ...work }, { ...work, name: "b", aliases: ["a"] }]) {
      const once = instance();
      once.transaction(work);
      once.transaction(other);
      await expect(once.start()).rejects.toMatchObject({ code: "oncekey_operation_duplicate" });
    }
  });

  it("names, versions and replay headers that cannot be", async () => {
    for (const wrong of [
      { name: "" },
      { name: "a b" },
      { version: 0 },
      { version: 1.5 },
      { replayHeaders: ["Set-Cookie"] },
    ]) {
      const once = instance();
      once.transaction({ ...work, ...wrong });
      await expect(once.start()).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    }
  });

  it("definitions that only types would have refused", async () => {
    const schema = z.strictObject({ a: z.number() });
    const wrong = [
      { run: undefined },
      { input: schema },
      { input: { body: {} } },
      { input: { header: schema } },
      { input: 1 },
      { lookUp: "never" },
    ];
    for (const given of wrong) {
      const once = instance();
      once.transaction({ ...work, ...given } as never);
      await expect(once.start()).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    }
  });

  it("a look-up to be skipped by a kind that cannot", async () => {
    const once = instance();
    once.phases({ ...work, lookUp: "skip" } as never);
    await expect(once.start()).rejects.toMatchObject({ message: expect.stringMatching(/lookUp .* not of phases/) });
  });

  it("a missing store, or something else in its place", async () => {
    for (const store of [undefined, {}, { query: () => {} }]) {
      const once = createOncekey({ store: store as never });
      await expect(once.start()).rejects.toMatchObject({ message: expect.stringMatching(/postgresStore\(fromPg/) });
    }
    expect(() => postgresStore({ query: () => {} } as never)).toThrow(/fromPg/);
  });

  it("a transaction that may outlive its own retention", async () => {
    const once = instance({ retentionMs: 10_000, clientRetryWindowMs: 0 });
    once.transaction({ ...work, maxDurationMs: 10_000 });
    await expect(once.start()).rejects.toMatchObject({ message: expect.stringMatching(/maxDurationMs/) });
  });

  it("fingerprint secrets that share an id", () => {
    expect(() =>
      instance({
        fingerprintSecrets: [
          { id: 1, secret: "a" },
          { id: 1, secret: "b" },
        ],
      }),
    ).toThrow(/ids/);
  });
});

describe("an instance's life", () => {
  const scope = { tenant: "acme", client: null };
  const request = { scope, key: "k", input: {} };

  it("runs nothing before start() and after close()", async () => {
    const once = instance();
    const operation = once.transaction(work);
    await expect(once.run(operation, request)).rejects.toMatchObject({ code: "oncekey_not_started" });
    await once.start();
    expect((await once.run(operation, request)).kind).toBe("completed");
    expect(await once.close()).toEqual({ drained: true });
    await expect(once.run(operation, request)).rejects.toMatchObject({ code: "oncekey_closed" });
    await expect(once.start()).rejects.toMatchObject({ code: "oncekey_closed" });
  });

  it("drains on close, for as long as it is given", async () => {
    const entered = gate();
    const finish = gate();
    const once = instance();
    const operation = once.transaction({
      ...work,
      run: async () => {
        entered.open();
        await finish.promise;
        return created("/a", {});
      },
    });
    await once.start();
    const running = once.run(operation, request);
    await entered.promise;
    expect(await once.close({ graceMs: 30 })).toEqual({ drained: false });
    finish.open();
    expect((await running).kind).toBe("completed");
    expect(await once.close()).toEqual({ drained: true });
  });

  it("refuses operations of another instance, and definitions after start()", async () => {
    const once = instance();
    const foreign = instance().transaction(work);
    await once.start();
    await expect(once.run(foreign, request)).rejects.toMatchObject({ code: "oncekey_operation_unknown" });
    expect(() => once.transaction(work)).toThrow(/before start/);
  });

  it("refuses to run a capture operation without its binding, before any claim", async () => {
    const once = instance();
    const operation = once.capture({ name: "a", version: 1 });
    await once.start();
    await expect(once.run(operation as never, request)).rejects.toMatchObject({ code: "oncekey_config_invalid" });
  });

  it("refuses a missing or malformed scope and key", async () => {
    const once = instance();
    const operation = once.transaction(work);
    await once.start();
    for (const wrong of [
      undefined,
      {},
      { tenant: "" },
      { tenant: "a" },
      { tenant: "a", client: 1 },
      { tenant: "a\0", client: null },
    ]) {
      await expect(once.run(operation, { ...request, scope: wrong as never })).rejects.toMatchObject({
        code: "oncekey_scope_invalid",
      });
    }
    for (const key of ["", " ", "a,b", "é", "x".repeat(256)]) {
      await expect(once.run(operation, { ...request, key })).rejects.toMatchObject({ code: "idempotency_key_invalid" });
    }
  });

  it("keeps tenants, clients and operations apart", async () => {
    const once = instance();
    const a = once.transaction(work);
    const b = once.transaction({ ...work, name: "b" });
    await once.start();
    const results = await Promise.all([
      once.run(a, request),
      once.run(b, request),
      once.run(a, { ...request, scope: { tenant: "globex", client: null } }),
      once.run(a, { ...request, scope: { tenant: "acme", client: "batch" } }),
      once.run(a, { ...request, scope: { tenant: "acme", client: "" } }),
    ]);
    expect(results.map((result) => result.kind)).toEqual(Array(5).fill("completed"));
  });
});
