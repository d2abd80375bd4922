import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Operation } from "oncekey";
import { idempotent, type LambdaContext } from "oncekey/lambda";
import { type AdapterHarness, type AdapterRoute, bindingOptions } from "oncekey/testing";
import { listening } from "./listening.ts";

// Behaves as the documented payload formats say: https://docs.aws.amazon.com/apigateway/latest/developerguide
// (http-api-develop-integrations-lambda, set-up-lambda-proxy-integrations).

/** The payload format of the gateway in front of the function. */
export type LambdaFormat = "1.0" | "2.0";

interface Event {
  readonly headers: Record<string, string>;
  readonly multiValueHeaders?: Record<string, string[]>;
  readonly body?: string;
  readonly isBase64Encoded: boolean;
  readonly requestContext: { readonly path?: string; readonly http?: { readonly method: string } };
}

type Way = (text: string) => unknown;
type Function = (event: Event, context: LambdaContext) => Promise<unknown>;

const ways: Readonly<Record<string, Way>> = {
  json: (text) => ({
    statusCode: 201,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ text }),
  }),
  text: (text) => ({ statusCode: 200, headers: { "content-type": "text/plain" }, body: text }),
  "429": (text) => ({ statusCode: 429, body: text }),
  "500": (text) => ({ statusCode: 500, body: text }),
  throw: (text) => {
    throw new Error(text);
  },
  eventStream: (text) => ({ statusCode: 200, headers: { "Content-Type": "text/event-stream" }, body: `data: ${text}` }),
};

const bothFormats: Readonly<Record<string, Way>> = {
  base64: () => ({
    statusCode: 200,
    headers: { "content-type": "image/x" },
    body: Buffer.from([0xff, 0x00, 0xfe]).toString("base64"),
    isBase64Encoded: true,
  }),
  "text as base64": (text) => ({ statusCode: 200, body: Buffer.from(text).toString("base64"), isBase64Encoded: true }),
  "an empty 204": () => ({ statusCode: 204 }),
  "a redirect": () => ({ statusCode: 303, headers: { Location: "/v1/orders/9" }, body: "" }),
  "a header that is a number": (text) => ({ statusCode: 200, headers: { "x-count": 7, "x-off": false }, body: text }),
};

const formatWays: Readonly<Record<LambdaFormat, Readonly<Record<string, Way>>>> = {
  "1.0": {
    ...bothFormats,
    "multiValueHeaders and cookies": (text) => ({
      statusCode: 200,
      headers: { "Content-Type": "text/x", "X-One": "1" },
      multiValueHeaders: { "Set-Cookie": ["a=1", "b=2"], "X-One": ["1", "2"], Location: ["/v1/orders/9"] },
      body: text,
    }),
  },
  "2.0": {
    ...bothFormats,
    cookies: (text) => ({
      statusCode: 200,
      cookies: ["a=1", "b=2"],
      headers: { "content-type": "text/x" },
      body: text,
    }),
    "a returned object": (text) => ({ text }),
    "a returned string": (text) => text,
    "a returned number": () => 7,
    nothing: () => undefined,
  },
};

/** A Lambda function behind an API Gateway of a payload format, played by a server, as a host of the adapter suite. */
export async function lambdaHost(format: LambdaFormat): Promise<AdapterHarness> {
  const { listen, close } = listening();
  return {
    ways: Object.keys(formatWays[format]),
    close,
    async serve(routes) {
      const served = routes.map((route) => ({ matches: pattern(route), handle: functionOf(route, format) }));
      return listen(async (req, res) => {
        const target = req.url ?? "";
        const found = served.find(({ matches }) => matches.test(target));
        const params = found?.matches.exec(target)?.groups ?? {};
        // A function that fails is the gateway's own 500 (format 2.0) or 502.
        const result = await invoke(req, found?.handle, format, { ...params }).catch(() => ({ statusCode: 500 }));
        send(res, format, result as Result);
      });
    },
  };
}

const pattern = ({ mount, path }: AdapterRoute): RegExp =>
  new RegExp(`^${mount}${path.replace(":id", "(?<id>[^/?]+)")}(\\?|$)`);

function functionOf({ operation, binding, existing }: AdapterRoute, format: LambdaFormat): Function {
  const options = bindingOptions<Event>(binding, ({ headers }, name) => {
    const named = Object.entries(headers).find(([given]) => given.toLowerCase() === name);
    return named?.[1];
  });
  if (existing === undefined) return idempotent(operation as Operation<"transaction">, options);
  const answer = (ways[existing.way] ?? formatWays[format][existing.way]) as Way;
  return idempotent(operation as Operation<"capture">, options, async (event: Event) => {
    const text = Buffer.from(event.body ?? "", event.isBase64Encoded ? "base64" : "utf8").toString();
    return answer(await existing.text(text === "" ? undefined : JSON.parse(text)));
  });
}

async function invoke(
  req: IncomingMessage,
  handle: Function | undefined,
  format: LambdaFormat,
  params: Record<string, string>,
): Promise<unknown> {
  if (req.headers.authorization === undefined) return { statusCode: 401, body: "{}" };
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const isBase64Encoded = !isUtf8(bytes);
  const body = bytes.length === 0 ? {} : { body: bytes.toString(isBase64Encoded ? "base64" : "utf8") };
  const event = { ...(format === "1.0" ? head1(req) : head2(req)), ...body, isBase64Encoded, pathParameters: params };
  const endsAt = performance.now() + 30_000;
  const context = { getRemainingTimeInMillis: () => endsAt - performance.now() };
  return handle === undefined ? { statusCode: 404, body: "" } : handle(event, context);
}

function headerLines(req: IncomingMessage): Record<string, string[]> {
  const lines: Record<string, string[]> = {};
  for (let at = 0; at < req.rawHeaders.length; at += 2) {
    const name = req.rawHeaders[at] as string;
    lines[name] = [...(lines[name] ?? []), req.rawHeaders[at + 1] as string];
  }
  return lines;
}

// REST API: names as the client wrote them, `path` without the stage, the query decoded.
function head1(req: IncomingMessage) {
  const multiValueHeaders = headerLines(req);
  const headers = Object.fromEntries(
    Object.entries(multiValueHeaders).map(([name, values]) => [name, `${values.at(-1)}`]),
  );
  const { pathname, searchParams } = new URL(req.url ?? "", "http://gateway");
  const query: Record<string, string[]> = {};
  for (const [name, value] of searchParams) query[name] = [...(query[name] ?? []), value];
  const multiValueQueryStringParameters = searchParams.size === 0 ? null : query;
  const requestContext = { path: `/prod${pathname}`, stage: "prod" };
  const httpMethod = req.method ?? "";
  return { httpMethod, path: pathname, headers, multiValueHeaders, multiValueQueryStringParameters, requestContext };
}

// HTTP API: names in lower case, lines of one name joined, cookies apart.
function head2(req: IncomingMessage) {
  const headers: Record<string, string> = {};
  for (const [name, values] of Object.entries(headerLines(req))) {
    headers[name.toLowerCase()] = [headers[name.toLowerCase()] ?? [], values].flat().join(",");
  }
  const [rawPath = "", rawQueryString = ""] = (req.url ?? "").split("?");
  const http = { method: req.method ?? "", path: rawPath };
  return { version: "2.0", rawPath, rawQueryString, headers, requestContext: { http, stage: "$default" } };
}

interface Result {
  readonly statusCode: number;
  readonly headers?: Record<string, string>;
  readonly multiValueHeaders?: Record<string, string[]>;
  readonly cookies?: string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

function send(res: ServerResponse, format: LambdaFormat, result: Result): void {
  res.statusCode = result.statusCode;
  const given = format === "1.0" ? result.multiValueHeaders : result.headers;
  for (const [name, value] of Object.entries(given ?? {})) res.setHeader(name, value);
  if (format === "2.0" && result.cookies !== undefined) res.setHeader("set-cookie", result.cookies);
  res.end(Buffer.from(result.body ?? "", result.isBase64Encoded === true ? "base64" : "utf8"));
}
