import { AssertionError } from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { memoryStore } from "oncekey/memory";
import { crashingAt, expectOnce, faultyStore, withDuplicates } from "oncekey/testing";
import { describe, expect, it } from "vitest";

const request = { path: "/orders", body: { amount: 5 } };
const passed = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

describe("expectOnce with a handler that is wrong", () => {
  it.each([
    ["no retry", { retries: 0, scenarios: ["lost_answer"] as const }],
    ["one alone at one moment and no retry", { concurrent: 1, retries: 0, scenarios: ["concurrent"] as const }],
    ["a number of retries that is none", { retries: Number.NaN, scenarios: ["lost_answer"] as const }],
  ])("refuses options that duplicate nothing: %s", async (_name, options) => {
    let effects = 0;
    const app = (_request: Request) => Response.json({ order: ++effects });
    await expect(expectOnce({ app, request, effects: () => effects, ...options })).rejects.toThrow();
  });

  it("refuses a crash whose process died before", async () => {
    const done = new Map<string, number>();
    const at = crashingAt("charged");
    void at.onPoint("charged");
    let effects = 0;
    // Two at one moment share a run; what a crash leaves behind, nobody finds.
    const process = (dying: typeof at | null) => {
      const flying = new Map<string, Promise<number>>();
      const run = async (key: string) => {
        if (dying?.isDead) await new Promise<never>(() => {});
        const order = ++effects;
        await dying?.onPoint("charged");
        done.set(key, order);
        return order;
      };
      return async (key: string) => {
        const running = flying.get(key) ?? run(key);
        flying.set(key, running);
        return done.get(key) ?? (await running);
      };
    };
    const run = expectOnce({ call: process(null), dies: { call: process(at), at }, effects: () => effects });
    await expect(run).rejects.toBeInstanceOf(AssertionError);
  });

  it("waits for a run that was hung up on as long as patience says", async () => {
    let effects = 0;
    let isFirst = true;
    const runs = new Map<string, Promise<void>>();
    const app = async (req: IncomingMessage, res: ServerResponse) => {
      const key = String(req.headers["idempotency-key"]);
      req.resume();
      // The fault: a client that goes away frees its key.
      res.on("close", () => !res.writableEnded && runs.delete(key));
      const tookMs = isFirst ? 900 : 10;
      isFirst = false;
      if (!runs.has(key))
        runs.set(
          key,
          passed(tookMs).then(() => void effects++),
        );
      await runs.get(key);
      res.end("{}");
    };
    const run = expectOnce({ app, request, effects: () => effects, scenarios: ["hang_up"] });
    await expect(run).rejects.toThrow("2 effects instead of 1");
  });
});

describe("expectOnce ends", () => {
  it.each([
    ["a head that the server refuses", { headers: { big: "x".repeat(20_000) } }],
    ["a body that is never read", { body: new Uint8Array(20_000_000) }],
  ])("in time when hanging up on %s", { timeout: 10_000 }, async (_name, more) => {
    const app = (_req: IncomingMessage, _res: ServerResponse) => {};
    const options = { scenarios: ["hang_up"] as const, patienceMs: 300, effects: () => 0 };
    const run = expectOnce({ app, request: { ...request, ...more }, ...options });
    const late = passed(5_000).then(() => "hangs");
    expect(await Promise.race([run.catch((error: unknown) => error), late])).toBeInstanceOf(AssertionError);
  });

  it("and reads no further from an answer that has no end", async () => {
    let pulls = 0;
    const endless = () =>
      new ReadableStream({
        async pull(controller) {
          pulls += 1;
          await passed(5);
          controller.enqueue(new Uint8Array(10));
        },
      });
    const app = (_request: Request) => new Response(endless());
    const options = { scenarios: ["lost_answer"] as const, patienceMs: 100, retries: 1, effects: () => 0 };
    await expect(expectOnce({ app, request, ...options })).rejects.toBeInstanceOf(AssertionError);
    const before = pulls;
    await passed(200);
    expect(pulls).toBeLessThanOrEqual(before + 2);
  });
});

describe("expectOnce with a call that is right", () => {
  it("takes a result that contains itself, as the answers of HTTP clients do", async () => {
    const made = new Map<string, number>();
    const call = async (key: string) => {
      const order = made.get(key) ?? made.size + 1;
      made.set(key, order);
      const answer: Record<string, unknown> = { status: 201, order };
      answer.request = { answer };
      return answer;
    };
    await expectOnce({ call, effects: () => made.size });
  });
});

describe("faultyStore", () => {
  it("leaves a use that another line names to that line", async () => {
    const { store, happened, pending } = faultyStore(memoryStore(), {
      script: [
        { method: "takeDue", fault: "contention" },
        { method: "takeDue", fault: "unavailable", nth: 1 },
      ],
    });
    const take = store.takeDue as unknown as () => Promise<unknown>;
    for (let use = 0; use < 2; use += 1) await take().catch(() => {});
    expect(happened.map(({ fault }) => fault)).toEqual(["unavailable", "contention"]);
    expect(pending).toEqual([]);
  });
});

describe("withDuplicates", () => {
  it("refuses options by which nothing is sent twice, and takes those by which it is", () => {
    const app = (_request: Request) => new Response();
    expect(() => withDuplicates(app, { concurrent: 1, retries: 0 })).toThrow(TypeError);
    expect(() => withDuplicates(app, { concurrent: 2, retries: 0 })).not.toThrow();
  });

  const overHttp = async (duplicated: ReturnType<typeof withDuplicates>, method: string) => {
    const server = createServer(duplicated.listener);
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const [answer] = (await once(httpRequest({ port, method, path: "/a" }).end(), "response")) as [IncomingMessage];
    await once(answer.resume(), "end");
    server.close();
    server.closeAllConnections();
    return answer;
  };

  it("leaves an answer to HEAD its length", async () => {
    const app = (_req: IncomingMessage, res: ServerResponse) => void res.setHeader("content-length", 42).end();
    const duplicated = withDuplicates(app);
    expect((await overHttp(duplicated, "HEAD")).headers["content-length"]).toBe("42");
    const answer = await duplicated.fetch("/a", { method: "HEAD" });
    expect([answer.headers.get("content-length"), answer.body]).toEqual(["42", null]);
    await duplicated.close();
  });

  it("keeps no error for close that is none of an assertion: the suite got it as an answer", async () => {
    const broken = withDuplicates(() => Promise.reject(new Error("broken")));
    expect((await overHttp(broken, "GET")).statusCode).toBe(500);
    await broken.close();
  });

  it("ends the waiting where the caller's signal says so", async () => {
    const silent = withDuplicates((_request: Request) => new Promise<Response>(() => {}));
    const abort = new AbortController();
    const sent = silent.fetch("/a", { method: "POST", signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(sent).rejects.toThrow("enough");
    await expect(silent.fetch("/a", { signal: abort.signal })).rejects.toThrow("enough");
    await silent.close();
  });
});
