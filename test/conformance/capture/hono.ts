import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { compress } from "hono/compress";
import { setCookie } from "hono/cookie";
import { HTTPException } from "hono/http-exception";
import { stream } from "hono/streaming";
import { idempotent } from "oncekey/hono";
import { listening } from "../adapter-hosts/listening.ts";
import type { CaptureHost } from "./compare.ts";
import { TEXT, type WaysOf, WIDE } from "./ways.ts";
import { webWays } from "./ways-web.ts";

type Answering = (c: Context) => Response | Promise<Response>;

const ways: WaysOf<Answering> = {
  ...webWays,
  JSON: (c) => c.json({ text: WIDE, amount: 1.5 }),
  text: (c) => c.text(TEXT),
  HTML: (c) => c.html(`<p>${WIDE}</p>`),
  "text beyond ASCII": (c) => c.text(WIDE),
  "writes of text and bytes in turns": (c) =>
    stream(c, async (out) => {
      await out.write("text ");
      await out.write(Buffer.from(WIDE));
    }),
  "compression inside of Oncekey": (c) => c.text(TEXT),
  "compression outside of Oncekey": (c) => c.text(TEXT),
  "a status and Location": (c) => c.json({ id: 9 }, 201, { location: "/orders/9" }),
  "headers of several lines": (c) => {
    c.header("link", "</a>; rel=next", { append: true });
    c.header("link", "</b>; rel=prev", { append: true });
    return c.text(TEXT);
  },
  "several cookies": (c) => {
    setCookie(c, "a", "1");
    setCookie(c, "b", "2");
    return c.text(TEXT);
  },
  "204": (c) => c.body(null, 204),
  "a redirect": (c) => c.redirect("/orders/9", 303),
  "a 404 of the handler's": (c) => c.notFound(),
  "an error that error handling answers": () => {
    throw Object.assign(new Error("refused"), { refuses: true });
  },
  "an error of the framework's own": () => {
    throw new HTTPException(410, { message: "gone" });
  },
};

/** Hono on Node. */
export const honoCapture: CaptureHost<Answering> = {
  name: "hono",
  ways,
  async serve([mount], { operation, scope, ran }) {
    const way = mount?.way ?? "text";
    const answer = ways[way] as Answering;
    const app = new Hono();
    app.onError((error, c) => {
      if ("refuses" in error) return c.json({ error: error.message }, 422);
      return error instanceof HTTPException ? error.getResponse() : c.text("broken", 500);
    });
    const gzips = async (c: Context, next: () => Promise<void>) => {
      c.req.raw.headers.set("accept-encoding", "gzip");
      await compress({ threshold: 0 })(c, next);
    };
    const none = (_c: Context, next: () => Promise<void>) => next();
    const inside = way === "compression inside of Oncekey" ? gzips : none;
    if (way === "compression outside of Oncekey") app.use(gzips);
    app.post("/plain", inside, (c) => answer(c));
    app.post("/once", idempotent(operation, { scope }), inside, (c) => {
      ran();
      return answer(c);
    });
    const { listen, close } = listening();
    // The server's own light Response leaves out the content type of a text until somebody reads the headers.
    return { port: await listen(getRequestListener(app.fetch, { overrideGlobalObjects: false })), close };
  },
};
