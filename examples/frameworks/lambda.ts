import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { idempotent } from "oncekey/lambda";
import { openShop, scopeOf, serve, tenantOf } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/lambda.ts

// Outside of the handlers: a warm function keeps its instance, and a cold one does not begin before this has ended.
const shop = await openShop();
await shop.once.start();

// Behind an authorizer it would be event.requestContext.authorizer.
const scope = (event: APIGatewayProxyEventV2) => scopeOf(event.headers.authorization);

/** `POST /orders`: runs the operation and answers. */
export const orders = idempotent(shop.createOrder, { scope });

/** `POST /refunds`: wraps an existing handler, untouched. */
export const refunds = idempotent(shop.createRefund, { scope }, async (event: APIGatewayProxyEventV2) => {
  const { order } = JSON.parse(event.body ?? "") as { order: string };
  return { statusCode: 201, body: JSON.stringify(await shop.refund(order)) };
});

/** `GET /effects` */
export const effects = () => shop.effects();

// In the place of API Gateway and Lambda, so that the example runs anywhere: events of payload format 2.0.

const routes: Readonly<Record<string, (event: APIGatewayProxyEventV2, context: Context) => Promise<unknown>>> = {
  "POST /orders": orders,
  "POST /refunds": refunds,
  "GET /effects": effects,
};

const TIMEOUT_MS = 10_000;

async function invoke(req: IncomingMessage): Promise<APIGatewayProxyStructuredResultV2> {
  const authorizer = tenantOf(req.headers.authorization);
  if (authorizer === null) return { statusCode: 401 };
  const [rawPath = "", rawQueryString = ""] = (req.url ?? "").split("?");
  const event = { version: "2.0", rawPath, rawQueryString, headers: req.headers, body: await text(req) };
  const endsAt = Date.now() + TIMEOUT_MS;
  const context = { getRemainingTimeInMillis: () => endsAt - Date.now() };
  const requestContext = { http: { method: req.method } };
  const result = await routes[`${req.method} ${rawPath}`]?.({ ...event, requestContext } as never, context as Context);
  if (result === undefined) return { statusCode: 404 };
  const isStructured = typeof result === "object" && result !== null && "statusCode" in result;
  return isStructured
    ? (result as APIGatewayProxyStructuredResultV2)
    : { statusCode: 200, body: JSON.stringify(result) };
}

await serve("lambda", shop, async (req, res) => {
  const { statusCode = 200, headers = {}, body = "", isBase64Encoded } = await invoke(req);
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, String(value));
  res.writeHead(statusCode).end(Buffer.from(body, isBase64Encoded === true ? "base64" : "utf8"));
});
