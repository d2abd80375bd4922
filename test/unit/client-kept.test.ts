import { memoryStorage } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { clientDesk, watchedStorage } from "../support/client-desk.ts";
import { ordersOf, testServer } from "../support/client-orders.ts";
import { json, silence, until } from "../support/client-server.ts";

const server = testServer();
const { order, keys } = ordersOf(server);
const distinct = (list: readonly unknown[]) => new Set(list).size;

describe("a storage that fails", () => {
  it("before the first attempt: nothing is sent, and the result says so", async () => {
    const { storage, medium } = watchedStorage();
    medium.full = true;
    const { client } = clientDesk({ storage });
    expect(await client.submit("cart-1", order())).toMatchObject({
      kind: "not_kept",
      cause: new Error("QuotaExceededError"),
    });
    await expect(client.submission("cart-1", order())).rejects.toThrow("QuotaExceededError");
    medium.full = ({ attempts }) => attempts === 1;
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "not_kept" });
    expect(server.arrived).toEqual([]);
    medium.full = false;
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
  });

  it("when the result is recorded: it is given all the same, with a warning, and a second click gets it too", async () => {
    const { storage, medium } = watchedStorage();
    medium.full = ({ settled }) => settled !== null;
    const { client, told } = clientDesk({ storage });
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
    expect(told()).toContain("warning: result_not_kept");
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
    expect(await client.pending()).toEqual([]);
    expect(server.arrived).toHaveLength(1);
  });

  it("between attempts: the retries go on, with the key that is stored", async () => {
    const { storage, medium } = watchedStorage();
    medium.full = ({ attempts }) => attempts > 1;
    server.replies = [json(503, {}), json(201, {})];
    const { client } = clientDesk({ storage });
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
    expect(keys()).toEqual(Array(2).fill((await storage.get("cart-1"))?.key));
  });

  it("when it is read: nothing is sent, for the answer may lie there", async () => {
    const inner = memoryStorage();
    const storage = { ...inner, get: () => Promise.reject(new Error("damaged")) };
    const { client } = clientDesk({ storage });
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "not_kept", cause: new Error("damaged") });
    expect(server.arrived).toEqual([]);
  });

  it("in its lock, after the work: the result is given", async () => {
    const inner = memoryStorage();
    const exclusively = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
      const result = await inner.exclusively(name, run);
      if (server.arrived.length > 0) throw new Error("The lock cannot be released.");
      return result;
    };
    const { client } = clientDesk({ storage: { ...inner, exclusively } });
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
  });
});

describe("a storage that the user clears while the page lives", () => {
  const cases = [
    ["an unknown outcome", json(503, {}), { kind: "unknown" }, 1],
    ["a success", json(201, {}), { kind: "succeeded" }, 1],
    ["a refusal, which lets a new one begin", json(422, {}), { kind: "refused" }, 2],
  ] as const;
  it.each(cases)(
    "after %s: a warning, and no second key for what may have been carried out",
    async (_, reply, first, made) => {
      server.replies = [reply];
      const { client, storage, told, clock } = clientDesk({ retryWindowMs: 400 });
      const stop = new AbortController();
      if (first.kind === "unknown") {
        // Left open by an abort, so that there is time in its window for another attempt.
        server.replies = [silence];
        const sending = client.submit("cart-1", order(), { signal: stop.signal });
        await until(() => server.arrived.length === 1);
        stop.abort();
        await sending;
      } else expect(await client.submit("cart-1", order())).toMatchObject(first);
      await storage.remove("cart-1");
      clock.wallMs += 1;
      server.replies = [json(201, {})];
      expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
      expect(told()).toContain("warning: storage_cleared");
      expect(distinct(keys())).toBe(made);
      expect(await storage.get("cart-1")).toMatchObject({ settled: { kind: "succeeded" } });
    },
  );

  it("is made up for as long as the client remembers a submission, which has a bound", async () => {
    const { client, storage, told } = clientDesk();
    for (let at = 0; at < 1_000; at++) await client.submission(`cart-${at}`, order());
    for (const { name } of await storage.list()) await storage.remove(name);
    const before = told().length;
    await client.submission("cart-0", order());
    await client.submission("cart-999", order());
    expect(told().slice(before)).toEqual(["created", "warning: storage_cleared", "found"]);
  });

  it("before anything was sent: the key stays that of the submission at hand", async () => {
    const { client, storage, told } = clientDesk();
    const submission = await client.submission("cart-1", order());
    await storage.remove("cart-1");
    expect(await submission.send()).toMatchObject({ kind: "succeeded" });
    expect(keys()).toEqual([submission.key]);
    expect(told()).toContain("warning: storage_cleared");
  });
});

describe("a storage that two tabs share", () => {
  it("shows one tab that the other sends again what was refused here", async () => {
    server.replies = [json(401, {}), silence];
    const storage = memoryStorage();
    const [here, there] = [clientDesk({ storage }), clientDesk({ storage })];
    expect(await here.client.submit("cart-1", order())).toMatchObject({ kind: "refused", retry: "same_key" });
    const stop = new AbortController();
    const sending = there.client.submit("cart-1", order(), { signal: stop.signal });
    await until(() => server.arrived.length === 2);
    expect((await here.client.pending()).map(({ name, sent }) => [name, sent])).toEqual([["cart-1", true]]);
    stop.abort();
    await sending;
  });

  it("keeps the submission that took the place of the one that is discarded", async () => {
    const storage = memoryStorage();
    const [here, there] = [clientDesk({ storage }), clientDesk({ storage })];
    const draft = await here.client.submission("cart-1", order(100));
    const edited = await there.client.submission("cart-1", order(200));
    await draft.discard();
    expect((await storage.get("cart-1"))?.key).toBe(edited.key);
  });

  it("lets nobody overtake, where one in the queue gives up its place", async () => {
    const storage = memoryStorage();
    const order: string[] = [];
    let end = () => {};
    const first = storage.exclusively("cart-1", () => new Promise<void>((done) => (end = done)));
    const stop = new AbortController();
    const second = storage.exclusively("cart-1", async () => order.push("second"), stop.signal);
    const third = storage.exclusively("cart-1", async () => order.push("third"));
    stop.abort(new Error("enough"));
    await expect(second).rejects.toThrow("enough");
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual([]);
    end();
    await Promise.all([first, third]);
    expect(order).toEqual(["third"]);
  });
});
