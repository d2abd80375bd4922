import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { gate } from "./gate.ts";
import { LEASE_MS, type RpcAnswer, type RpcHost, type RpcRequest, type RpcWorld, rpcWorld } from "./rpc-world.ts";

const mutations = ["create", "charge", "wrap"] as const;

/** Everything that was done, whoever did it. */
function effects({ store, ran }: RpcWorld): number {
  return store.rows("orders").length + store.rows("charges").length + ran.length;
}

function problem(status: number, code: string, retry: string, state: string) {
  return expect.objectContaining({ kind: "error", status, code, retry, state });
}

/** The cases that tRPC and GraphQL have in common: keys, replays, crashes and refusals over real HTTP. */
export function rpcSuite(host: RpcHost): void {
  describe(host.name, () => {
    let world: RpcWorld;
    beforeEach(() => {
      world = rpcWorld(host);
    });
    afterEach(() => world.close());

    describe.each(mutations)("%s", (mutation) => {
      replays(() => world, mutation);
      keys(() => world, mutation);
    });
    crashes(() => world);
    existingErrors(() => world, host);
    refusals(() => world);
  });
}

function replays(current: () => RpcWorld, mutation: RpcRequest["mutation"]): void {
  const request = { mutation, key: "k-1", input: { item: "tea" } };

  it("runs once and gives the same value again, here and on another instance", async () => {
    const world = current();
    const here = await world.instance();
    const there = await world.instance();
    const first = await here.call(request);
    expect(first).toMatchObject({ kind: "value", value: { item: "tea" }, replayed: false });
    const again = { ...first, replayed: true };
    expect(await here.call(request)).toEqual(again);
    expect(await there.call(request)).toEqual(again);
    expect(effects(world)).toBe(1);
  });

  it("runs once for 50 concurrent duplicates", async () => {
    const world = current();
    const instances = [await world.instance({ waitMs: 5_000 }), await world.instance({ waitMs: 5_000 })];
    const calls = Array.from({ length: 50 }, (_, n) => (instances[n % 2] ?? instances[0])?.call(request));
    const answers = await world.time.advanceUntil(Promise.all(calls));
    expect(answers.map((answer) => answer?.kind)).toEqual(Array(50).fill("value"));
    expect(answers.filter((answer) => answer?.kind === "value" && !answer.replayed)).toHaveLength(1);
    expect(new Set(answers.map((answer) => JSON.stringify({ ...answer, replayed: true }))).size).toBe(1);
    expect(effects(world)).toBe(1);
  });

  it("refuses another input under the key and leaves the first untouched", async () => {
    const world = current();
    const { call } = await world.instance();
    const first = await call(request);
    const other = await call({ ...request, input: { item: "coffee" } });
    expect(other).toEqual(problem(422, "idempotency_payload_mismatch", "new_key", "succeeded"));
    expect(await call(request)).toEqual({ ...first, replayed: true });
    expect(effects(world)).toBe(1);
  });

  it("keeps tenants apart", async () => {
    const world = current();
    const { call } = await world.instance();
    await call(request);
    expect(await call({ ...request, tenant: "globex" })).toMatchObject({ kind: "value", replayed: false });
    expect(effects(world)).toBe(2);
  });

  it("asks authorize on every attempt, replays included", async () => {
    const world = current();
    const { call } = await world.instance();
    await call(request);
    world.allowed = false;
    expect(await call(request)).toEqual(problem(403, "idempotency_forbidden", "same_key", "none"));
    world.allowed = true;
    expect(await call(request)).toMatchObject({ kind: "value", replayed: true });
  });

  it("shows nothing of a developer's error to the client", async () => {
    const world = current();
    const { call } = await world.instance();
    const answer = await call({ ...request, tenant: "" });
    expect(answer).toMatchObject({ kind: "error", status: expect.any(Number) });
    expect(JSON.stringify(answer)).not.toMatch(/scope|tenant|binding/);
    expect(effects(world)).toBe(0);
  });

  it("refuses numbers of which the parser has lost digits", async () => {
    const world = current();
    const { call } = await world.instance();
    const answer = await call({ ...request, input: { item: "tea", amount: 2 ** 53 } });
    expect(answer).toEqual(problem(400, "idempotency_request_invalid", "same_key", "none"));
    expect(await call(request)).toMatchObject({ kind: "value", replayed: false });
    expect(effects(world)).toBe(1);
  });
}

function keys(current: () => RpcWorld, mutation: RpcRequest["mutation"]): void {
  it("refuses a call without a key", async () => {
    const world = current();
    const { call } = await world.instance();
    expect(await call({ mutation, input: { item: "tea" } })).toEqual(
      problem(400, "idempotency_key_missing", "new_key", "none"),
    );
    expect(effects(world)).toBe(0);
  });

  it.each([
    ["empty", '""'],
    ["with a comma", "a,b"],
    ["too long", "k".repeat(256)],
    ["half quoted", '"k'],
    ["with a space", "a b"],
    ["outside ASCII", "k\u00e9y"],
  ])("refuses a key that is %s", async (_, key) => {
    const world = current();
    const { call } = await world.instance();
    const answer = await call({ mutation, key, input: { item: "tea" } });
    expect(answer).toEqual(problem(400, "idempotency_key_invalid", "new_key", "none"));
    expect(answer).toMatchObject({ message: expect.not.stringContaining(key) });
    expect(effects(world)).toBe(0);
  });

  it.each(["__proto__", "constructor", "'; DROP TABLE entry; --".replaceAll(" ", "_"), "k".repeat(255)])(
    "takes %s as a key like any other, quoted or bare",
    async (key) => {
      const world = current();
      const { call } = await world.instance();
      await call({ mutation, key, input: { item: "tea" } });
      const answer = await call({ mutation, key: `"${key}"`, input: { item: "tea" } });
      expect(answer).toMatchObject({ kind: "value", replayed: true });
      expect(effects(world)).toBe(1);
    },
  );
}

function crashes(current: () => RpcWorld): void {
  it("says that the first call still runs, wherever it runs", async () => {
    const world = current();
    const [here, there] = [await world.instance(), await world.instance()];
    const [begun, open] = [gate(), gate()];
    world.existing = async () => {
      begun.open();
      await open.promise;
      return { item: "tea" };
    };
    const request: RpcRequest = { mutation: "wrap", key: "k", input: { item: "tea" } };
    const first = here.call(request);
    await begun.promise;
    const busy = await there.call(request);
    expect(busy).toEqual(problem(409, "idempotency_in_progress", "same_key", "in_progress"));
    expect(busy).toMatchObject({ retryAfterMs: expect.any(Number) });
    const other = await there.call({ ...request, input: { item: "coffee" } });
    expect(other).toEqual(problem(422, "idempotency_payload_mismatch", "new_key", "in_progress"));
    open.open();
    await first;
    expect(await there.call(request)).toMatchObject({ kind: "value", replayed: true });
  });

  it("resumes phases of an instance that died between them", async () => {
    const world = current();
    const dead = await world.instance({ stopped: true });
    const begun = gate();
    world.between = () => {
      begun.open();
      return new Promise(() => {});
    };
    const request: RpcRequest = { mutation: "charge", key: "k", input: { item: "tea" } };
    dead.call(request).catch(() => {});
    await begun.promise;
    world.between = async () => {};
    await world.time.advance(LEASE_MS + 1);
    const alive = await world.instance();
    expect(await alive.call(request)).toMatchObject({ kind: "value", value: { item: "tea" }, replayed: false });
    expect(world.store.rows("charges")).toHaveLength(1);
  });

  it("does not run existing code again whose instance died in it", async () => {
    const world = current();
    const dead = await world.instance({ stopped: true });
    const begun = gate();
    world.existing = () => {
      begun.open();
      return new Promise(() => {});
    };
    const request: RpcRequest = { mutation: "wrap", key: "k", input: { item: "tea" } };
    dead.call(request).catch(() => {});
    await begun.promise;
    await world.time.advance(LEASE_MS + 1);
    const alive = await world.instance();
    const answer = await world.time.advanceUntil(alive.call(request));
    expect(answer).toEqual(problem(409, "idempotency_outcome_unknown", "same_key", "needs_recovery"));
    expect(world.ran).toHaveLength(1);
  });

  it("goes on when the client hangs up, and gives the result to its retry", async () => {
    const world = current();
    const { call } = await world.instance({ waitMs: 5_000 });
    const [begun, open] = [gate(), gate()];
    world.existing = async () => {
      begun.open();
      await open.promise;
      return { item: "tea" };
    };
    const aborting = new AbortController();
    const request: RpcRequest = { mutation: "wrap", key: "k", input: { item: "tea" } };
    const first = call({ ...request, signal: aborting.signal });
    await begun.promise;
    aborting.abort();
    await expect(first).rejects.toThrow();
    const second = call(request);
    open.open();
    expect(await second).toMatchObject({ kind: "value", value: { item: "tea" }, replayed: true });
    expect(world.ran).toHaveLength(1);
  });
}

function existingErrors(current: () => RpcWorld, host: RpcHost): void {
  const request: RpcRequest = { mutation: "wrap", key: "k", input: { item: "tea" } };
  const failing = (world: RpcWorld, error: unknown) => {
    world.existing = async () => {
      throw error;
    };
  };

  it("stores a refusal of existing code and gives the same one again", async () => {
    const world = current();
    const [here, there] = [await world.instance(), await world.instance()];
    failing(world, host.error("conflict", "There is one already."));
    const first = await here.call(request);
    expect(first).toMatchObject({ kind: "error", status: 409, message: "There is one already." });
    world.existing = async () => ({ item: "another" });
    expect(await here.call(request)).toEqual(first);
    expect(await there.call(request)).toEqual(first);
    expect(world.ran).toHaveLength(1);
  });

  it("frees the key where existing code had not begun", async () => {
    const world = current();
    const { call } = await world.instance();
    failing(world, host.error("unauthorized", "Log in first."));
    expect(await call(request)).toMatchObject({ kind: "error", status: 401, message: "Log in first." });
    world.existing = async () => ({ item: "tea" });
    expect(await call(request)).toMatchObject({ kind: "value", replayed: false });
  });

  it.each([
    ["an ordinary error", () => new Error("socket hang up")],
    ["an error that says that nobody waited for the end", () => host.error("gone-silent", "No answer in time.")],
    ["something that is no error", () => ({ status: 409, code: "CONFLICT" })],
  ])("does not know what was done after %s, and does not run again", async (_, make) => {
    const world = current();
    const { call } = await world.instance();
    failing(world, make());
    expect(await call(request)).toMatchObject({ kind: "error" });
    world.existing = async () => ({ item: "tea" });
    const answer = await call(request);
    expect(answer).toEqual(problem(409, "idempotency_outcome_unknown", "same_key", "needs_recovery"));
    expect(world.ran).toHaveLength(1);
  });

  class Money {
    readonly minor = 5;
  }

  it.each([
    ["an instance of a class", () => ({ price: new Money() })],
    ["a Map", () => ({ items: new Map([["a", 1]]) })],
    ["a promise that nobody awaited", () => ({ item: Promise.resolve("tea") })],
    ["a function", () => ({ item: () => "tea" })],
  ])("refuses %s as a value, without showing it and without running again", async (_, make) => {
    const world = current();
    const { call } = await world.instance();
    world.existing = async () => make();
    const answer = await call(request);
    expect(answer).toMatchObject({ kind: "error", status: expect.toSatisfy((status) => status !== 409) });
    expect(await call(request)).toEqual(problem(409, "idempotency_outcome_unknown", "same_key", "needs_recovery"));
    expect(world.ran).toHaveLength(1);
  });

  it.each([null, "text", 0, false, [], [1, [2]], { $date: "no date", __proto: 1 }])(
    "gives the value %j again as it was",
    async (value) => {
      const world = current();
      const { call } = await world.instance();
      world.existing = async () => ({ item: "tea", extra: value });
      const first = await call(request);
      expect(first).toMatchObject({ kind: "value", value: { extra: value } });
      expect(await call(request)).toEqual({ ...first, replayed: true });
    },
  );
}

function refusals(current: () => RpcWorld): void {
  it("gives an operation's rejection as an error, and again", async () => {
    const world = current();
    const { call } = await world.instance();
    const request: RpcRequest = { mutation: "create", key: "k", input: { item: "sold out" } };
    const first: RpcAnswer = await call(request);
    expect(first).toMatchObject({ kind: "error", status: 409, code: "sold_out", message: "Sold out" });
    expect(await call(request)).toEqual(first);
    expect(effects(world)).toBe(0);
  });

  it("answers for the whole process once it is closed", async () => {
    const world = current();
    const { call, once } = await world.instance();
    await once.close();
    const answer = await call({ mutation: "create", key: "k", input: { item: "tea" } });
    expect(answer).toEqual(problem(503, "idempotency_closing", "same_key", "none"));
  });
}
