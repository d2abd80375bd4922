import type { ServerResponse } from "node:http";
import { idempotent, type LambdaContext } from "oncekey/lambda";
import { listening } from "../adapter-hosts/listening.ts";
import type { CaptureHost } from "./compare.ts";
import { BYTES, lacking, TEXT, WAYS, type Way, type WaysOf, WIDE } from "./ways.ts";
import { GZIPPED } from "./ways-node.ts";

interface Result {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly cookies?: readonly string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

type Answering = () => unknown;

const base64 = (body: Uint8Array, type = "application/octet-stream", more: object = {}): Result => ({
  statusCode: 200,
  headers: { "content-type": type, ...more },
  body: Buffer.from(body).toString("base64"),
  isBase64Encoded: true,
});
const plain = (body: string, type = "text/plain", more: object = {}): Result => ({
  statusCode: 200,
  headers: { "content-type": type, ...more },
  body,
});

const own = {
  JSON: () => ({ text: WIDE, amount: 1.5 }),
  text: () => plain(TEXT),
  HTML: () => plain(`<p>${WIDE}</p>`, "text/html; charset=utf-8"),
  "text beyond ASCII": () => plain(WIDE),
  "all 256 bytes": () => base64(BYTES),
  "an empty body": () => plain(""),
  "no content type": () => ({ statusCode: 200, body: TEXT }),
  "a charset": () => base64(Buffer.from("caf\xe9", "latin1"), "text/plain; charset=iso-8859-1"),
  "an answer from a later tick": () => new Promise((done) => setTimeout(() => done(plain(TEXT)), 20)),
  "a download": () => plain(TEXT, "text/plain", { "content-disposition": 'attachment; filename="terms.txt"' }),
  "gzip by the handler": () => base64(GZIPPED, "text/plain", { "content-encoding": "gzip" }),
  "a status and Location": () => ({
    ...plain('{"id":9}', "application/json", { location: "/orders/9" }),
    statusCode: 201,
  }),
  "several cookies": () => ({ ...plain(TEXT), cookies: ["a=1", "b=2"] }),
  "validators and caching": () => plain(TEXT, "text/plain", { etag: 'W/"1"', "cache-control": "private", expires: 0 }),
  "204": () => ({ statusCode: 204 }),
  "304": () => ({ statusCode: 304, headers: { etag: '"1"' } }),
  "a redirect": () => ({ statusCode: 303, headers: { location: "/orders/9" } }),
  "a refusal of the handler's": () => ({
    ...plain('{"code":"sold_out"}', "application/problem+json"),
    statusCode: 409,
  }),
  "a 404 of the handler's": () => ({ statusCode: 404, body: "no such order" }),
} satisfies Partial<Record<Way, Answering>>;

const others = WAYS.filter((way): way is Exclude<Way, keyof typeof own> => !(way in own));

const ways: WaysOf<Answering> = {
  ...lacking("a function gives one value, which the gateway writes", ...others),
  ...own,
};

/** A function behind an HTTP API (payload format 2.0), whose gateway this plays. */
export const lambdaCapture: CaptureHost<Answering> = {
  name: "lambda",
  ways,
  async serve([mount], { operation, scope, ran }) {
    const answer = ways[mount?.way ?? "text"] as Answering;
    const once = idempotent(operation, { scope }, async () => {
      ran();
      return answer();
    });
    const { listen, close } = listening();
    const port = await listen(async (req, res) => {
      if (req.url !== mount?.once) return send(res, await answer());
      const http = { method: "POST", path: req.url };
      const headers = { ...req.headers } as Record<string, string>;
      const event = {
        version: "2.0",
        rawPath: req.url,
        rawQueryString: "",
        headers,
        requestContext: { http },
        body: "{}",
      };
      const context: LambdaContext = { getRemainingTimeInMillis: () => 30_000 };
      send(res, await once({ ...event, isBase64Encoded: false } as never, context));
    });
    return { port, close };
  },
};

/** What the gateway makes of a function's value: https://docs.aws.amazon.com/apigateway (payload format 2.0). */
function send(res: ServerResponse, value: unknown): void {
  const isResult = typeof value === "object" && value !== null && "statusCode" in value;
  const result: Result = isResult ? (value as Result) : plain(JSON.stringify(value), "application/json");
  res.statusCode = result.statusCode;
  for (const [name, text] of Object.entries(result.headers ?? {})) res.setHeader(name, String(text));
  if (result.cookies !== undefined) res.setHeader("set-cookie", [...result.cookies]);
  res.end(Buffer.from(result.body ?? "", result.isBase64Encoded === true ? "base64" : "utf8"));
}
