import { createRequire } from "node:module";
import { idempotent } from "oncekey/next";
import { fetchListener } from "../adapter-hosts/fetch-listener.ts";
import { listening } from "../adapter-hosts/listening.ts";
import type { CaptureHost } from "./compare.ts";
import { TEXT, type WaysOf, WIDE } from "./ways.ts";
import { type WebAnswering, webWays } from "./ways-web.ts";

// Next.js lives in the example's own folder.
const require = createRequire(new URL("../../../examples/frameworks/next/package.json", import.meta.url));

interface NextServer {
  readonly NextRequest: new (request: Request) => Request;
  readonly NextResponse: {
    new (body: string): Response & { readonly cookies: { set(name: string, value: string): void } };
    json(value: unknown, init?: ResponseInit): Response;
    redirect(url: string, status: number): Response;
  };
}

const { NextRequest, NextResponse } = require("next/server") as NextServer;

const ways: WaysOf<WebAnswering> = {
  ...webWays,
  JSON: () => NextResponse.json({ text: WIDE, amount: 1.5 }),
  "a reason phrase": "Next.js sends none",
  "a status and Location": () => NextResponse.json({ id: 9 }, { status: 201, headers: { location: "/orders/9" } }),
  "several cookies": () => {
    const response = new NextResponse(TEXT);
    response.cookies.set("a", "1");
    response.cookies.set("b", "2");
    return response;
  },
  "a redirect": () => NextResponse.redirect("http://127.0.0.1/orders/9", 303),
};

/** Route handlers of Next.js, called as Next calls them. */
export const nextCapture: CaptureHost<WebAnswering> = {
  name: "next 16",
  ways,
  async serve([mount], { operation, scope, ran }) {
    const answer = ways[mount?.way ?? "text"] as WebAnswering;
    const once = idempotent(operation, { scope }, async () => {
      ran();
      return answer();
    });
    const { listen, close } = listening();
    const port = await listen(
      fetchListener(async (request) => {
        if (new URL(request.url).pathname !== mount?.once) return answer();
        return once(new NextRequest(request) as never, { params: Promise.resolve({}) });
      }),
    );
    return { port, close };
  },
};
