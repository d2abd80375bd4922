import { createOncekey, happened, ok, respond } from "oncekey";
import { idempotent, type LambdaContext, type LambdaResult } from "oncekey/lambda";
import { memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { identityOf } from "../../src/core/identity.ts";

const MARGIN_MS = 500;
const scope = () => ({ tenant: "acme", client: null });
const options = { scope, deadlineMarginMs: MARGIN_MS };
const never = () => new Promise<never>(() => {});

const event = {
  rawPath: "/orders",
  headers: { "idempotency-key": "k", "content-type": "application/json" },
  body: "{}",
  requestContext: { http: { method: "POST" } },
};

type Bound = (given: typeof event, context: LambdaContext) => Promise<LambdaResult>;

/** A store and its clock; each process is an instance of its own, and may be stopped with all its timers. */
function world() {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const instance = ({ killedAfterMs = Infinity } = {}) => {
    const bornAtMs = time.clock.monotonicMs();
    const alive = () => time.clock.monotonicMs() - bornAtMs < killedAfterMs;
    const after = (ms: number, fire: () => void) => time.clock.after(ms, () => alive() && fire());
    return createOncekey({
      store: Object.create(store) as typeof store,
      clock: { ...time.clock, after },
      onError() {},
    });
  };
  const invoke = (bound: Bound, functionMs: number) => {
    const endsAtMs = time.clock.monotonicMs() + functionMs;
    return bound(event, { getRemainingTimeInMillis: () => endsAtMs - time.clock.monotonicMs() });
  };
  const entry = (name: string) => store.read(identityOf(scope(), name, "k").id);
  return { time, store, instance, invoke, entry };
}

const codeOf = ({ body }: LambdaResult): unknown => (JSON.parse(body) as { code?: unknown }).code;

describe("a function's deadline", () => {
  it("takes no time left for what it is: nothing is run or claimed, and the key stays free", async () => {
    const { instance, invoke, entry } = world();
    const once = instance();
    let runs = 0;
    const run = async () => ok({ run: ++runs });
    const bounds: Record<string, Bound> = {
      transaction: idempotent(once.transaction({ name: "transaction", version: 1, run }), options),
      phases: idempotent(once.phases({ name: "phases", version: 1, run: (op) => op.complete(run) }), options),
      capture: idempotent(once.capture({ name: "capture", version: 1 }), options, async () => ({ run: ++runs })),
    };
    await once.start();
    for (const [name, bound] of Object.entries(bounds)) {
      for (const functionMs of [0, MARGIN_MS, -1]) {
        const refused = await invoke(bound, functionMs);
        expect([refused.statusCode, codeOf(refused), refused.headers?.["retry-after"]]).toEqual([
          503,
          "idempotency_closing",
          "1",
        ]);
      }
      expect([await entry(name), runs]).toEqual([null, 0]);
      expect((await invoke(bound, MARGIN_MS + 1)).statusCode).toBe(200);
      // What is stored needs no time to run.
      expect((await invoke(bound, 0)).headers).toMatchObject({ "idempotent-replayed": "true" });
      expect(runs).toBe(1);
      runs = 0;
    }
  });

  it("ends a transaction that outlives it, answers 503 in time and stores nothing", async () => {
    const { time, instance, invoke, store } = world();
    const once = instance();
    let aborted = false;
    let hangs = true;
    const operation = once.transaction({
      name: "orders.create",
      version: 1,
      async run({ tx, signal }) {
        signal.addEventListener("abort", () => {
          aborted = true;
        });
        await tx.insert("orders", { id: 1 });
        return hangs ? never() : ok({});
      },
    });
    await once.start();
    const bound = idempotent(operation, options);
    const answer = await time.advanceUntil(invoke(bound, 3_000));
    expect([answer.statusCode, codeOf(answer), aborted]).toEqual([503, "idempotency_lease_lost", true]);
    expect(time.clock.monotonicMs()).toBeLessThanOrEqual(3_000 - MARGIN_MS + 10);
    expect(store.rows("orders")).toEqual([]);
    hangs = false;
    expect((await time.advanceUntil(invoke(bound, 3_000))).statusCode).toBe(200);
    expect(store.rows("orders")).toHaveLength(1);
  });

  it("ends phases that outlive it; the retry right after the deadline goes on from the recovery point", async () => {
    const { time, instance, invoke } = world();
    const once = instance();
    const first = vi.fn(async () => 7);
    let hangs = true;
    const operation = once.phases({
      name: "charges.create",
      version: 1,
      async run(op) {
        const value = await op.phase("first", first);
        if (hangs) await never();
        return op.complete(async () => ok({ value }));
      },
    });
    await once.start();
    const bound = idempotent(operation, options);
    const answer = await time.advanceUntil(invoke(bound, 6_000));
    expect([answer.statusCode, codeOf(answer)]).toEqual([503, "idempotency_lease_lost"]);
    expect(time.clock.monotonicMs()).toBeLessThanOrEqual(6_000 - MARGIN_MS + 10);
    await time.advance(6_000 + MARGIN_MS - time.clock.monotonicMs());
    hangs = false;
    const startedAtMs = time.clock.monotonicMs();
    expect((await time.advanceUntil(invoke(bound, 6_000))).body).toBe('{"value":7}');
    expect(time.clock.monotonicMs() - startedAtMs).toBeLessThan(1_000);
    expect(first).toHaveBeenCalledTimes(1);
  });

  it.each([3_000, 20_000, 50_000])(
    "holds no lease past its end of %i ms, so that the retry finds a killed run at once",
    async (functionMs) => {
      const { time, instance, invoke, entry } = world();
      const killed = instance({ killedAfterMs: functionMs - MARGIN_MS - 100 });
      const hanging = killed.phases({ name: "charges.create", version: 1, run: () => never() });
      await killed.start();
      void invoke(idempotent(hanging, options), functionMs);
      await time.advance(functionMs);
      expect((await entry("charges.create"))?.state).toBe("in_progress");
      // What a lease lasts longer than the end of its run: a tenth of it, two seconds at most.
      await time.advance(2_000);
      const once = instance();
      const operation = once.phases({
        name: "charges.create",
        version: 1,
        run: (op) => op.complete(async () => ok({})),
      });
      await once.start();
      const startedAtMs = time.clock.monotonicMs();
      expect((await time.advanceUntil(invoke(idempotent(operation, options), 10_000))).statusCode).toBe(200);
      expect(time.clock.monotonicMs() - startedAtMs).toBeLessThan(1_000);
    },
  );

  it("ends the wait for a captured handler that outlives it; what it did is unknown until reconcile says", async () => {
    const { time, instance, invoke, entry } = world();
    const once = instance();
    const reconcile = vi.fn(async () => happened(respond(201, "found")));
    const operation = once.capture({ name: "refunds.create", version: 1, maxDurationMs: 10_000, reconcile });
    await once.start();
    const handler = vi.fn(never);
    const bound = idempotent(operation, options, handler);
    const answer = await time.advanceUntil(invoke(bound, 3_000));
    expect([answer.statusCode, codeOf(answer)]).toEqual([503, "idempotency_lease_lost"]);
    expect(time.clock.monotonicMs()).toBeLessThanOrEqual(3_000 - MARGIN_MS + 10);
    expect((await entry("refunds.create"))?.state).toBe("needs_recovery");
    // The fence does not reach what a handler writes: it is asked once no old attempt can be at work any more.
    await time.advance(10_000 + 60_000);
    const again = await time.advanceUntil(invoke(bound, 3_000));
    expect([again.statusCode, again.body]).toEqual([201, "found"]);
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("finds a captured handler that was killed in mid-air unknown, and never runs it again by itself", async () => {
    const { time, instance, invoke, entry } = world();
    const killed = instance({ killedAfterMs: 1_000 });
    const name = "refunds.create";
    const hanging = killed.capture({ name, version: 1 });
    await killed.start();
    void invoke(idempotent(hanging, options, never), 3_000);
    await time.advance(3_000);
    const once = instance();
    const operation = once.capture({ name, version: 1 });
    await once.start();
    const handler = vi.fn(async () => ({}));
    const answer = await time.advanceUntil(invoke(idempotent(operation, options, handler), 3_000));
    expect([answer.statusCode, codeOf(answer)]).toEqual([409, "idempotency_outcome_unknown"]);
    expect((await entry(name))?.state).toBe("needs_recovery");
    expect(handler).not.toHaveBeenCalled();
  });

  it("bounds the wait for a running duplicate", async () => {
    const { time, instance, invoke } = world();
    const define = async () => {
      const once = instance();
      const operation = once.phases({ name: "charges.create", version: 1, run: () => never() });
      await once.start();
      return idempotent(operation, options);
    };
    void invoke(await define(), 20_000);
    await time.advance(10);
    const startedAtMs = time.clock.monotonicMs();
    const answer = await time.advanceUntil(invoke(await define(), 2_000));
    expect([answer.statusCode, codeOf(answer)]).toEqual([409, "idempotency_in_progress"]);
    expect(time.clock.monotonicMs() - startedAtMs).toBeLessThanOrEqual(2_000 - MARGIN_MS + 20);
  });

  it("refuses to guess: no context, a senseless margin, a handler whose end it cannot see", async () => {
    const { instance } = world();
    const once = instance();
    const write = once.transaction({ name: "orders.create", version: 1, run: async () => ok({}) });
    const wrap = once.capture({ name: "refunds.create", version: 1 });
    await once.start();
    const bound = idempotent(write, options) as (given: unknown, context?: unknown) => Promise<unknown>;
    for (const context of [undefined, null, {}]) {
      await expect(bound(event, context)).rejects.toThrow(/called without Lambda's context/);
    }
    for (const deadlineMarginMs of [-1, Number.NaN]) {
      expect(() => idempotent(write, { scope, deadlineMarginMs })).toThrow(/deadlineMarginMs must be/);
    }
    const callback = (_event: unknown, _context: unknown, done: () => void) => done();
    expect(() => idempotent(wrap, options, callback as never)).toThrow(/a callback or a response stream/);
  });
});
