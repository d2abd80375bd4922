import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { createGzip } from "node:zlib";
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response, Router } from "express";
import { idempotent } from "oncekey/express";
import { type AdapterHarness, type AdapterRoute, bindingOptions, type ExistingHandler } from "oncekey/testing";
import { listening } from "./listening.ts";

/** What Express 4 and 5 have in common. */
interface ExpressLike {
  (): RequestHandler & { use(...handlers: unknown[]): unknown };
  Router(): Router;
}

type Way = (res: Response, text: string, next: NextFunction) => unknown;

const chunked: Way = (res, text) => {
  res.status(200).type("text/plain");
  res.write(text.slice(0, 3), "utf8", () => res.write(Buffer.from(text.slice(3)), () => res.end()));
};

const ways: Readonly<Record<string, Way>> = {
  json: (res, text) => res.status(201).json({ text }),
  text: (res, text) => res.send(text),
  "429": (res, text) => res.status(429).send(text),
  "500": (res, text) => res.status(500).send(text),
  throw: (_res, text) => {
    throw new Error(text);
  },
  eventStream(res, text) {
    res.writeHead(200, { "Content-Type": "text/event-stream" });
    res.write(`data: ${text}\n\n`);
    res.end();
  },
};

const moreWays: Readonly<Record<string, Way>> = {
  "res.end": (res, text) => res.end(text),
  "res.end in latin1": (res) => res.end("\xe9", "latin1"),
  "res.write in chunks": chunked,
  "res.write and a late end": (res, text) => {
    res.write(text);
    setImmediate(() => res.end());
  },
  "writeHead with a reason": (res, text) => res.writeHead(202, "Taken", { "Content-Type": "text/x" }).end(text),
  "writeHead with a flat list": (res, text) =>
    res.writeHead(200, ["Content-Type", "text/x", "Set-Cookie", "a=1", "Set-Cookie", "b=2"]).end(text),
  flushHeaders: (res, text) => {
    res.setHeader("Content-Type", "text/x");
    res.flushHeaders();
    setImmediate(() => res.end(text));
  },
  "a pipe": (res, text) => Readable.from([Buffer.from(text), Buffer.from(text)]).pipe(res.type("text/plain")),
  "a pipeline": (res, text) =>
    pipeline(Readable.from([text]), new Transform({ transform: (chunk, _, done) => done(null, chunk) }), res),
  "a gzip pipeline": (res, text) => {
    res.type("text/plain").setHeader("Content-Encoding", "gzip");
    return pipeline(Readable.from([text]), createGzip(), res);
  },
  "an empty 204": (res) => res.status(204).end(),
  "a redirect": (res) => res.redirect(303, "/v1/orders/9"),
  sendFile: (res) => res.sendFile(fileURLToPath(new URL("../../../LICENSE", import.meta.url))),
  cookies: (res, text) => res.cookie("a", "1").cookie("b", "2").send(text),
  "a late answer": (res, text) => setTimeout(() => res.json({ text }), 20),
  "an error middleware": (_res, text, next) => next(Object.assign(new Error(text), { status: 302 })),
};

/** Express as a host of the adapter suite. `bodyParser`: one is mounted before the binding. */
export async function expressHost(express: ExpressLike, bodyParser?: RequestHandler): Promise<AdapterHarness> {
  const { listen, close } = listening();
  return {
    // Gzipped bytes differ, and the executor gets them as the handler wrote them: shown by a test of the recorder.
    ways: Object.keys(moreWays).filter((way) => way !== "a gzip pipeline"),
    close,
    async serve(routes) {
      const app = express();
      app.use(authenticate);
      if (bodyParser !== undefined) app.use(bodyParser);
      for (const route of routes) app.use(route.mount, mounted(express.Router(), route));
      app.use(answerErrors);
      return listen(app as never);
    },
  };
}

const authenticate: RequestHandler = (req, res, next) => {
  if (req.headers.authorization === undefined) res.status(401).json({ error: "who are you?" });
  else next();
};

const answerErrors: ErrorRequestHandler = (error: Error & { status?: number }, _req, res, _next) => {
  res.status(error.status ?? 500).json({ error: error.name });
};

function mounted(router: Router, { path, operation, binding, existing }: AdapterRoute): Router {
  const options = bindingOptions<Request>(binding, (req, name) => req.headers[name] as string | undefined);
  const handlers = existing === undefined ? [] : [existingHandler(existing)];
  return router.post(path, idempotent(operation, options), ...handlers);
}

function existingHandler({ way, text }: ExistingHandler): RequestHandler {
  const answer = (ways[way] ?? moreWays[way]) as Way;
  return (req, res, next) => {
    text(req.body)
      .then((given) => answer(res, given, next))
      .catch(next);
  };
}
