import { created, createOncekey, operationStatus, reject, StoreFailure } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { idempotent } from "oncekey/fetch";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import { postgresStore } from "oncekey/postgres";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { createDatabase, passTime, testPool } from "../support/postgres.ts";

const scope = { tenant: "acme", client: "app" };

/** Two processes on one database, with operations that do as their body says. */
async function world() {
  const { url } = await createDatabase();
  const end = gate();
  const begun = gate();
  const start = async () => {
    const once = createOncekey({ store: postgresStore(fromPg(testPool(url))), waitMs: 0, onError: () => {} });
    const does = async (input: unknown) => {
      const { does: what } = (input as { body: { does: string } }).body;
      if (what === "waits") begun.open();
      if (what === "waits") await end.promise;
      if (what === "throws") throw new Error("no");
      return what === "is refused" ? reject(422, {}) : created("/1", {});
    };
    const orders = once.transaction({ name: "orders", version: 1, run: ({ input }) => does(input) });
    const charges = once.phases({
      name: "charges",
      version: 1,
      async run(op) {
        await op.phase("row", async () => 1);
        return op.complete(() => does(op.input));
      },
    });
    const refunds = once.capture({ name: "refunds", version: 1, reconcile: async () => ({ kind: "not_done" }) });
    await once.start();
    const operations = { orders, charges };
    const run = (name: keyof typeof operations, key: string, what: string) =>
      once.run(operations[name], { scope, key, input: { body: { does: what } } });
    const refund = idempotent(refunds, { scope: () => scope }, async () => new Response("", { status: 500 }));
    return { once, run, refund, operations: { ...operations, refunds } };
  };
  const [a, b] = [await start(), await start()];
  const state = async (name: keyof typeof b.operations, key: string, who = scope) => {
    const { status, body } = await operationStatus(b.operations[name])({ scope: who, key });
    return [status, (JSON.parse(body) as { state: string }).state];
  };
  return { url, a, b, end, begun, state };
}

describe("the status of a key", () => {
  it("is that of its outcome, and of no key at all", async () => {
    const { a, state } = await world();
    await a.run("orders", "k", "succeeds");
    await a.run("charges", "f", "is refused");
    expect(await state("orders", "k")).toEqual([200, "succeeded"]);
    expect(await state("orders", '"k"')).toEqual([200, "succeeded"]);
    expect(await state("charges", "f")).toEqual([200, "failed"]);
    expect(await state("orders", "other")).toEqual([404, "none"]);
    expect(await state("charges", "k")).toEqual([404, "none"]);
  });

  it("is told to its own caller only", async () => {
    const { a, state } = await world();
    await a.run("orders", "k", "succeeds");
    for (const who of [
      { tenant: "globex", client: "app" },
      { tenant: "acme", client: "batch" },
      { tenant: "acme", client: null as never },
    ]) {
      expect(await state("orders", "k", who)).toEqual([404, "none"]);
    }
  });

  it("is in progress while another process runs it, with or without a row", async () => {
    for (const name of ["orders", "charges"] as const) {
      const { a, state, begun, end } = await world();
      const running = a.run(name, "k", "waits");
      await begun.promise;
      expect(await state(name, "k")).toEqual([200, "in_progress"]);
      end.open();
      expect((await running).kind).toBe("completed");
      expect(await state(name, "k")).toEqual([200, "succeeded"]);
    }
  });

  it("is unknown where nobody knows, and none where nothing is kept", async () => {
    const { url, a, state } = await world();
    const post = (key: string) =>
      a.refund(new Request("http://localhost/", { method: "POST", headers: { "idempotency-key": key } }));
    await post("k");
    expect(await state("refunds", "k")).toEqual([200, "unknown"]);
    await a.run("orders", "t", "throws").catch(() => {});
    expect(await state("orders", "t")).toEqual([404, "none"]);
    await a.run("orders", "o", "succeeds");
    await passTime(url, 2 * 86_400_000);
    expect(await state("orders", "o")).toEqual([404, "none"]);
    expect(await state("refunds", "k")).toEqual([200, "unknown"]);
  });

  it("changes nothing: what is asked about runs as if nobody had asked", async () => {
    const { a, state } = await world();
    const states = await Promise.all(Array.from({ length: 20 }, () => state("orders", "k")));
    expect(states).toEqual(Array.from({ length: 20 }, () => [404, "none"]));
    expect((await a.run("orders", "k", "succeeds")).kind).toBe("completed");
  });
});

describe("a status that cannot be told", () => {
  const started = async (store = memoryStore()) => {
    const once = createOncekey<MemoryTransaction>({ store });
    const status = operationStatus(once.transaction({ name: "o", version: 1, run: async () => created("/1", {}) }));
    return { once, status };
  };
  const codeOf = ({ body }: { body: string }) => (JSON.parse(body) as { code: string }).code;

  it("is a refusal as elsewhere: no key, a malformed one, several, a store that is down, an instance that is closed", async () => {
    const store = memoryStore();
    const { once, status } = await started(store);
    await once.start();
    for (const key of [undefined, null, []]) {
      expect(codeOf(await status({ scope, key }))).toBe("idempotency_key_missing");
    }
    for (const key of ["", "a,b", ["a", "a"]]) {
      expect(codeOf(await status({ scope, key }))).toBe("idempotency_key_invalid");
    }
    store.read = () => Promise.reject(new StoreFailure("unavailable", "down"));
    const down = await status({ scope, key: "k" });
    expect([down.status, down.headers["retry-after"], codeOf(down)]).toEqual([
      503,
      "1",
      "idempotency_store_unavailable",
    ]);
    await once.close();
    expect(codeOf(await status({ scope, key: "k" }))).toBe("idempotency_closing");
  });

  it("is raised where the developer is at fault", async () => {
    const { status } = await started();
    await expect(status({ scope, key: "k" })).rejects.toMatchObject({ code: "oncekey_not_started" });
    const asked = { scope: { client: null } as never, key: "k" };
    await expect(status(asked)).rejects.toMatchObject({ code: "oncekey_scope_invalid" });
  });
});
