import type { IncomingMessage, ServerResponse } from "node:http";
import compression from "compression";
import { idempotent } from "oncekey/node";
import { listening } from "../adapter-hosts/listening.ts";
import type { CaptureHost } from "./compare.ts";
import { TEXT, type WaysOf } from "./ways.ts";
import { type NodeAnswering, nodeWays } from "./ways-node.ts";

const NO_FRAMEWORK = "node:http has no such thing of its own";

type Listener = (req: IncomingMessage, res: ServerResponse) => unknown;

const middleware = compression({ threshold: 0 });

/** Compresses what the listener answers, for a client that takes gzip. */
function compressing(listener: Listener): Listener {
  return (req, res) => compressingMiddleware(req, res, () => void listener(req, res));
}

/** The same as middleware. */
export function compressingMiddleware(req: IncomingMessage, res: ServerResponse, next: () => void): void {
  req.headers["accept-encoding"] = "gzip";
  middleware(req as never, res as never, next);
}

const text: NodeAnswering = (res) => res.setHeader("Content-Type", "text/plain").end(TEXT);

const ways: WaysOf<NodeAnswering> = {
  ...nodeWays,
  "a Response or Blob": NO_FRAMEWORK,
  "a template": NO_FRAMEWORK,
  "negotiated content": NO_FRAMEWORK,
  "compression inside of Oncekey": text,
  "compression outside of Oncekey": text,
  "an error that error handling answers": NO_FRAMEWORK,
  "an error of the framework's own": NO_FRAMEWORK,
};

/** Plain `node:http`. */
export const nodeCapture: CaptureHost<NodeAnswering> = {
  name: "node:http",
  ways,
  async serve([mount], { operation, scope, ran }) {
    const way = mount?.way ?? "text";
    const answer = ways[way] as NodeAnswering;
    const plain: Listener = (_req, res) => answer(res);
    const counted: Listener = (_req, res) => {
      ran();
      return answer(res);
    };
    const inside = way === "compression inside of Oncekey" ? compressing : (listener: Listener) => listener;
    const outside = way === "compression outside of Oncekey" ? compressing : (listener: Listener) => listener;
    const once = outside(idempotent(operation, { scope }, inside(counted)));
    const bare = outside(inside(plain));
    const { listen, close } = listening();
    const port = await listen((req, res) => void (req.url === mount?.once ? once : bare)(req, res));
    return { port, close };
  },
};
