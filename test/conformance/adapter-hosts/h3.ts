import { Readable } from "node:stream";
import { H3, type H3Event, HTTPError, html, redirect, setCookie, toNodeHandler, toResponse } from "h3";
import type { Operation } from "oncekey";
import { idempotent } from "oncekey/h3";
import { type AdapterHarness, type AdapterRoute, bindingOptions } from "oncekey/testing";
import { listening } from "./listening.ts";

type Way = (event: H3Event, text: string) => unknown;

const status = (event: H3Event, code: number, text: string) => {
  event.res.status = code;
  return text;
};

const ways: Readonly<Record<string, Way>> = {
  json: (event, text) => {
    event.res.status = 201;
    return { text };
  },
  text: (_event, text) => text,
  "429": (event, text) => status(event, 429, text),
  "500": (event, text) => status(event, 500, text),
  throw: (_event, text) => {
    throw new Error(text);
  },
  eventStream(event, text) {
    event.res.headers.set("content-type", "text/event-stream");
    return `data: ${text}\n\n`;
  },
};

const moreWays: Readonly<Record<string, Way>> = {
  bytes: (_event, text) => new TextEncoder().encode(text),
  "a web stream": (_event, text) => Readable.toWeb(Readable.from([Buffer.from(text), Buffer.from(text)])),
  "a Blob": (_event, text) => new Blob([text], { type: "text/x" }),
  "a Response": (_event, text) => new Response(text, { status: 202, headers: { "set-cookie": "a=1" } }),
  "null, after an empty 204": (event) => {
    event.res.status = 204;
    return null;
  },
  "a redirect": () => redirect("/v1/orders/9", 303),
  html: (_event, text) => html`<p>${text}</p>`,
  "headers and cookies on the event": (event, text) => {
    setCookie(event, "a", "1");
    setCookie(event, "b", "2");
    event.res.headers.set("location", "/v1/orders/9");
    return text;
  },
  "an HTTPError that is thrown": (_event, text) => {
    throw new HTTPError({ status: 303, message: text, headers: { location: "/v1/orders/9" } });
  },
  "a promise": async (_event, text) => ({ text }),
};

/** h3 2 on Node as a host of the adapter suite. */
export async function h3Host(): Promise<AdapterHarness> {
  const { listen, close } = listening();
  return {
    ways: Object.keys(moreWays),
    close,
    async serve(routes) {
      const app = new H3({ silent: true });
      app.use((event) => {
        if (event.req.headers.get("authorization") === null) throw new HTTPError({ status: 401 });
      });
      for (const route of routes) app.mount(route.mount, mounted(route));
      return listen(toNodeHandler(app) as never);
    },
  };
}

function mounted({ path, operation, binding, existing }: AdapterRoute): H3 {
  const options = bindingOptions<H3Event>(binding, (event, name) => event.req.headers.get(name) ?? undefined);
  const router = new H3();
  if (existing === undefined) return router.post(path, idempotent(operation as Operation<"transaction">, options));
  const answer = (ways[existing.way] ?? moreWays[existing.way]) as Way;
  const handler = async (event: H3Event) =>
    answer(event, await existing.text(await event.req.json().catch(() => undefined)));
  return router.post(path, idempotent(operation as Operation<"capture">, { ...options, toResponse }, handler));
}
