import { Readable } from "node:stream";
import type { Operation } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { type AdapterHarness, type AdapterRoute, bindingOptions } from "oncekey/testing";
import { fetchListener } from "./fetch-listener.ts";
import { listening } from "./listening.ts";

type Way = (text: string) => Response;
type Handle = (request: Request) => Promise<Response>;

const ways: Readonly<Record<string, Way>> = {
  json: (text) => Response.json({ text }, { status: 201 }),
  text: (text) => new Response(text),
  "429": (text) => new Response(text, { status: 429 }),
  "500": (text) => new Response(text, { status: 500 }),
  throw: (text) => {
    throw new Error(text);
  },
  eventStream: (text) => new Response(`data: ${text}\n\n`, { headers: { "content-type": "text/event-stream" } }),
};

const moreWays: Readonly<Record<string, Way>> = {
  bytes: (text) => new Response(new TextEncoder().encode(text)),
  "a stream": (text) => new Response(Readable.toWeb(Readable.from([Buffer.from(text)])) as ReadableStream),
  "an empty 204": () => new Response(null, { status: 204 }),
  "a redirect": () => new Response(null, { status: 303, headers: { location: "/v1/orders/9" } }),
  cookies: (text) => {
    const response = new Response(text);
    for (const cookie of ["a=1", "b=2"]) response.headers.append("set-cookie", cookie);
    return response;
  },
};

/** The Fetch interface behind a bridge to `node:http` as a host of the adapter suite. */
export async function fetchHost(): Promise<AdapterHarness> {
  const { listen, close } = listening();
  return {
    ways: Object.keys(moreWays),
    close,
    async serve(routes) {
      const served = routes.map((route) => ({
        matches: pattern(route),
        handle: handleOf(route),
      }));
      return listen(
        fetchListener(async (request) => {
          if (request.headers.get("authorization") === null) return new Response(null, { status: 401 });
          const found = served.find(({ matches }) => matches.test(new URL(request.url).pathname));
          return found?.handle(request) ?? new Response(null, { status: 404 });
        }),
      );
    },
  };
}

const pattern = ({ mount, path }: AdapterRoute): RegExp =>
  new RegExp(`^${mount}${path.replace(":id", "(?<id>[^/?]+)")}(\\?|$)`);

function handleOf(route: AdapterRoute): Handle {
  const { operation, binding, existing } = route;
  const matches = pattern(route);
  const options = {
    ...bindingOptions<Request>(binding, (request, name) => request.headers.get(name) ?? undefined),
    params: (request: Request) => ({ id: matches.exec(new URL(request.url).pathname)?.groups?.id ?? "" }),
  };
  if (existing === undefined) return idempotent(operation as Operation<"transaction">, options);
  const answer = (ways[existing.way] ?? moreWays[existing.way]) as Way;
  return idempotent(operation as Operation<"capture">, options, async (request) =>
    answer(await existing.text(await request.json().catch(() => undefined))),
  );
}
