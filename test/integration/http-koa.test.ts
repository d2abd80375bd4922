import { Readable } from "node:stream";
import { json, text } from "node:stream/consumers";
import { createGzip } from "node:zlib";
import Koa, { type Context, type Middleware } from "koa";
import { idempotent } from "oncekey/koa";
import { describe, expect, it } from "vitest";
import { type Bindable, bindable, post, scope, served } from "./support/capturing.ts";

const BIG = '{"a":9007199254740993}';

interface World extends Bindable {
  readonly url: string;
  /** What the application was told of. */
  readonly told: Error[];
}

/** An application of these middlewares, the binding's among them. */
async function world(middlewares: (ops: Bindable) => readonly Middleware[]): Promise<World> {
  const ops = await bindable();
  const app = new Koa();
  const told: Error[] = [];
  app.on("error", (error: Error) => told.push(error));
  for (const middleware of middlewares(ops)) app.use(middleware);
  return { ...ops, told, url: await served(app.callback()) };
}

const marked = (answer: Response) => answer.headers.get("idempotent-replayed");

async function twice(url: string): Promise<[Response, Buffer][]> {
  const answers: [Response, Buffer][] = [];
  for (const _ of [1, 2]) {
    const answer = await post(url);
    answers.push([answer, Buffer.from(await answer.arrayBuffer())]);
  }
  return answers;
}

async function expectOneAnswer(url: string, status: number): Promise<Buffer> {
  const [[first, bytes], [again, replayed]] = (await twice(url)) as [[Response, Buffer], [Response, Buffer]];
  expect([first.status, marked(first), again.status, marked(again)]).toEqual([status, null, status, "true"]);
  expect(Buffer.compare(replayed, bytes)).toBe(0);
  return bytes;
}

/** As koa-compress does it. */
const compress: Middleware = async (ctx, next) => {
  await next();
  if (ctx.body === undefined || ctx.body === null) return;
  const body = ctx.body instanceof Readable ? ctx.body : Readable.from([Buffer.from(ctx.body as string)]);
  ctx.set("Content-Encoding", "gzip");
  ctx.remove("Content-Length");
  ctx.body = body.pipe(createGzip());
};

const envelope: Middleware = async (ctx, next) => {
  await next();
  ctx.body = { data: ctx.body, served: new Date().toISOString() };
};

const errorPage: Middleware = async (ctx, next) => {
  try {
    await next();
  } catch (error) {
    ctx.status = (error as { status?: number }).status ?? 500;
    ctx.body = { error: (error as Error).message };
  }
};

describe("Koa: middleware around a capture", () => {
  const answerText: Middleware = (ctx) => {
    ctx.body = "the answer";
  };

  it("stores what compression outside of it coded, and replays the bytes themselves", async () => {
    const { url } = await world(({ wrap }) => [compress, idempotent(wrap, { scope }), answerText]);
    const [[first, bytes], [again, replayed]] = (await twice(url)) as [[Response, Buffer], [Response, Buffer]];
    expect(first.headers.get("content-encoding")).toBe("gzip");
    expect([again.headers.get("content-encoding"), marked(again)]).toEqual([null, "true"]);
    expect([bytes.toString(), replayed.toString()]).toEqual(["the answer", "the answer"]);
  });

  it("replays what an envelope made of the answer, which is not put around it once more", async () => {
    const { url } = await world(({ wrap }) => [envelope, idempotent(wrap, { scope }), answerText]);
    expect(JSON.parse((await expectOneAnswer(url, 200)).toString())).toMatchObject({ data: "the answer" });
  });

  it("lets headers that it sets afterwards go with a replay, each with its own value", async () => {
    let attempt = 0;
    const count: Middleware = async (ctx, next) => {
      await next();
      ctx.set("X-Attempt", String(++attempt));
      ctx.cookies.set("seen", String(attempt));
    };
    const { url, told } = await world(({ wrap }) => [count, idempotent(wrap, { scope }), answerText]);
    const answers = (await twice(url)).map(([answer]) => [
      answer.headers.get("x-attempt"),
      answer.headers.getSetCookie(),
    ]);
    expect(answers).toEqual([
      ["1", ["seen=1; path=/; httponly"]],
      ["2", ["seen=2; path=/; httponly"]],
    ]);
    expect(told).toEqual([]);
  });

  it("stores the page that error middleware makes of a refusal, and of a failure none", async () => {
    const fails =
      (status: number): Middleware =>
      (ctx) =>
        ctx.throw(status, "no such order", { expose: true });
    const refused = await world(({ wrap }) => [errorPage, idempotent(wrap, { scope }), fails(404)]);
    expect((await expectOneAnswer(refused.url, 404)).toString()).toBe('{"error":"no such order"}');
    const failed = await world(({ wrap }) => [errorPage, idempotent(wrap, { scope }), fails(503)]);
    expect((await post(failed.url)).status).toBe(503);
    expect(await (await post(failed.url)).json()).toMatchObject({ code: "idempotency_outcome_unknown" });
    expect(await failed.state()).toBe("needs_recovery");
  });

  it("stores the answer that Koa itself makes of ctx.throw", async () => {
    const { url, told } = await world(({ wrap }) => [
      idempotent(wrap, { scope }),
      (ctx) => ctx.throw(409, "already shipped", { headers: { "X-Why": "shipped" } }),
    ]);
    expect((await expectOneAnswer(url, 409)).toString()).toBe("already shipped");
    expect(told.map(({ message }) => message)).toEqual(["already shipped"]);
  });

  it("answers what error middleware makes of an error before the claim", async () => {
    const { url, state } = await world(({ wrap }) => [
      errorPage,
      async (ctx, next) => {
        await text(ctx.req);
        await next();
      },
      idempotent(wrap, { scope }),
      answerText,
    ]);
    const answer = await post(url);
    expect([answer.status, await answer.json()]).toEqual([
      500,
      { error: expect.stringContaining("consumed the request body") },
    ]);
    expect(await state()).toBeUndefined();
  });

  it("stores and replays a long stream, and lets go of it where outer middleware fails after all", async () => {
    let fails = false;
    const late: Middleware = async (_ctx, next) => {
      await next();
      if (fails) throw new Error("too late");
    };
    const long: Middleware = (ctx) => {
      ctx.body = Readable.from(Array.from({ length: 32 }, (_, at) => Buffer.alloc(65_536, at)));
    };
    const { url, told } = await world(({ wrap }) => [late, idempotent(wrap, { scope }), long]);
    expect((await expectOneAnswer(url, 200)).length).toBe(32 * 65_536);
    fails = true;
    expect((await post(url)).status).toBe(500);
    expect(told.map(({ message }) => message)).toEqual(["too late"]);
  });

  it("leaves an error after all middleware to Koa's own handling", async () => {
    const { url, told } = await world(({ wrap }) => [
      idempotent(wrap, { scope }),
      (ctx) => {
        ctx.type = "text/event-stream";
        ctx.body = Readable.from(["data: 1\n\n"]);
      },
    ]);
    const answer = await post(url);
    expect([answer.status, await answer.text()]).toEqual([500, "Internal Server Error"]);
    expect(told[0]).toMatchObject({ code: "oncekey_stream_refused" });
  });

  it("cuts a request whose middleware wrote a part and threw", async () => {
    const { url, state } = await world(({ wrap }) => [
      idempotent(wrap, { scope }),
      (ctx) => {
        ctx.res.write("a part");
        throw new Error("broken");
      },
    ]);
    await expect(post(url)).rejects.toThrow();
    expect(await (await post(url)).json()).toMatchObject({ code: "idempotency_outcome_unknown" });
    expect(await state()).toBe("needs_recovery");
  });
});

describe("Koa: bodies", () => {
  const parser =
    (keep: "text" | "bytes" | "value"): Middleware =>
    async (ctx, next) => {
      const rawBody = await text(ctx.req);
      const kept = { text: { rawBody }, bytes: { rawBody: Buffer.from(rawBody) }, value: {} }[keep];
      Object.assign(ctx.request, { body: JSON.parse(rawBody) }, kept);
      await next();
    };

  it("takes the exact text that a parser before it kept, for operations with all digits", async () => {
    for (const keep of ["text", "bytes"] as const) {
      const { url, seen } = await world(({ write }) => [parser(keep), idempotent(write, { scope })]);
      expect(await (await post(url, BIG)).text()).toBe(BIG);
      expect((await post(url, '{"a":9007199254740992}')).status).toBe(422);
      expect(seen).toEqual([{ a: 9007199254740993n }]);
    }
  });

  it("takes a parser's value where nothing else is left, and refuses numbers that it may have rounded", async () => {
    const { url, seen } = await world(({ write }) => [parser("value"), idempotent(write, { scope })]);
    expect((await post(url, BIG)).status).toBe(400);
    expect((await post(url, '{"a":1}')).status).toBe(200);
    expect(seen).toEqual([{ a: 1 }]);
  });

  it("leaves the stream to a parser that comes after it, chunked and empty too", async () => {
    const seen: unknown[] = [];
    const { url } = await world(({ wrap }) => [
      idempotent(wrap, { scope }),
      async (ctx) => {
        seen.push(ctx.length === 0 ? "" : await text(ctx.req));
        ctx.body = "done";
      },
    ]);
    const bodies = ['{"a":1}', new Blob(['{"a":', "2}"]).stream(), new Blob([]).stream()];
    for (const [at, body] of bodies.entries()) {
      expect((await post(url, body, { "idempotency-key": `k${at}` })).status).toBe(200);
    }
    expect(seen).toEqual(['{"a":1}', '{"a":2}', ""]);
  });

  it("compares the whole original URL where an application is mounted", async () => {
    const mount =
      (prefix: string): Middleware =>
      async (ctx, next) => {
        ctx.path = ctx.path.slice(prefix.length);
        await next();
      };
    const { url } = await world(({ wrap }) => [
      mount("/v1"),
      idempotent(wrap, { scope: (ctx: Context) => ({ tenant: ctx.path, client: null }) }),
      async (ctx) => {
        ctx.body = await json(ctx.req);
      },
    ]);
    expect((await post(`${url}/v1/orders`)).status).toBe(200);
    expect((await post(`${url}/v2/orders`)).status).toBe(422);
  });
});

describe("Koa: operations of their own", () => {
  it("leave their answer to compression and headers around them", async () => {
    const { url } = await world(({ write }) => [
      compress,
      async (ctx, next) => {
        ctx.set("Vary", "Origin");
        await next();
        ctx.set("X-Late", "yes");
      },
      idempotent(write, { scope }),
    ]);
    for (const marker of [null, "true"]) {
      const answer = await post(url);
      expect(await answer.json()).toEqual({ a: 1 });
      expect(marked(answer)).toBe(marker);
      expect(["content-encoding", "vary", "x-late"].map((name) => answer.headers.get(name))).toEqual([
        "gzip",
        "Origin",
        "yes",
      ]);
    }
  });
});
