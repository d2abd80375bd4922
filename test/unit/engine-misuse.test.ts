import { created, createOncekey, type PhasesContext, reject } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";

const scope = () => ({ tenant: "acme", client: null });

type Op = PhasesContext<MemoryTransaction, Record<"body" | "params" | "query", unknown>>;

async function running(run: (op: Op) => Promise<unknown>) {
  const store = memoryStore();
  const once = createOncekey({ store, waitMs: 0, onError: () => {} });
  const operation = once.phases({ name: "a", version: 1, run: run as never });
  await once.start();
  return { store, run: () => once.run(operation, { scope: scope(), key: "k", input: {} }) };
}

const done = (op: Op) => op.complete(async () => created("/a", {}));
const call = { timeoutMs: 100, request: {}, run: async () => 1, recover: { atMostOnce: true } } as const;

describe("code that a resume could not follow", () => {
  const nested: [string, (op: Op) => Promise<unknown>][] = [
    ["a phase inside a phase", (op) => op.phase("outer", () => op.phase("inner", async () => 1))],
    ["a call inside a phase's transaction", (op) => op.phase("outer", () => op.call("inner", call))],
    ["a phase inside op.complete", (op) => op.complete(() => op.phase("inner", async () => created("/a", {})))],
    ["two phases at a time", (op) => Promise.all([op.phase("one", async () => 1), op.phase("two", async () => 2)])],
    ["a phase after op.complete", (op) => done(op).then(() => op.phase("late", async () => 1))],
  ];
  it.each(nested)("is refused: %s", async (_, code) => {
    const { run } = await running((op) => code(op).then(() => done(op)));
    await expect(run()).rejects.toMatchObject({ code: "oncekey_phase_nested" });
  });

  const doubled: [string, (op: Op) => Promise<unknown>][] = [
    ["two phases", (op) => op.phase("x", async () => 1).then(() => op.phase("x", async () => 2))],
    ["two calls", (op) => op.call("x", call).then(() => op.call("x", call))],
    ["a phase and a call", (op) => op.phase("x", async () => 1).then(() => op.call("x", call))],
    ["a phase and the end", (op) => op.phase("complete", async () => 1).then(() => done(op))],
    ["an empty name", (op) => op.phase("", async () => 1)],
    ["a name that no column keeps", (op) => op.call("refund-\0", call)],
    ["names that read alike once stored", (op) => op.call("refund-\ud800", call)],
  ];
  it.each(doubled)("is refused: one name for %s", async (_, code) => {
    const { run } = await running((op) => code(op).then(() => done(op)));
    await expect(run()).rejects.toMatchObject({ code: "oncekey_phase_duplicate" });
  });

  it("is refused: a response from a phase, which would be recorded as a value", async () => {
    for (const answer of [reject(409, { code: "no" }), created("/a", {})]) {
      const { run, store } = await running(async (op) => {
        await op.phase("row", async ({ tx }) => {
          await tx.insert("row", { a: 1 });
          return answer;
        });
        return done(op);
      });
      await expect(run()).rejects.toMatchObject({ code: "oncekey_value_unsupported" });
      expect(store.rows("row")).toHaveLength(0);
    }
  });

  it("is refused: an end without op.complete, and what was committed stays", async () => {
    const { run, store } = await running((op) => op.phase("row", ({ tx }) => tx.insert("row", { a: 1 })));
    await expect(run()).rejects.toMatchObject({ code: "oncekey_complete_missing" });
    await expect(run()).rejects.toMatchObject({ code: "oncekey_complete_missing" });
    expect(store.rows("row")).toHaveLength(1);
  });
});

describe("a binding", () => {
  async function bound(authorize?: () => boolean) {
    const once = createOncekey({ store: memoryStore() });
    const operation = once.transaction({ name: "a", version: 1, run: async () => created("/a", {}) });
    await once.start();
    const handle = idempotent(operation, { scope, ...(authorize && { authorize }) });
    const post = async () => {
      const headers = { "idempotency-key": "k", "content-type": "application/json" };
      const answer = await handle(new Request("http://localhost/a", { method: "POST", headers, body: "{}" }));
      return { status: answer.status, retryAfter: answer.headers.get("retry-after"), body: await answer.json() };
    };
    return { once, post };
  }

  it("answers 403 where authorize refuses, replays included", async () => {
    let allowed = true;
    const { post } = await bound(() => allowed);
    expect((await post()).status).toBe(201);
    allowed = false;
    expect(await post()).toMatchObject({ status: 403, body: { code: "idempotency_forbidden", retry: "same_key" } });
  });

  it("answers 503 with Retry-After while the instance shuts down", async () => {
    const { once, post } = await bound();
    await once.close();
    expect(await post()).toMatchObject({
      status: 503,
      retryAfter: "1",
      body: { code: "idempotency_closing", retry: "same_key", state: "none" },
    });
  });
});
