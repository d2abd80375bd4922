import express, { type Request as ExpressRequest } from "express";
import { type FastifyRequest, fastify } from "fastify";
import { type Context, Hono } from "hono";
import { createOncekey, ok } from "oncekey";
import { idempotent as bindExpress } from "oncekey/express";
import { idempotent as bindFastify } from "oncekey/fastify";
import { idempotent as bindFetch } from "oncekey/fetch";
import { idempotent as bindHono } from "oncekey/hono";
import { memoryStore } from "oncekey/memory";
import { describe, expect, expectTypeOf, it } from "vitest";

const once = createOncekey({ store: memoryStore() });
const write = once.transaction({ name: "types.write", version: 1, run: async () => ok({}) });
const wrap = once.capture({ name: "types.wrap", version: 1 });
const scope = () => ({ tenant: "acme", client: null });

describe("adapter types", () => {
  it("fit Express, whose own request reaches scope", () => {
    const app = express();
    app.post("/a", bindExpress(write, { scope }));
    app.post("/b", bindExpress(wrap, { scope: (req: ExpressRequest) => ({ tenant: req.ip ?? "", client: null }) }));
    app.post(
      "/c/:id",
      bindExpress(wrap, { scope: (req) => ({ tenant: req.originalUrl, client: null }) }),
      (req, res) => {
        expectTypeOf(req.params).not.toBeAny();
        res.json({});
      },
    );
    expect(app).toBeDefined();
  });

  it("fit Fastify, whose own request reaches scope and whose handler stays typed", async () => {
    const app = fastify();
    app.post("/a", bindFastify(write, { scope }));
    app.post(
      "/b",
      bindFastify(wrap, { scope: (req: FastifyRequest) => ({ tenant: req.ip, client: null }) }),
      async (req) => {
        expectTypeOf(req).toEqualTypeOf<FastifyRequest>();
        return {};
      },
    );
    app.post("/c", { ...bindFastify(wrap, { scope }), bodyLimit: 10 }, async () => ({}));
    app.post(
      "/d",
      bindFastify(wrap, { scope: (req) => ({ tenant: req.originalUrl, client: null }) }),
      async () => ({}),
    );
    await app.ready();
    await app.close();
  });

  it("fit Hono, whose own context reaches scope", () => {
    const app = new Hono<{ Variables: { tenant: string } }>();
    app.post("/a", bindHono(write, { scope }));
    app.post("/b", bindHono(wrap, { scope: (c: Context) => ({ tenant: c.req.path, client: null }) }), (c) =>
      c.json({}),
    );
    app.post("/c", bindHono(wrap, { scope: (c) => ({ tenant: c.req.url, client: null }) }), (c) =>
      c.text(c.var.tenant),
    );
    expect(app).toBeDefined();
  });

  it("fit the Fetch interface, and demand the handler of a capture", () => {
    expectTypeOf(bindFetch(write, { scope })).toEqualTypeOf<(request: Request) => Promise<Response>>();
    const wrapped = bindFetch(wrap, { scope }, (_request, env: { readonly url: string }) => new Response(env.url));
    expectTypeOf(wrapped).toEqualTypeOf<(request: Request, env: { readonly url: string }) => Promise<Response>>();
    // @ts-expect-error a capture without a handler
    void (() => bindFetch(wrap, { scope }));
  });

  it("demand a scope", () => {
    // @ts-expect-error no scope
    expect(() => bindExpress(write, {})).toThrow(/no scope function/);
    // @ts-expect-error a scope without a client
    void (() => bindHono(write, { scope: () => ({ tenant: "acme" }) }));
  });
});
