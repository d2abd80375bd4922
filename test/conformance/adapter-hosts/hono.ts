import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { stream } from "hono/streaming";
import { idempotent } from "oncekey/hono";
import { type AdapterHarness, type AdapterRoute, bindingOptions } from "oncekey/testing";
import { listening } from "./listening.ts";

type Way = (c: Context, text: string) => Response | Promise<Response>;

const ways: Readonly<Record<string, Way>> = {
  json: (c, text) => c.json({ text }, 201),
  text: (c, text) => c.text(text),
  "429": (c, text) => c.text(text, 429),
  "500": (c, text) => c.text(text, 500),
  throw: (_c, text) => {
    throw new Error(text);
  },
  eventStream: (c, text) => c.body(`data: ${text}\n\n`, 200, { "content-type": "text/event-stream" }),
};

const moreWays: Readonly<Record<string, Way>> = {
  "a buffer": (c, text) => c.body(new TextEncoder().encode(text)),
  "a stream": (c, text) =>
    stream(c, async (out) => {
      for (const part of [text, text]) await out.write(part);
    }),
  "a Response": (_c, text) => new Response(text, { status: 202, headers: { "set-cookie": "a=1" } }),
  "an empty 204": (c) => c.body(null, 204),
  "a redirect": (c) => c.redirect("/v1/orders/9", 303),
  html: (c, text) => c.html(`<p>${text}</p>`),
};

/** Hono on Node as a host of the adapter suite. */
export async function honoHost(): Promise<AdapterHarness> {
  const { listen, close } = listening();
  return {
    ways: Object.keys(moreWays),
    // @hono/node-server's own default.
    untypedAs: "text/plain; charset=UTF-8",
    close,
    async serve(routes) {
      const app = new Hono();
      app.use(async (c, next) => {
        if (c.req.header("authorization") === undefined) return c.json({ error: "who are you?" }, 401);
        return next();
      });
      for (const route of routes) app.route(route.mount, mounted(route));
      app.onError((error, c) => c.json({ error: error.name }, 500));
      return listen(getRequestListener(app.fetch));
    },
  };
}

function mounted({ path, operation, binding, existing }: AdapterRoute): Hono {
  const options = bindingOptions<Context>(binding, (c, name) => c.req.header(name));
  const bound = idempotent(operation, options);
  const router = new Hono();
  if (existing === undefined) return router.post(path, bound);
  const answer = (ways[existing.way] ?? moreWays[existing.way]) as Way;
  return router.post(path, bound, async (c) =>
    answer(c, await existing.text(await c.req.json().catch(() => undefined))),
  );
}
