import { created, createOncekey, type OncekeyOptions, type Outcome } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { type FakeClock, fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { StoreFailure } from "../../src/core/store.ts";
import { type CapturedRequest, runCaptured } from "../support/captured.ts";
import { gate } from "../support/gate.ts";

interface Given {
  readonly onStoreDown?: "run";
  readonly notBegun?: readonly number[];
  readonly once?: Partial<OncekeyOptions<MemoryTransaction>>;
  readonly beside?: { readonly time: FakeClock; readonly store: MemoryStore };
}

const answer = (status: number, headers: Outcome["headers"] = []): Outcome => ({
  status,
  headers,
  body: new Uint8Array([1, 0, 255]),
});

async function refunds({ once: options, beside, ...definition }: Given = {}) {
  const time = beside?.time ?? fakeClock();
  const store = beside?.store ?? memoryStore({ clock: time.now });
  const view = Object.create(store) as MemoryStore;
  const once = createOncekey({ store: view, clock: time.clock, leaseMs: 30_000, onError: () => {}, ...options });
  const operation = once.capture({ name: "refunds.create", version: 1, maxDurationMs: 60_000, ...definition });
  await once.start();
  const run = (handler: () => Promise<Outcome>, more: Partial<CapturedRequest> = {}) =>
    runCaptured(operation, { handler, waitMs: 5_000, ...more });
  return { time, store, view, run };
}

/** A handler that answers when it is told to, and how often it was called. */
function held(result: () => Outcome) {
  const end = gate();
  const handler = vi.fn(() => end.promise.then(result));
  return { handler, end: end.open };
}

describe("a duplicate in the process that runs its request", () => {
  it("takes the answer as every later retry will see it", async () => {
    const { run, time } = await refunds();
    const headers: Outcome["headers"] = [
      ["content-type", "text/plain"],
      ["set-cookie", "a=1"],
    ];
    const { handler, end } = held(() => answer(201, headers));
    const [first, second] = [run(handler), run(handler)];
    await time.advance(10);
    end();
    expect(await time.advanceUntil(first)).toEqual({ kind: "completed", outcome: answer(201, headers) });
    const stored = { kind: "replayed", outcome: answer(201, headers.slice(0, 1)) };
    expect(await time.advanceUntil(second)).toEqual(stored);
    expect(await time.advanceUntil(run(handler))).toEqual(stored);
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("of a replay is one as well", async () => {
    const { run, time } = await refunds();
    await time.advanceUntil(run(async () => answer(201)));
    const [first, second] = [run(async () => answer(500)), run(async () => answer(500))];
    expect(await time.advanceUntil(first)).toMatchObject({ kind: "replayed", outcome: { status: 201 } });
    expect(await time.advanceUntil(second)).toMatchObject({ kind: "replayed", outcome: { status: 201 } });
  });

  it("hears that nobody knows where the handler answered 5xx, with that answer for now", async () => {
    const { run, time } = await refunds();
    const { handler, end } = held(() => answer(502, [["set-cookie", "a=1"]]));
    const [first, second] = [run(handler), run(handler)];
    await time.advance(10);
    end();
    expect((await time.advanceUntil(first)).kind).toBe("provisional");
    expect(await time.advanceUntil(second)).toEqual({
      kind: "unknown",
      state: "needs_recovery",
      reason: "handler_failed",
      provisional: answer(502),
      retryAfterMs: 1_000,
    });
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("runs itself where nothing had begun", async () => {
    const { run, time } = await refunds();
    const { handler, end } = held(() => answer(429));
    const second = vi.fn(async () => answer(201));
    const [first, follower] = [run(handler), run(second)];
    await time.advance(10);
    end();
    expect((await time.advanceUntil(first)).kind).toBe("not_begun");
    expect((await time.advanceUntil(follower)).kind).toBe("completed");
    expect([handler, second].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  });

  it("looks for itself where its leader lost the lease", async () => {
    const { run, time } = await refunds();
    const first = run(() => new Promise(() => {}), { waitMs: 0 });
    const follower = run(async () => answer(201), { waitMs: 120_000 });
    expect((await time.advanceUntil(first)).kind).toBe("lease_lost");
    expect(await time.advanceUntil(follower)).toMatchObject({ kind: "unknown", reason: "lease_lost" });
  });

  it("gets the error that its leader got", async () => {
    const { run, time } = await refunds();
    const end = gate();
    const boom = new Error("boom");
    const [first, second] = [run(() => end.promise.then(() => Promise.reject(boom))), run(async () => answer(201))];
    second.catch(() => {});
    await time.advance(10);
    end.open();
    await expect(time.advanceUntil(first)).rejects.toBe(boom);
    await expect(time.advanceUntil(second)).rejects.toBe(boom);
  });

  it("waits as long as it was told to, and not a moment where that is none", async () => {
    const { run, time } = await refunds();
    const { handler, end } = held(() => answer(201));
    const first = run(handler);
    await time.advance(10);
    const atOnce = run(handler, { waitMs: 0 });
    await time.advance(0);
    expect(await atOnce).toEqual({ kind: "busy", retryAfterMs: 1_000 });
    let busy: unknown;
    void run(handler, { waitMs: 2_000 }).then((result) => {
      busy = result;
    });
    await time.advance(1_999);
    expect(busy).toBe(undefined);
    await time.advance(1);
    expect(busy).toEqual({ kind: "busy", retryAfterMs: 1_000 });
    end();
    await time.advanceUntil(first);
  });

  it("is busy at once where too many wait", async () => {
    const { run, time } = await refunds({ once: { maxWaitersPerKey: 1 } });
    const { handler, end } = held(() => answer(201));
    const [first, second] = [run(handler), run(handler)];
    await time.advance(10);
    expect((await run(handler)).kind).toBe("busy");
    end();
    await time.advanceUntil(first);
    expect((await time.advanceUntil(second)).kind).toBe("replayed");
  });

  it("with another payload is a mismatch, at once", async () => {
    const { run, time } = await refunds();
    const { handler, end } = held(() => answer(201));
    const first = run(handler);
    await time.advance(10);
    expect(await run(handler, { payload: "b" })).toEqual({ kind: "mismatch", state: "in_progress" });
    end();
    await time.advanceUntil(first);
    expect(await run(handler, { payload: "b" })).toEqual({ kind: "mismatch", state: "succeeded" });
    expect(handler).toHaveBeenCalledTimes(1);
  });
});

describe("a duplicate in another process", () => {
  it("looks again and again until its time is over, or the answer is there", async () => {
    const here = await refunds();
    const there = await refunds({ beside: here });
    const { handler, end } = held(() => answer(201));
    const first = here.run(handler);
    await here.time.advance(10);
    const busy = await here.time.advanceUntil(there.run(handler, { waitMs: 1_000 }), 1);
    expect(busy).toMatchObject({ kind: "busy" });
    expect(here.time.now() - Date.UTC(2026, 0, 1)).toBeGreaterThanOrEqual(1_000);
    const waiting = there.run(handler, { waitMs: 60_000 });
    await here.time.advance(2_000);
    end();
    await here.time.advanceUntil(first);
    expect((await here.time.advanceUntil(waiting)).kind).toBe("replayed");
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("has no place among more than may wait", async () => {
    const here = await refunds();
    const there = await refunds({ beside: here, once: { maxWaiters: 0 } });
    const { handler, end } = held(() => answer(201));
    const first = here.run(handler);
    await here.time.advance(10);
    const atMs = here.time.now();
    expect((await there.run(handler)).kind).toBe("busy");
    expect(here.time.now()).toBe(atMs);
    end();
    await here.time.advanceUntil(first);
  });
});

describe("an operation that may run while the store is down", () => {
  const away = () => Promise.reject(new StoreFailure("unavailable", "away"));

  it("runs where nothing of the key was seen", async () => {
    for (const method of ["read", "claim"] as const) {
      const { run, view, time } = await refunds({ onStoreDown: "run" });
      view[method] = away;
      const handler = vi.fn(async () => answer(201));
      expect(await time.advanceUntil(run(handler))).toEqual({ kind: "unprotected", outcome: answer(201) });
      expect(handler).toHaveBeenCalledTimes(1);
    }
  });

  it("does not run where the key was seen before the store went down", async () => {
    const here = await refunds();
    const there = await refunds({ onStoreDown: "run", beside: here });
    const { handler, end } = held(() => answer(201));
    const first = here.run(handler);
    await here.time.advance(10);
    const second = vi.fn(async () => answer(202));
    const waiting = there.run(second);
    await here.time.advance(10);
    there.view.read = away;
    expect((await here.time.advanceUntil(waiting)).kind).toBe("store_unavailable");
    expect(second).not.toHaveBeenCalled();
    end();
    await here.time.advanceUntil(first);
  });

  it("does not run for any other failure", async () => {
    const { run, view, time } = await refunds({ onStoreDown: "run" });
    view.read = () => Promise.reject(new StoreFailure("contention", "again"));
    const handler = vi.fn(async () => answer(201));
    expect((await time.advanceUntil(run(handler))).kind).toBe("contention");
    const boom = new Error("a bug");
    view.read = () => Promise.reject(boom);
    await expect(time.advanceUntil(run(handler))).rejects.toBe(boom);
    expect(handler).not.toHaveBeenCalled();
  });
});

describe("a request that skips its look-up and does not validate", () => {
  it("meets its entry all the same, and is refused only where there is none", async () => {
    const time = fakeClock();
    const store = memoryStore({ clock: time.now });
    const release = async (most: number) => {
      const once = createOncekey({ store, clock: time.clock, waitMs: 0 });
      const orders = once.transaction({
        name: "orders.create",
        version: 1,
        lookUp: "skip",
        input: { body: z.object({ a: z.number().max(most) }) },
        run: async () => created("/orders/1", {}),
      });
      await once.start();
      const handle = idempotent(orders, { scope: () => ({ tenant: "acme", client: null }) });
      return async (key: string, a: number) => {
        const headers = { "idempotency-key": key, "content-type": "application/json" };
        const body = JSON.stringify({ a });
        const { status, headers: given } = await handle(
          new Request("http://api.test/", { method: "POST", headers, body }),
        );
        return [status, given.get("idempotent-replayed")];
      };
    };
    expect(await (await release(100))("k", 50)).toEqual([201, null]);
    const tightened = await release(5);
    expect(await tightened("k", 50)).toEqual([201, "true"]);
    expect(await tightened("other", 50)).toEqual([400, null]);
  });
});
