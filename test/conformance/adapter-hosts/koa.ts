import { Readable } from "node:stream";
import Router from "@koa/router";
import Koa, { type Context, type Next } from "koa";
import { idempotent } from "oncekey/koa";
import { type AdapterHarness, type AdapterRoute, bindingOptions } from "oncekey/testing";
import { bodyText } from "./body-text.ts";
import { listening } from "./listening.ts";

type Way = (ctx: Context, text: string) => unknown;

const ways: Readonly<Record<string, Way>> = {
  json: (ctx, text) => {
    ctx.status = 201;
    ctx.body = { text };
  },
  text: (ctx, text) => {
    ctx.body = text;
  },
  "429": (ctx, text) => ctx.throw(429, text),
  "500": (ctx, text) => {
    ctx.status = 500;
    ctx.body = text;
  },
  throw: (_ctx, text) => {
    throw new Error(text);
  },
  eventStream: (ctx, text) => {
    ctx.type = "text/event-stream";
    ctx.body = Readable.from([`data: ${text}\n\n`]);
  },
};

const moreWays: Readonly<Record<string, Way>> = {
  html: (ctx, text) => {
    ctx.body = `<p>${text}</p>`;
  },
  "a buffer": (ctx, text) => {
    ctx.body = Buffer.from(text);
  },
  "a list": (ctx, text) => {
    ctx.body = [text, { text }];
  },
  "a stream": (ctx, text) => {
    ctx.type = "text/plain";
    ctx.body = Readable.from([Buffer.from(text), Buffer.from(text)]);
  },
  "a Response": (ctx, text) => {
    ctx.body = new Response(text, { status: 202, headers: { "content-type": "text/x", location: "/v1/orders/9" } });
  },
  "a Blob": (ctx, text) => {
    ctx.body = new Blob([text], { type: "text/x" });
  },
  "a web stream": (ctx, text) => {
    ctx.body = new Blob([text, text]).stream();
  },
  null: (ctx) => {
    ctx.body = null;
  },
  "an empty 204": (ctx) => {
    ctx.status = 204;
  },
  "a status alone": (ctx) => {
    ctx.status = 202;
  },
  "a redirect": (ctx) => {
    ctx.status = 303;
    ctx.redirect("/v1/orders/9");
  },
  cookies: (ctx, text) => {
    ctx.cookies.set("a", "1");
    ctx.cookies.set("b", "2");
    ctx.body = text;
  },
  "the raw response": (ctx, text) => {
    ctx.respond = false;
    ctx.res.writeHead(200, { "content-type": "text/x" });
    ctx.res.write(text);
    setImmediate(() => ctx.res.end());
  },
  "a thrown 302": (_ctx, text) => {
    throw Object.assign(new Error(text), { status: 302, expose: true, headers: { location: "/v1/orders/9" } });
  },
};

/** Koa with its router as a host of the adapter suite. */
export async function koaHost(): Promise<AdapterHarness> {
  const { listen, close } = listening();
  return {
    ways: Object.keys(moreWays),
    close,
    async serve(routes) {
      const app = new Koa();
      app.silent = true;
      app.use(async (ctx, next) => {
        if (ctx.headers.authorization === undefined) ctx.throw(401, "who are you?");
        await next();
      });
      for (const route of routes) app.use(mounted(route).routes());
      return listen(app.callback());
    },
  };
}

function mounted({ mount, path, operation, binding, existing }: AdapterRoute): Router {
  const options = bindingOptions<Context>(binding, (ctx, name) => ctx.get(name) || undefined);
  const router = new Router({ prefix: mount });
  const bound = idempotent(operation, options);
  if (existing === undefined) return router.post(path, bound);
  const answer = (ways[existing.way] ?? moreWays[existing.way]) as Way;
  return router.post(path, bound, async (ctx: Context, _next: Next) => {
    const body = await bodyText(ctx.req);
    await answer(ctx, await existing.text(body));
  });
}
