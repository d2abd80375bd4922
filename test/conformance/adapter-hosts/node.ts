import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Operation } from "oncekey";
import { idempotent } from "oncekey/node";
import { type AdapterHarness, type AdapterRoute, bindingOptions } from "oncekey/testing";
import { bodyText } from "./body-text.ts";
import { listening } from "./listening.ts";

type Way = (res: ServerResponse, text: string) => unknown;
type Handle = (req: IncomingMessage, res: ServerResponse) => void;

const ways: Readonly<Record<string, Way>> = {
  json: (res, text) => res.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify({ text })),
  text: (res, text) => res.setHeader("content-type", "text/plain").end(text),
  "429": (res, text) => res.writeHead(429).end(text),
  "500": (res, text) => res.writeHead(500).end(text),
  throw: (_res, text) => {
    throw new Error(text);
  },
  eventStream: (res, text) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(`data: ${text}\n\n`);
    res.end();
  },
};

const moreWays: Readonly<Record<string, Way>> = {
  "res.end in latin1": (res) => res.end("\xe9", "latin1"),
  "chunks and a late end": (res, text) => {
    res.write(text);
    setImmediate(() => res.end(Buffer.from(text)));
  },
  "writeHead with a reason and a flat list": (res, text) =>
    res.writeHead(202, "Taken", ["Content-Type", "text/x", "Set-Cookie", "a=1", "Set-Cookie", "b=2"]).end(text),
  flushHeaders: (res, text) => {
    res.setHeader("Content-Type", "text/x").flushHeaders();
    setImmediate(() => res.end(text));
  },
  "a pipe": (res, text) => Readable.from([Buffer.from(text), Buffer.from(text)]).pipe(res),
  "a pipeline": (res, text) => pipeline(Readable.from([text]), res),
  "an empty 204": (res) => res.writeHead(204).end(),
  "a redirect": (res) => res.writeHead(303, { location: "/v1/orders/9" }).end(),
};

/** Plain `node:http` with a router of a few lines as a host of the adapter suite. */
export async function nodeHost(): Promise<AdapterHarness> {
  const { listen, close } = listening();
  return {
    ways: Object.keys(moreWays),
    close,
    async serve(routes) {
      const served = routes.map((route) => ({ matches: pattern(route), handle: handleOf(route) }));
      return listen((req, res) => {
        const found = served.find(({ matches }) => matches.test(req.url ?? ""));
        if (req.headers.authorization === undefined) res.writeHead(401).end();
        else if (found === undefined) res.writeHead(404).end();
        else found.handle(req, res);
      });
    },
  };
}

const pattern = ({ mount, path }: AdapterRoute): RegExp =>
  new RegExp(`^${mount}${path.replace(":id", "(?<id>[^/?]+)")}(\\?|$)`);

function handleOf(route: AdapterRoute): Handle {
  const { operation, binding, existing } = route;
  const options = {
    ...bindingOptions<IncomingMessage>(binding, (req, name) => req.headers[name] as string | undefined),
    params: (req: IncomingMessage) => ({ id: pattern(route).exec(req.url ?? "")?.groups?.id ?? "" }),
    onError: () => {},
  };
  if (existing === undefined) return idempotent(operation as Operation<"transaction">, options);
  const answer = (ways[existing.way] ?? moreWays[existing.way]) as Way;
  return idempotent(operation as Operation<"capture">, options, async (req, res) => {
    const text = await existing.text(await bodyText(req));
    await answer(res, text);
  });
}
