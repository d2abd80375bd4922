import { createServer, type IncomingMessage } from "node:http";
import Router from "@koa/router";
import { Controller, Module, Post } from "@nestjs/common";
import type { Request as ExpressRequest } from "express";
import type { FastifyRequest } from "fastify";
import Koa, { type Context } from "koa";
import { createOncekey, ok } from "oncekey";
import { idempotent as bindKoa } from "oncekey/koa";
import { memoryStore } from "oncekey/memory";
import { Idempotent, OncekeyModule } from "oncekey/nest";
import { idempotent as bindNode, type NodeListener } from "oncekey/node";
import { describe, expect, expectTypeOf, it } from "vitest";

const once = createOncekey({ store: memoryStore() });
const write = once.transaction({ name: "types.write", version: 1, run: async () => ok({}) });
const wrap = once.capture({ name: "types.wrap", version: 1 });
const scope = () => ({ tenant: "acme", client: null });

describe("types of adapters of Node", () => {
  it("fit node:http, demand the handler of a capture and refuse one beside an operation", () => {
    expectTypeOf(bindNode(write, { scope })).toEqualTypeOf<NodeListener<IncomingMessage>>();
    createServer(bindNode(write, { scope }));
    createServer(bindNode(wrap, { scope, params: (req) => ({ id: req.url ?? "" }) }, (_req, res) => res.end()));
    interface Known extends IncomingMessage {
      tenant: string;
    }
    const known = bindNode(wrap, { scope: (req: Known) => ({ tenant: req.tenant, client: null }) }, (req) => {
      expectTypeOf(req.tenant).toEqualTypeOf<string>();
    });
    expectTypeOf(known).parameter(0).toEqualTypeOf<Known>();
    // @ts-expect-error a capture without a handler
    void (() => bindNode(wrap, { scope }));
    // @ts-expect-error an operation that answers by itself, with a handler
    void (() => bindNode(write, { scope }, () => {}));
  });

  it("fit Koa and its router, whose own context reaches scope", () => {
    const app = new Koa<{ tenant: string }>();
    app.use(bindKoa(write, { scope }));
    app.use(bindKoa(wrap, { scope: (ctx) => ({ tenant: ctx.originalUrl, client: null }) }));
    const router = new Router();
    router.post("/a", bindKoa(write, { scope: (ctx: Context) => ({ tenant: ctx.state.tenant, client: null }) }));
    router.post("/b/:id", bindKoa(wrap, { scope }), (ctx) => {
      expectTypeOf(ctx.params).not.toBeAny();
      ctx.body = ctx.params.id;
    });
    expect(app.use(router.routes())).toBe(app);
  });

  it("fit Nest's modules, applications and method decorators, with either platform's request", () => {
    const module = OncekeyModule.forRoot({ once });
    Module({ imports: [module, OncekeyModule.forRoot({ once, lifecycle: "own" })] });
    class Orders {
      create(): void {}
    }
    Controller()(Orders);
    const decorators: MethodDecorator[] = [
      Post(),
      Idempotent(write, { scope: (req: ExpressRequest) => ({ tenant: req.ip ?? "", client: null }) }),
      Idempotent(write, { scope: (req: FastifyRequest) => ({ tenant: req.ip, client: null }) }),
      Idempotent(wrap, { scope: (req) => ({ tenant: req.originalUrl, client: null }) }),
    ];
    expect(decorators).toHaveLength(4);
    // @ts-expect-error no scope
    expect(() => Idempotent(write, {})).toThrow(/no scope function/);
    // @ts-expect-error no instance
    void (() => OncekeyModule.forRoot({}));
  });
});
