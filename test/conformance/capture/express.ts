import type { ErrorRequestHandler, Express, NextFunction, Request, RequestHandler, Response } from "express";
import { idempotent } from "oncekey/express";
import { listening } from "../adapter-hosts/listening.ts";
import type { CaptureHost } from "./compare.ts";
import { compressingMiddleware } from "./node.ts";
import { BYTES, LONG, TEXT, type WaysOf, WIDE } from "./ways.ts";
import { FILE_PATH, nodeWays } from "./ways-node.ts";

export type ExpressAnswering = (res: Response, next: NextFunction, req: Request) => unknown;

class Refusal extends Error {
  readonly status = 422;
}

const ways: WaysOf<ExpressAnswering> = {
  ...nodeWays,
  JSON: (res) => res.json({ text: WIDE, amount: 1.5 }),
  text: (res) => res.type("txt").send(TEXT),
  HTML: (res) => res.send(`<p>${WIDE}</p>`),
  "text beyond ASCII": (res) => res.send(WIDE),
  "all 256 bytes": (res) => res.send(Buffer.from(BYTES)),
  "an empty body": (res) => res.send(""),
  "a charset": (res) =>
    res.set("Content-Type", "text/plain; charset=iso-8859-1").send(Buffer.from("caf\xe9", "latin1")),
  "a long stream": (res) => res.type("txt").send(LONG),
  "a stream of the web": nodeWays["a stream of the web"],
  "a Response or Blob": "Express sends neither",
  "a file": (res) => res.sendFile(FILE_PATH),
  "a download": (res) => res.download(FILE_PATH, "terms.txt"),
  "a template": (res) => res.render("page", { text: WIDE }),
  "negotiated content": (res) => res.format({ json: () => res.json({ text: TEXT }), html: () => res.send(TEXT) }),
  "compression inside of Oncekey": (res) => res.json({ text: TEXT }),
  "compression outside of Oncekey": (res) => res.json({ text: TEXT }),
  // Without a repeated name: after earlier headers Node 20 keeps the last of them only, newer versions all.
  "writeHead with a flat list": (res) => res.writeHead(200, ["Content-Type", "text/x", "Set-Cookie", "a=1"]).end(TEXT),
  "writeHead with pairs": "Express has set a header by then, and Node refuses pairs after that",
  "a status and Location": (res) => res.status(201).location("/orders/9").json({ id: 9 }),
  "several cookies": (res) => res.cookie("a", "1").cookie("b", "2", { httpOnly: true }).send(TEXT),
  "headers of several lines": (res) => res.links({ next: "/a", last: "/b" }).append("Link", "</c>; rel=up").send(TEXT),
  "204": (res) => res.sendStatus(204),
  "204 with a body that must not be sent": (res) => res.status(204).send(TEXT),
  "304": (res) => res.status(304).set("ETag", '"1"').end(),
  "a redirect": (res) => res.redirect(303, "/orders/9"),
  "a refusal of the handler's": (res) => res.status(409).jsonp({ code: "sold_out" }),
  "a 404 of the handler's": (res) => res.sendStatus(404),
  "an error that error handling answers": (_res, next) => next(new Refusal("refused")),
  "an error of the framework's own": (_res, next) =>
    next(Object.assign(new Error("gone"), { status: 410, expose: true })),
};

const answerRefusals: ErrorRequestHandler = (error, _req, res, next) => {
  if (error instanceof Refusal) res.status(error.status).json({ error: error.message });
  else next(error);
};

/** Express 4 or 5. */
export function expressCapture(name: string, express: () => Express): CaptureHost<ExpressAnswering> {
  return {
    name,
    ways,
    async serve([mount], { operation, scope, ran }) {
      const way = mount?.way ?? "text";
      const answer = ways[way] as ExpressAnswering;
      const app = express();
      app.engine("txt", (_path: string, options: object, done: (error: null, text: string) => void) =>
        done(null, `<h1>${(options as { text: string }).text}</h1>`),
      );
      app
        .set("view engine", "txt")
        .set("views", import.meta.dirname)
        .set("env", "production");
      const inside = way === "compression inside of Oncekey" ? [compressingMiddleware as RequestHandler] : [];
      if (way === "compression outside of Oncekey") app.use(compressingMiddleware as RequestHandler);
      const handler =
        (counts: () => void): RequestHandler =>
        async (req, res, next) => {
          counts();
          await Promise.resolve(answer(res, next, req)).catch(next);
        };
      app.post(
        "/plain",
        ...inside,
        handler(() => {}),
      );
      app.post("/once", idempotent(operation, { scope }), ...inside, handler(ran));
      app.use(answerRefusals);
      const { listen, close } = listening();
      return { port: await listen(app as never), close };
    },
  };
}
