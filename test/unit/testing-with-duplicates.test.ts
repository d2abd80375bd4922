import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { type DuplicatesOptions, type TestableApp, withDuplicates } from "oncekey/testing";
import { afterEach, describe, expect, it } from "vitest";

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close().catch(() => {});
});

function duplicated(app: TestableApp, options?: DuplicatesOptions) {
  const wrapped = withDuplicates(app, options);
  open.push(() => wrapped.close());
  return wrapped;
}

/** Serves the wrapped application as a test suite does that knows nothing of duplicates. */
async function served(listener: (req: IncomingMessage, res: ServerResponse) => void): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What every framework's handler does here: counts, and answers a key alike. */
function book() {
  const requests: string[] = [];
  const orders: string[] = [];
  return {
    requests,
    orders,
    take(key: string | undefined, body: unknown) {
      requests.push(JSON.stringify(body));
      if (key === undefined || !orders.includes(key)) orders.push(key ?? "");
      return { order: orders.indexOf(key ?? "") + 1 };
    },
  };
}

type Book = ReturnType<typeof book>;

const FRAMEWORKS: Readonly<Record<string, (orders: Book) => TestableApp>> = {
  "a fetch handler": (orders) => async (request: Request) =>
    Response.json(orders.take(request.headers.get("idempotency-key") ?? undefined, await request.json())),
  hono: (orders) =>
    new Hono().post("/orders", async (c) => c.json(orders.take(c.req.header("idempotency-key"), await c.req.json()))),
  express: (orders) => {
    const app = express().use(express.json());
    app.post("/orders", (req, res) => void res.json(orders.take(req.header("idempotency-key"), req.body)));
    return app;
  },
  fastify: (orders) => {
    const app = fastify();
    app.post("/orders", async (req) => orders.take(req.headers["idempotency-key"] as string, req.body));
    return app;
  },
  koa: (orders) => {
    const app = new Koa();
    app.use(async (ctx) => {
      const chunks: Buffer[] = [];
      for await (const chunk of ctx.req as AsyncIterable<Buffer>) chunks.push(chunk);
      ctx.body = orders.take(ctx.get("idempotency-key"), JSON.parse(Buffer.concat(chunks).toString()));
    });
    return app.callback();
  },
};

const post = (key: string | null, body = '{"amount":5}'): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", ...(key === null ? {} : { "idempotency-key": key }) },
  body,
});

describe.each(Object.entries(FRAMEWORKS))("withDuplicates around %s", (_name, appOf) => {
  it("sends each request with a key several times, with the same bytes, and gives one answer", async () => {
    const orders = book();
    const app = duplicated(appOf(orders), { concurrent: 4, retries: 3 });
    const answer = await app.fetch("/orders", post("k"));
    expect([answer.status, await answer.json()]).toEqual([200, { order: 1 }]);
    expect(orders.requests).toEqual(Array(7).fill('{"amount":5}'));
    expect([orders.orders, app.duplicated]).toEqual([["k"], 1]);
  });

  it("hangs up first where that is asked for", async () => {
    const orders = book();
    const app = duplicated(appOf(orders), { hangUp: true, concurrent: 1, retries: 1 });
    expect(await (await app.fetch("/orders", post("k"))).json()).toEqual({ order: 1 });
    // The one whose client has gone may be read after the others.
    await expect.poll(() => orders.requests.length).toBe(3);
    expect(orders.orders).toEqual(["k"]);
  });

  it("serves a suite that talks to a socket", async () => {
    const orders = book();
    const app = duplicated(appOf(orders));
    const url = await served(app.listener);
    const answer = await fetch(`${url}/orders`, post("k"));
    expect([answer.status, await answer.json()]).toEqual([200, { order: 1 }]);
    expect([orders.requests.length, orders.orders]).toEqual([5, ["k"]]);
  });
});

describe("withDuplicates", () => {
  it("takes the address of a server that runs", async () => {
    const orders = book();
    const url = await served(FRAMEWORKS.express?.(orders) as (req: IncomingMessage, res: ServerResponse) => void);
    const app = duplicated(url, { hangUp: true });
    expect(await (await app.fetch("/orders", post("k"))).json()).toEqual({ order: 1 });
    expect(orders.orders).toEqual(["k"]);
  });

  it("lets pass once what has no key, is safe, or is left out", async () => {
    const seen: string[] = [];
    const handler = (request: Request) => {
      seen.push(`${request.method} ${new URL(request.url).pathname}`);
      return new Response(null, { status: 204 });
    };
    const app = duplicated(handler, { only: ({ path }) => path !== "/other" });
    const key = { "idempotency-key": "k" };
    await app.fetch("/orders", { method: "POST" });
    await app.fetch("/orders", { headers: key });
    await app.fetch("/other", { method: "POST", headers: key });
    expect([seen, app.duplicated]).toEqual([["POST /orders", "GET /orders", "POST /other"], 0]);
  });

  it("gives keys to requests that have none, where that is asked for", async () => {
    const keys: (string | null)[] = [];
    const handler = (request: Request) => {
      keys.push(request.headers.get("x-request-key"));
      return new Response("done");
    };
    const app = duplicated(handler, { addKey: true, keyHeader: "X-Request-Key", concurrent: 2, retries: 0 });
    await app.fetch("/orders", { method: "PUT" });
    await app.fetch("/orders", { method: "DELETE" });
    expect(keys[0]).toBe(keys[1]);
    expect([keys.length, new Set(keys).size]).toEqual([4, 2]);
  });

  it("gives the suite the answer of the run itself, with its cookies and bytes", async () => {
    const bytes = new Uint8Array([0, 255, 10]);
    let calls = 0;
    const app = duplicated(() => {
      calls += 1;
      const headers: [string, string][] =
        calls === 2
          ? [
              ["set-cookie", "a=1"],
              ["set-cookie", "b=2"],
            ]
          : [["idempotent-replayed", "true"]];
      return new Response(bytes, { headers });
    });
    const url = await served(app.listener);
    const answer = await fetch(url, { method: "POST", headers: { "idempotency-key": "k" } });
    expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(new Uint8Array(await answer.arrayBuffer())).toEqual(bytes);
  });

  it("raises where a duplicate is answered in another way", async () => {
    let orders = 0;
    const app = duplicated(() => {
      orders += 1;
      return Response.json({ orders });
    });
    await expect(app.fetch("/orders", post("k"))).rejects.toThrow(
      /^POST \/orders: two answers to one key \(duplicates at one moment\)[\s\S]*1 × sent at one moment: 200 \{"orders":1\}[\s\S]*made anew/,
    );
  });

  it("answers 500 with the message behind a listener, and raises it once more at the end", async () => {
    let orders = 0;
    const app = withDuplicates((_req: IncomingMessage, res: ServerResponse) => {
      orders += 1;
      res.statusCode = orders === 1 ? 201 : 500;
      res.end();
    });
    const url = await served(app.listener);
    const answer = await fetch(`${url}/orders`, post("k"));
    expect(answer.status).toBe(500);
    expect(await answer.text()).toContain("POST /orders: a duplicate failed: 500");
    await expect(app.close()).rejects.toThrow("a duplicate failed: 500");
  });

  it("raises where a listener rejects because its client has gone", async () => {
    let requests = 0;
    const listener = async (_req: IncomingMessage, res: ServerResponse) => {
      requests += 1;
      if (requests === 1) {
        await new Promise((resolve) => res.once("close", resolve));
        throw new RangeError("write after end");
      }
      res.end();
    };
    const app = duplicated(listener, { hangUp: true });
    await expect(app.fetch("/orders", post("k"))).rejects.toThrow(
      /the run whose client had gone failed: threw RangeError: write after end/,
    );
  });
});
