import { gzipSync } from "node:zlib";
import { createOncekey, ok, respond } from "oncekey";
import { idempotent, type LambdaResult } from "oncekey/lambda";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";

const scope = () => ({ tenant: "acme", client: null });
const context = { getRemainingTimeInMillis: () => 30_000 };
const HEADERS = { "idempotency-key": "k", "content-type": "application/json" };

const http = (rawPath: string, rest: object = {}) => ({
  rawPath,
  headers: HEADERS,
  requestContext: { http: { method: "POST" } },
  ...rest,
});
const rest = (path: string, more: object = {}) => ({
  httpMethod: "POST",
  path: "/orders",
  headers: HEADERS,
  requestContext: { path },
  ...more,
});

const codeOf = ({ body }: LambdaResult): unknown => (JSON.parse(body) as { code?: unknown }).code;

/** A written operation that gives what it was given, and a captured handler that gives `result`. */
async function bound(result?: unknown) {
  const once = createOncekey({ store: memoryStore(), onError() {} });
  const write = once.transaction({
    name: "orders.create",
    version: 1,
    run: async ({ input: { body, params, query } }) =>
      body === "binary" ? respond(200, Uint8Array.of(0xff, 0)) : ok({ body, params, query }),
  });
  const reconcile = async () => ({ kind: "unknown", why: "never asked" }) as const;
  const wrap = once.capture({ name: "refunds.create", version: 1, reconcile });
  await once.start();
  let runs = 0;
  const handler = async () => {
    runs++;
    return result;
  };
  const options = { scope, requireKey: false };
  return { write: idempotent(write, options), wrap: idempotent(wrap, options, handler), runs: () => runs };
}

describe("an event of API Gateway", () => {
  it("has a path that HTTP APIs decode: what it holds is no query and no fragment", async () => {
    const { write } = await bound();
    const answer = await write(http("/orders/a?b#c d/100%/ü", { rawQueryString: "x=%3F" }), context);
    expect([answer.statusCode, JSON.parse(answer.body)]).toEqual([200, { params: {}, query: { x: "?" } }]);
    for (const path of ["/orders/a?b#c d/100%/ü", "/orders/a%3Fb%23c%20d/100%25/%C3%BC"]) {
      const again = await write(http(path, { rawQueryString: "x=?" }), context);
      expect([again.statusCode, again.headers?.["idempotent-replayed"]]).toEqual([200, "true"]);
    }
    expect(codeOf(await write(http("/orders/a"), context))).toBe("idempotency_payload_mismatch");
  });

  it("is compared by the whole path that the client sent, its stage included", async () => {
    const { write } = await bound();
    expect((await write(rest("/prod/orders"), context)).statusCode).toBe(200);
    expect(codeOf(await write(rest("/test/orders"), context))).toBe("idempotency_payload_mismatch");
    const queried = rest("/prod/orders", { multiValueQueryStringParameters: { a: ["1&b=2", "+ %"] } });
    expect(codeOf(await write(queried, context))).toBe("idempotency_payload_mismatch");
  });

  it("hands decoded queries, parameters and bodies in base64 over as they were meant", async () => {
    const { write } = await bound();
    const body = Buffer.from('{"ü":1}').toString("base64");
    const event = rest("/prod/orders", {
      body,
      isBase64Encoded: true,
      pathParameters: { id: "ä/b", none: undefined },
      multiValueQueryStringParameters: { a: ["1&b=2", "+ %"] },
    });
    expect(JSON.parse((await write(event, context)).body)).toEqual({
      body: { ü: 1 },
      params: { id: "ä/b", none: "" },
      query: { a: ["1&b=2", "+ %"] },
    });
  });

  it("shows two lines of a key only in format 1.0; both are refused in both", async () => {
    const { write } = await bound();
    const twice = rest("/prod/orders", { multiValueHeaders: { "Idempotency-Key": ["k"], "idempotency-key": ["k"] } });
    expect(codeOf(await write(twice, context))).toBe("idempotency_key_invalid");
    const joined = http("/orders", { headers: { "idempotency-key": "k,k" } });
    expect(codeOf(await write(joined, context))).toBe("idempotency_key_invalid");
  });

  it.each([
    undefined,
    null,
    {},
    { Records: [] },
    { requestContext: null },
    // A load balancer, which takes only one of the two forms of headers, and a message of a WebSocket API.
    { httpMethod: "POST", path: "/a", headers: HEADERS, requestContext: { elb: { targetGroupArn: "arn" } } },
    { requestContext: { connectionId: "c", eventType: "MESSAGE", routeKey: "$default" }, body: "{}" },
  ])("of another source is refused: %o", async (event) => {
    const { write } = await bound();
    const given = event as unknown as Parameters<typeof write>[0];
    await expect(write(given, context)).rejects.toThrow(/not invoked by API Gateway/);
  });

  it("gets text as text and everything else in base64, framed by the gateway", async () => {
    const { write } = await bound();
    const text = await write(http("/orders", { body: '"ü"' }), context);
    expect(text).toMatchObject({ body: '{"body":"ü","params":{},"query":{}}', isBase64Encoded: false });
    expect(text.headers).not.toHaveProperty("content-length");
    const headers = { ...HEADERS, "idempotency-key": "k2" };
    const binary = await write(http("/orders", { headers, body: '"binary"' }), context);
    expect(binary).toMatchObject({ body: "/wA=", isBase64Encoded: true });
  });
});

describe("a captured handler's result", () => {
  it("is replayed with its byte order mark, and without a coding that was made for one client", async () => {
    const marked = await bound({ statusCode: 200, body: "\ufeffa" });
    expect((await marked.wrap(http("/a"), context)).body).toBe("\ufeffa");
    expect(await marked.wrap(http("/a"), context)).toMatchObject({ body: "\ufeffa", isBase64Encoded: false });
    const body = gzipSync("plain").toString("base64");
    const coded = await bound({
      statusCode: 200,
      headers: { "Content-Encoding": "gzip" },
      body,
      isBase64Encoded: true,
    });
    const first = await coded.wrap(http("/a"), context);
    expect([first.headers?.["content-encoding"], first.body]).toEqual(["gzip", body]);
    const again = await coded.wrap(http("/a"), context);
    expect([again.headers?.["content-encoding"], again.body]).toEqual([undefined, "plain"]);
  });

  it("may name a header as something that every object has", async () => {
    const headers = JSON.parse('{"__proto__":"1","constructor":"2"}');
    for (const event of [http("/a"), rest("/prod/a")]) {
      const { wrap } = await bound({ statusCode: 200, headers, body: "" });
      const sent = await wrap(event, context);
      const lines = sent.headers ?? sent.multiValueHeaders ?? {};
      expect(Object.keys(lines).sort()).toEqual(["__proto__", "constructor"]);
      expect(Object.values(lines).flat().sort()).toEqual(["1", "2"]);
    }
  });

  it("may say its status as text", async () => {
    const { wrap } = await bound({ statusCode: "202", body: null });
    expect(await wrap(http("/a"), context)).toMatchObject({ statusCode: 202, body: "" });
  });

  it.each([
    ["no status in format 1.0", rest("/prod/a"), { text: "x" }],
    ["nothing in format 1.0", rest("/prod/a"), undefined],
    ["a status that is none", http("/a"), { statusCode: 99, body: "" }],
    ["no number", http("/a"), { statusCode: undefined, body: "" }],
    ["a switch of protocols", http("/a"), { statusCode: 101, body: "" }],
    ["an object as a body", http("/a"), { statusCode: 200, body: {} }],
    [
      "a header of two lines",
      http("/a"),
      { statusCode: 200, headers: { location: "/a\r\nSet-Cookie: a=1" }, body: "" },
    ],
    ["a header with a senseless name", http("/a"), { statusCode: 200, headers: { "a b": "1" }, body: "" }],
    ["a cookie of two lines", http("/a"), { statusCode: 200, cookies: ["a=1\nb"], body: "" }],
  ])("that no gateway could send is refused, once run and unknown after that: %s", async (_name, event, result) => {
    const { wrap, runs } = await bound(result);
    await expect(wrap(event, context)).rejects.toMatchObject({ code: "oncekey_response_invalid" });
    expect(codeOf(await wrap(event, context))).toBe("idempotency_outcome_unknown");
    expect(runs()).toBe(1);
  });

  it("goes to the gateway as it is where nothing of ours applies", async () => {
    const result = { statusCode: 200, body: "x", mine: true };
    const { wrap, runs } = await bound(result);
    const withoutKey = http("/a", { headers: {} });
    const safe = http("/a", { requestContext: { http: { method: "GET" } } });
    for (const event of [withoutKey, safe]) expect(await wrap(event, context)).toBe(result);
    expect(runs()).toBe(2);
  });
});
