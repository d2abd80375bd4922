import { Readable } from "node:stream";
import { H3, type H3Event, HTTPError, html, redirect, setCookie, toNodeHandler, toResponse } from "h3";
import { idempotent } from "oncekey/h3";
import { listening } from "../adapter-hosts/listening.ts";
import type { CaptureHost } from "./compare.ts";
import { BYTES, LONG, TEXT, type WaysOf, WIDE } from "./ways.ts";
import { webWays } from "./ways-web.ts";

type Answering = (event: H3Event) => unknown;

const ways: WaysOf<Answering> = {
  ...webWays,
  JSON: () => ({ text: WIDE, amount: 1.5 }),
  text: () => TEXT,
  HTML: () => html`<p>${WIDE}</p>`,
  "all 256 bytes": () => BYTES,
  "a long stream": () => Readable.toWeb(Readable.from([LONG.subarray(0, 9), LONG.subarray(9)])),
  "a Response or Blob": () => new Blob([WIDE], { type: "text/x" }),
  "compression outside of Oncekey":
    "its server ends answers in a form that Node's compression middleware does not take",
  "a status and Location": (event) => {
    event.res.status = 201;
    event.res.headers.set("location", "/orders/9");
    return { id: 9 };
  },
  "a reason phrase": (event) => {
    event.res.status = 202;
    event.res.statusText = "Taken In";
    return TEXT;
  },
  "headers of several lines": (event) => {
    for (const link of ["</a>; rel=next", "</b>; rel=prev"]) event.res.headers.append("link", link);
    return TEXT;
  },
  "several cookies": (event) => {
    setCookie(event, "a", "1");
    setCookie(event, "b", "2");
    return TEXT;
  },
  "204": (event) => {
    event.res.status = 204;
    return null;
  },
  "a redirect": () => redirect("/orders/9", 303),
  "a 404 of the handler's": () => {
    throw new HTTPError({ status: 404, message: "no such order" });
  },
  "an error of the framework's own": () => {
    throw new HTTPError({ status: 410, message: "gone", headers: { "x-why": "sold" } });
  },
};

/** h3 2 on Node. */
export const h3Capture: CaptureHost<Answering> = {
  name: "h3 2",
  ways,
  async serve([mount], { operation, scope, ran }) {
    const answer = ways[mount?.way ?? "text"] as Answering;
    const app = new H3({ silent: true });
    app.post("/plain", (event) => answer(event) as never);
    const once = idempotent(operation, { scope, toResponse }, async (event: H3Event) => {
      ran();
      return answer(event);
    });
    app.post("/once", once as never);
    const { listen, close } = listening();
    return { port: await listen(toNodeHandler(app) as never), close };
  },
};
