import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import Koa, { type Context, type Middleware } from "koa";
import { idempotent } from "oncekey/koa";
import { listening } from "../adapter-hosts/listening.ts";
import type { CaptureHost } from "./compare.ts";
import { BYTES, LONG, lacking, TEXT, type WaysOf, WIDE } from "./ways.ts";
import { FILE_PATH, GZIPPED, type NodeAnswering, nodeWays } from "./ways-node.ts";

type Answering = (ctx: Context) => unknown;

/** On the bare response, which a handler takes away from Koa. */
const raw =
  (answer: NodeAnswering): Answering =>
  async (ctx) => {
    ctx.respond = false;
    ctx.res.statusCode = 200;
    await answer(ctx.res);
  };

const bare = Object.fromEntries(Object.entries(nodeWays).map(([way, answer]) => [way, raw(answer)]));

const body =
  (value: unknown, type?: string, status?: number): Answering =>
  (ctx) => {
    ctx.body = typeof value === "function" ? value() : value;
    if (type !== undefined) ctx.type = type;
    if (status !== undefined) ctx.status = status;
  };

const ways: WaysOf<Answering> = {
  ...(bare as Record<keyof typeof nodeWays, Answering>),
  JSON: body({ text: WIDE, amount: 1.5 }),
  text: body(TEXT),
  HTML: body(`<p>${WIDE}</p>`),
  "text beyond ASCII": body(WIDE),
  "all 256 bytes": body(Buffer.from(BYTES)),
  "an empty body": body(""),
  "a charset": body(Buffer.from("caf\xe9", "latin1"), "text/plain; charset=iso-8859-1"),
  "a long stream": body(() => Readable.from([LONG.subarray(0, 9), LONG.subarray(9)]), "text/plain"),
  "a stream of the web": body(() => new Blob([WIDE]).stream(), "text/plain"),
  "a Response or Blob": body(() => new Blob([WIDE], { type: "text/x" })),
  "a file": body(() => createReadStream(FILE_PATH), "text/plain"),
  "a download": (ctx) => {
    ctx.attachment("terms.txt");
    ctx.body = createReadStream(FILE_PATH);
  },
  "negotiated content": (ctx) => {
    ctx.body = ctx.accepts("json", "html") === "json" ? { text: TEXT } : TEXT;
  },
  ...lacking("templates come from other packages, which set ctx.body", "a template"),
  "gzip by the handler": (ctx) => {
    ctx.set("Content-Encoding", "gzip");
    ctx.type = "text/plain";
    ctx.body = GZIPPED;
  },
  "compression inside of Oncekey": body({ text: TEXT }),
  "compression outside of Oncekey": body({ text: TEXT }),
  "a status and Location": (ctx) => {
    ctx.status = 201;
    ctx.set("Location", "/orders/9");
    ctx.body = { id: 9 };
  },
  "a reason phrase": (ctx) => {
    ctx.status = 202;
    ctx.message = "Taken In";
    ctx.body = TEXT;
  },
  "headers of several lines": (ctx) => {
    ctx.set("Link", ["</a>; rel=next", "</b>; rel=prev"]);
    ctx.append("Link", "</c>; rel=up");
    ctx.body = TEXT;
  },
  "several cookies": (ctx) => {
    ctx.cookies.set("a", "1");
    ctx.cookies.set("b", "2");
    ctx.body = TEXT;
  },
  "204": body(null),
  "204 with a body that must not be sent": body(TEXT, undefined, 204),
  "a redirect": (ctx) => ctx.redirect("/orders/9"),
  "a refusal of the handler's": body({ code: "sold_out" }, "application/problem+json", 409),
  "a 404 of the handler's": () => {},
  "an error that error handling answers": () => {
    throw Object.assign(new Error("refused"), { code: "REFUSED" });
  },
  "an error of the framework's own": (ctx) => ctx.throw(410, "gone"),
};

const compressed: Middleware = async (ctx, next) => {
  await next();
  // A replay is written as it was stored, after all middleware.
  if (ctx.body == null) return;
  ctx.set("Content-Encoding", "gzip");
  ctx.remove("Content-Length");
  const text = typeof ctx.body === "object" && !Buffer.isBuffer(ctx.body) ? JSON.stringify(ctx.body) : ctx.body;
  ctx.body = Readable.from([Buffer.from(text as string)]).pipe(createGzip());
  ctx.type = "application/json";
};

const pass: Middleware = (_ctx, next) => next();

/** Koa 3. */
export const koaCapture: CaptureHost<Answering> = {
  name: "koa 3",
  ways,
  async serve([mount], { operation, scope, ran }) {
    const way = mount?.way ?? "text";
    const answer = ways[way] as Answering;
    const app = new Koa();
    app.silent = true;
    app.use(async (ctx, next) => {
      await next().catch((error: Error & { code?: string }) => {
        if (error.code !== "REFUSED") throw error;
        ctx.status = 422;
        ctx.body = { error: error.message };
      });
    });
    if (way === "compression outside of Oncekey") app.use(compressed);
    const inside = way === "compression inside of Oncekey" ? compressed : pass;
    const once = idempotent(operation, { scope });
    app.use(async (ctx) => {
      const isOnce = ctx.path === mount?.once;
      const run = () => {
        if (isOnce) ran();
        return answer(ctx);
      };
      const handle = () => inside(ctx, async () => void (await run()));
      await (isOnce ? once(ctx, handle) : handle());
    });
    const { listen, close } = listening();
    return { port: await listen(app.callback()), close };
  },
};
