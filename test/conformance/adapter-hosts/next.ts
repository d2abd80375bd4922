import { createRequire } from "node:module";
import { Readable } from "node:stream";
import type { Operation } from "oncekey";
import { idempotent, type RouteContext } from "oncekey/next";
import { type AdapterHarness, type AdapterRoute, bindingOptions } from "oncekey/testing";
import { fetchListener } from "./fetch-listener.ts";
import { listening } from "./listening.ts";

// Next.js lives in the example's own folder: it is far too big for everybody who works on this package.
const require = createRequire(new URL("../../../examples/frameworks/next/package.json", import.meta.url));

/** What is used of Next's own classes and functions, whose types are not installed here. */
interface NextServer {
  readonly NextRequest: new (request: Request) => Request & { readonly cookies: { get(name: string): unknown } };
  readonly NextResponse: {
    new (
      body: string,
      init?: ResponseInit,
    ): Response & { readonly cookies: { set(name: string, value: string): void } };
    json(value: unknown, init?: ResponseInit): Response;
    redirect(url: string, status: number): Response;
  };
}

const { NextRequest, NextResponse } = require("next/server") as NextServer;
const { redirect, permanentRedirect } = require("next/navigation") as Record<string, (url: string) => never>;

type NextRequest = InstanceType<NextServer["NextRequest"]>;
type Way = (text: string) => Response;
type Handle = (request: NextRequest, context: RouteContext) => Promise<Response>;

const ways: Readonly<Record<string, Way>> = {
  json: (text) => NextResponse.json({ text }, { status: 201 }),
  text: (text) => new Response(text),
  "429": (text) => new Response(text, { status: 429 }),
  "500": (text) => new Response(text, { status: 500 }),
  throw: (text) => {
    throw new Error(text);
  },
  eventStream: (text) => new Response(`data: ${text}\n\n`, { headers: { "content-type": "text/event-stream" } }),
};

const moreWays: Readonly<Record<string, Way>> = {
  "a stream": (text) => new Response(Readable.toWeb(Readable.from([Buffer.from(text)])) as ReadableStream),
  "an empty 204": () => new Response(null, { status: 204 }),
  "NextResponse.redirect": () => NextResponse.redirect("http://127.0.0.1/v1/orders/9", 303),
  "redirect() of next/navigation": () => redirect?.("/v1/orders/9;a=1") as never,
  "permanentRedirect() of next/navigation": () => permanentRedirect?.("/v1/orders/9") as never,
  "cookies of NextResponse": (text) => {
    const response = new NextResponse(text);
    response.cookies.set("a", "1");
    response.cookies.set("b", "2");
    return response;
  },
};

/** A route handler of Next.js, called as Next calls it, as a host of the adapter suite. */
export async function nextHost(): Promise<AdapterHarness> {
  const { listen, close } = listening();
  return {
    ways: Object.keys(moreWays),
    close,
    async serve(routes) {
      const served = routes.map((route) => ({ matches: pattern(route), handle: handleOf(route) }));
      return listen(
        fetchListener(async (request) => {
          const path = new URL(request.url).pathname;
          const found = served.find(({ matches }) => matches.test(path));
          if (request.headers.get("authorization") === null) return new Response(null, { status: 401 });
          const params = Promise.resolve({ ...found?.matches.exec(path)?.groups });
          return found?.handle(new NextRequest(request), { params }) ?? new Response(null, { status: 404 });
        }),
      );
    },
  };
}

const pattern = ({ mount, path }: AdapterRoute): RegExp =>
  new RegExp(`^${mount}${path.replace(":id", "(?<id>[^/?]+)")}$`);

function handleOf({ operation, binding, existing }: AdapterRoute): Handle {
  const options = bindingOptions<NextRequest>(binding, (request, name) => request.headers.get(name) ?? undefined);
  if (existing === undefined) return idempotent(operation as Operation<"transaction">, options);
  const answer = (ways[existing.way] ?? moreWays[existing.way]) as Way;
  return idempotent(operation as Operation<"capture">, options, async (request: NextRequest) => {
    if (!(request instanceof NextRequest)) throw new Error("The handler got another request than Next's own.");
    return answer(await existing.text(await request.json().catch(() => undefined)));
  });
}
