import { type FastifyRequest, fastify } from "fastify";
import { type Context, Hono } from "hono";
import { cors } from "hono/cors";
import { createOncekey, type Oncekey, type Operation } from "oncekey";
import { idempotent as bindFastify } from "oncekey/fastify";
import { idempotent as bindFetch } from "oncekey/fetch";
import { idempotent as bindHono } from "oncekey/hono";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { writeAndWrap } from "./support/capturing.ts";

const scope = () => ({ tenant: "acme", client: null });
const HEADERS = { "idempotency-key": "k", "content-type": "application/json" };
const BIG = '{"a":9007199254740993}';

interface Defined {
  readonly once: Oncekey<unknown>;
  readonly write: Operation<"transaction">;
  readonly wrap: Operation<"capture">;
  readonly seen: unknown[];
}

async function define(): Promise<Defined> {
  const once = createOncekey({ store: memoryStore() }) as Oncekey<unknown>;
  const defined = writeAndWrap(once);
  await once.start();
  return { once, ...defined };
}

describe("Fastify", () => {
  it("hides the body from Fastify's parsers and nothing else, and shows all headers to the binding", async () => {
    const { write, seen } = await define();
    const app = fastify();
    const types: unknown[] = [];
    const typed = (request: FastifyRequest) => {
      types.push(request.headers["content-type"]);
      return scope();
    };
    app.post("/a", bindFastify(write, { scope: typed }));
    const post = (payload: string, type: string, key: string) =>
      app.inject({ method: "POST", url: "/a", payload, headers: { "idempotency-key": key, "content-type": type } });
    expect((await post(BIG, "application/json", "1")).body).toBe(BIG);
    expect((await post("a=1", "application/x-www-form-urlencoded", "2")).statusCode).toBe(200);
    const malformed = await post("{", "application/json", "3");
    expect(malformed.statusCode).toBe(400);
    expect(malformed.json()).toMatchObject({ code: "idempotency_request_invalid" });
    expect((await post("x", "text/csv", "4")).json()).toMatchObject({ code: "idempotency_request_unsupported" });
    expect(seen).toEqual([{ a: 9007199254740993n }, { a: "1" }]);
    expect(types).toEqual(["application/json", "application/x-www-form-urlencoded"]);
    await app.close();
  });

  it("validates and parses for a captured handler as ever, and sends errors to the route's error handler", async () => {
    const { wrap } = await define();
    const app = fastify();
    const bodies: unknown[] = [];
    const errorHandler = (
      error: Error,
      _request: unknown,
      reply: { code(status: number): { send(body: unknown): void } },
    ) => reply.code(500).send({ error: error.message });
    const schema = { body: { type: "object", required: ["a"] } } as const;
    app.post("/a", { ...bindFastify(wrap, { scope }), schema, errorHandler }, async (request) => {
      bodies.push(request.body);
      throw new Error("broken");
    });
    const post = (payload: string) => app.inject({ method: "POST", url: "/a", payload, headers: HEADERS });
    expect((await post("{}")).json()).toEqual({ error: "body must have required property 'a'" });
    expect(bodies).toEqual([]);
    const broken = await post('{"a":1}');
    expect([broken.statusCode, broken.json()]).toEqual([500, { error: "broken" }]);
    expect((await post('{"a":1}')).json()).toMatchObject({ code: "idempotency_outcome_unknown" });
    expect(bodies).toEqual([{ a: 1 }]);
    await app.close();
  });

  it("answers 500 where a hijacked response begins an event stream", async () => {
    const { wrap } = await define();
    const app = fastify();
    app.post("/a", bindFastify(wrap, { scope }), (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { "content-type": "text/event-stream" });
      reply.raw.write("data: 1\n\n");
    });
    const answer = await app.inject({ method: "POST", url: "/a", payload: "{}", headers: HEADERS });
    expect([answer.statusCode, answer.body]).toEqual([500, ""]);
    await app.close();
  });
});

describe("Hono", () => {
  const request = (body: string) => new Request("http://api.example/a", { method: "POST", body, headers: HEADERS });

  it("takes what an earlier middleware read, exactly where its bytes are left", async () => {
    const readers: Record<string, (c: Context) => Promise<unknown>> = {
      text: (c) => c.req.text(),
      json: (c) => c.req.json(),
      arrayBuffer: (c) => c.req.arrayBuffer(),
      nothing: async () => undefined,
    };
    for (const read of Object.values(readers)) {
      const { write, seen } = await define();
      const app = new Hono();
      app.use(async (c, next) => {
        await read(c);
        await next();
      });
      app.post("/a", bindHono(write, { scope }));
      expect((await app.request(request(BIG))).status).toBe(200);
      expect((await app.request(request('{"a":9007199254740992}'))).status).toBe(422);
      expect(seen).toEqual([{ a: 9007199254740993n }]);
    }
  });

  it("refuses a body of which an earlier middleware left nothing", async () => {
    const { write } = await define();
    const app = new Hono();
    const errors: Error[] = [];
    app.onError((error, c) => {
      errors.push(error);
      return c.text("broken", 500);
    });
    app.use(async (c, next) => {
      await c.req.raw.text();
      await next();
    });
    app.post("/a", bindHono(write, { scope }));
    expect((await app.request(request(BIG))).status).toBe(500);
    expect(errors).toMatchObject([{ code: "oncekey_body_consumed" }]);
  });

  it("keeps the headers that middleware sets for this caller, on replays too", async () => {
    const { write, wrap } = await define();
    const app = new Hono();
    app.use(cors({ origin: (origin) => origin }));
    app.use(async (c, next) => {
      c.header("x-request-id", c.req.header("x-attempt") ?? "");
      await next();
    });
    app.post("/a", bindHono(write, { scope }));
    app.post("/b", bindHono(wrap, { scope }), async (c) => c.json(await c.req.json(), 201, { "set-cookie": "a=1" }));
    for (const path of ["/a", "/b"]) {
      for (const attempt of ["1", "2"]) {
        const origin = `https://${attempt}.example`;
        const headers = { ...HEADERS, origin, "x-attempt": attempt };
        const answer = await app.request(path, { method: "POST", body: '{"a":1}', headers });
        expect(await answer.json()).toEqual({ a: 1 });
        expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
        expect(answer.headers.get("x-request-id")).toBe(attempt);
        expect(answer.headers.get("idempotent-replayed")).toBe(attempt === "2" ? "true" : null);
        expect(answer.headers.getSetCookie()).toEqual(path === "/b" && attempt === "1" ? ["a=1"] : []);
      }
    }
  });
});

describe("the Fetch interface", () => {
  const request = (init: RequestInit = {}) =>
    new Request("http://api.example/a", { method: "POST", body: BIG, headers: HEADERS, ...init });

  it("refuses a request whose body was read", async () => {
    const { write } = await define();
    const read = request();
    await read.text();
    await expect(bindFetch(write, { scope })(read)).rejects.toMatchObject({ code: "oncekey_body_consumed" });
  });

  it("hands a captured handler the whole request again, with what the host gives", async () => {
    const { wrap } = await define();
    const handler = bindFetch(
      wrap,
      { scope, allowUnsafeNumbers: true },
      async (given, env: { readonly name: string }) => {
        const { url, method } = given;
        return new Response(`${method} ${url} ${given.headers.get("content-type")} ${await given.text()} ${env.name}`);
      },
    );
    const first = await handler(request(), { name: "host" });
    const want = `POST http://api.example/a application/json ${BIG} host`;
    expect(await first.text()).toBe(want);
    expect(await (await handler(request(), { name: "other" })).text()).toBe(want);
    const safe = new Request("http://api.example/a", { headers: { "content-type": "x" } });
    expect(await (await handler(safe, { name: "unprotected" })).text()).toContain("unprotected");
  });

  it("stores what a coded answer decodes to, and sends it as the handler made it", async () => {
    const { wrap } = await define();
    const handler = bindFetch(wrap, { scope, allowUnsafeNumbers: true }, () => {
      const body = new Blob(["plain"]).stream().pipeThrough(new CompressionStream("gzip"));
      return new Response(body, { headers: { "content-encoding": "gzip" } });
    });
    const first = await handler(request());
    expect(first.headers.get("content-encoding")).toBe("gzip");
    const again = await handler(request());
    expect(again.headers.get("content-encoding")).toBeNull();
    expect(await again.text()).toBe("plain");
  });
});
