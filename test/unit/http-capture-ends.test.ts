import { readdirSync, readlinkSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { createRequire } from "node:module";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import { fastify } from "fastify";
import { createOncekey, ok } from "oncekey";
import { idempotent } from "oncekey/express";
import { idempotent as bindFastify } from "oncekey/fastify";
import { idempotent as bindFetch } from "oncekey/fetch";
import { memoryStore } from "oncekey/memory";
import { afterEach, describe, expect, it } from "vitest";
import { identityOf } from "../../src/core/identity.ts";
import { recordingLimits } from "../../src/http/recording-limits.ts";
import { openRaw, type RawAnswer, sendRaw } from "../../src/testing/raw-client.ts";

// The alias has no types of its own.
const express4 = createRequire(import.meta.url)("express4") as typeof express;
const frameworks = { "Express 5": express, "Express 4": express4 };
const servers: Server[] = [];
const LONG = 3 * 1_048_576;

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function listen(listener: RequestListener): Promise<{ server: Server; port: number }> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

const scope = () => ({ tenant: "acme", client: null });
const reconcile = async () => ({ kind: "unknown", why: "never asked" }) as const;
const KEY = [["idempotency-key", "k"]] as const;

type Settings = Partial<Parameters<typeof createOncekey>[0]>;

/** An instance with one captured operation, and what is known of the key's entry. */
async function instance(settings: Settings = {}) {
  const store = memoryStore();
  const told: unknown[] = [];
  const once = createOncekey({ store, onError: (error: unknown) => told.push(error), ...settings } as never);
  const wrap = once.capture({ name: "a.wrap", version: 1, reconcile });
  const write = once.transaction({ name: "a.write", version: 1, run: async () => ok({ a: 1 }) });
  await once.start();
  const { id } = identityOf(scope(), "a.wrap", "k");
  return { once, store, wrap, write, told, entry: () => store.read(id), limits: recordingLimits(wrap.engine.settings) };
}

interface Served extends Awaited<ReturnType<typeof instance>> {
  readonly port: number;
  readonly server: Server;
  readonly errors: { readonly code?: string; readonly message: string }[];
  post(): Promise<RawAnswer>;
  runs(): number;
}

/** An Express app around one captured handler, with Express' own error handling behind a listener. */
async function serve(framework: typeof express, handler: RequestHandler, settings: Settings = {}): Promise<Served> {
  const made = await instance(settings);
  const errors: Served["errors"] = [];
  let runs = 0;
  const app = framework();
  // Express prints what reaches its own error handling, except there.
  app.set("env", "test");
  app.post(
    "/a",
    idempotent(made.wrap, { scope }),
    (_req, _res, next) => {
      runs++;
      next();
    },
    handler,
  );
  app.use((error: Error, _req: Request, _res: Response, next: NextFunction) => {
    errors.push(error);
    next(error);
  });
  const { port, server } = await listen(app);
  const post = () => sendRaw(port, { target: "/a", headers: KEY });
  return { ...made, port, server, errors, post, runs: () => runs };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}

function hold<T = void>() {
  let letGo: (value: T) => void = () => {};
  const held = new Promise<T>((resolve) => {
    letGo = resolve;
  });
  return { held, letGo };
}

function openFiles(): number {
  const targets = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return "";
    }
  });
  // The whole name: a copy of the project may lie in a folder that is called so as well.
  return targets.filter((target) => /\/oncekey-[0-9a-f]{32}( \(deleted\))?$/.test(target)).length;
}

const text = ({ body }: RawAnswer) => body.toString();
const longText = () => Readable.from(Array.from({ length: LONG / 65_536 }, (_, n) => Buffer.alloc(65_536, n + 65)));

for (const [name, framework] of Object.entries(frameworks)) {
  describe(`a captured handler of ${name}`, () => {
    it("that wrote half an answer and failed is over where Express cuts the connection", async () => {
      const failing: RequestHandler[] = [
        (_req, res) => {
          res.write("half");
          throw new Error("sync");
        },
        (_req, res, next) => {
          res.write("half");
          setImmediate(() => next(new Error("later")));
        },
        (_req, res, next) => {
          res.flushHeaders();
          void Promise.reject(new Error("rejected")).catch(next);
        },
        (req, res) => {
          res.write("half");
          req.socket.destroy();
        },
        (_req, res) => void res.write("half", () => res.destroy(new Error("own"))),
        (req, res) => void res.write("half", () => req.socket.end()),
      ];
      for (const handler of failing) {
        const app = await serve(framework, handler);
        await expect(app.post()).rejects.toThrow();
        expect((await app.entry())?.state).toBe("needs_recovery");
        const again = await app.post();
        expect([again.status, JSON.parse(text(again)).code]).toEqual([409, "idempotency_outcome_unknown"]);
        expect(app.runs()).toBe(1);
        expect(app.limits.budget.heldBytes).toBe(0);
      }
    });

    it("that answered and failed then keeps its answer", async () => {
      const app = await serve(framework, (_req, res) => {
        res.json({ a: 1 });
        throw new Error("too late");
      });
      expect(text(await app.post())).toBe('{"a":1}');
      expect(text(await app.post())).toBe('{"a":1}');
      expect(app.runs()).toBe(1);
    });

    it("that writes past its response is refused, and nothing of it goes out", async () => {
      const past = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
      const app = await serve(framework, (req) => void req.socket.write(past));
      expect((await app.post()).status).toBe(500);
      expect(app.errors).toMatchObject([{ code: "oncekey_stream_refused" }]);
      expect((await app.entry())?.outcome ?? null).toBeNull();
      expect((await app.post()).status).toBe(409);
    });

    it("that answers more than is recorded is refused at the byte too many", async () => {
      const ways: RequestHandler[] = [
        (_req, res) => void res.end(Buffer.alloc(1_001)),
        (_req, res) => void Readable.from([Buffer.alloc(600), Buffer.alloc(600)]).pipe(res),
      ];
      for (const handler of ways) {
        const app = await serve(framework, handler, { maxAnswerBytes: 1_000 });
        expect((await app.post()).status).toBe(500);
        expect(app.errors).toMatchObject([{ code: "oncekey_stream_refused" }]);
        const entry = await app.entry();
        expect([entry?.state, entry?.outcome ?? null]).toEqual(["needs_recovery", null]);
        expect(app.limits.budget.heldBytes).toBe(0);
      }
    });

    it("may leave HTTP, or begin what has no end, only to be refused", async () => {
      const ways: RequestHandler[] = [
        (_req, res) => void res.writeHead(101, { upgrade: "x", connection: "upgrade" }).end(),
        (_req, res) => void res.type("text/event-stream").write("data: 1\n\n"),
        (_req, res) =>
          void res.writeHead(200, { "Content-Type": "multipart/x-mixed-replace; boundary=b" }).write("--b"),
      ];
      for (const handler of ways) {
        const app = await serve(framework, handler);
        const refused = await app.post();
        expect(refused.status).toBe(500);
        expect(text(refused)).not.toContain("data: 1");
        expect(app.errors).toMatchObject([{ code: "oncekey_stream_refused" }]);
        expect((await app.entry())?.outcome ?? null).toBeNull();
      }
    });

    it("sends the length that its body has, whatever it said", async () => {
      for (const length of ["1", "100", "+3", "nonsense"]) {
        const app = await serve(
          framework,
          (_req, res) => void res.writeHead(200, { "Content-Length": length }).end("abc"),
        );
        for (const answer of [await app.post(), await app.post()]) {
          expect(answer.headers.filter(([header]) => header === "content-length")).toEqual([["content-length", "3"]]);
          expect(text(answer)).toBe("abc");
        }
      }
      const both = { "Content-Length": "1", "Transfer-Encoding": "chunked" };
      const app = await serve(framework, (_req, res) => void res.writeHead(200, both).end("abc"));
      const answer = await app.post();
      expect(answer.headers.map(([header]) => header)).not.toContain("content-length");
      expect(text(answer)).toBe("abc");
    });

    it("sends a file name in Latin-1 as it is, and again on a replay", async () => {
      const named = { "Content-Disposition": "attachment; filename=\xe9", "Content-Type": "text/plain" };
      const app = await serve(framework, (_req, res) => void res.set(named).end("abc"));
      for (const answer of [await app.post(), await app.post()]) {
        expect(answer.headers).toContainEqual(["content-disposition", "attachment; filename=\xe9"]);
      }
    });

    it("passes informational answers on at once, and stores none", async () => {
      const { held, letGo } = hold();
      const app = await serve(framework, async (_req, res) => {
        res.writeEarlyHints({ link: "</a.css>; rel=preload" });
        await held;
        res.end("final");
      });
      const socket = openRaw(app.port, { target: "/a", headers: KEY });
      const [first] = (await new Promise<Buffer[]>((resolve) => socket.once("data", (...all) => resolve(all)))) as [
        Buffer,
      ];
      expect(first.toString()).toMatch(/^HTTP\/1.1 103 Early Hints\r\nLink: /i);
      letGo();
      const rest: Buffer[] = [];
      for await (const chunk of socket as AsyncIterable<Buffer>) rest.push(chunk);
      expect(Buffer.concat(rest).toString()).toMatch(/^HTTP\/1.1 200 OK\r\n.*final$/s);
      expect(text(await app.post())).toBe("final");
    });
  });
}

describe("a captured answer", () => {
  it("is sent after it is stored, which is after its effect", async () => {
    const order: string[] = [];
    const { held, letGo } = hold();
    const storing = hold();
    const inner = memoryStore();
    const store = {
      ...inner,
      async complete(...all: Parameters<typeof inner.complete>) {
        storing.letGo();
        await held;
        order.push("stored");
        return inner.complete(...all);
      },
    };
    const app = await serve(
      express,
      (_req, res) => {
        order.push("effect");
        res.end("x");
      },
      { store },
    );
    const socket = openRaw(app.port, { target: "/a", headers: KEY });
    socket.on("data", () => order.push("bytes"));
    await storing.held;
    // Whatever was written by now would be here before the answer to this one.
    expect((await sendRaw(app.port, { method: "GET", target: "/nothing" })).status).toBe(404);
    expect(order).toEqual(["effect"]);
    letGo();
    await new Promise((resolve) => socket.once("close", resolve));
    expect(order.slice(0, 3)).toEqual(["effect", "stored", "bytes"]);
  });

  it("that is long is given back when the client goes away in the middle of it", async () => {
    const app = await serve(express, (_req, res) => void longText().pipe(res), { maxStoredBodyBytes: 2 * LONG });
    const socket = openRaw(app.port, { target: "/a", headers: KEY });
    await new Promise((resolve) => socket.once("data", resolve));
    expect(openFiles()).toBe(1);
    socket.destroy();
    await until(() => openFiles() === 0);
    expect(app.limits.budget.heldBytes).toBe(0);
    const again = await app.post();
    expect(again.headers).toContainEqual(["idempotent-replayed", "true"]);
    expect(again.body).toHaveLength(LONG);
    expect(app.runs()).toBe(1);
  });

  it("that is long is shared by duplicates that wait for it, and let go of by all of them", async () => {
    const { held, letGo } = hold();
    const app = await serve(
      express,
      async (_req, res) => {
        await held;
        longText().pipe(res);
      },
      { maxStoredBodyBytes: 2 * LONG },
    );
    const answers = Array.from({ length: 8 }, () => app.post());
    await until(() => app.runs() === 1);
    letGo();
    for (const { status, body } of await Promise.all(answers)) {
      expect([status, body.length, body[0], body.at(-1)]).toEqual([200, LONG, 65, 64 + LONG / 65_536]);
    }
    expect(app.runs()).toBe(1);
    await until(() => openFiles() === 0);
    expect(app.limits.budget.heldBytes).toBe(0);
  });

  it("is stored though the server cuts every connection while it is made", async () => {
    const { held, letGo } = hold();
    const app = await serve(express, async (_req, res) => {
      await held;
      res.json({ a: 1 });
    });
    const cut = app.post().catch(() => "cut");
    await until(() => app.runs() === 1);
    app.server.closeAllConnections();
    expect(await cut).toBe("cut");
    letGo();
    await until(async () => (await app.entry())?.completedAt != null);
    expect(text(await app.post())).toBe('{"a":1}');
    expect(app.runs()).toBe(1);
  });

  it("waits its turn where requests are pipelined, and is given back where the connection breaks first", async () => {
    const made = await instance({ maxStoredBodyBytes: 2 * LONG });
    const { held, letGo } = hold();
    const app = express();
    app.post("/slow", async (_req, res) => {
      await held;
      res.end("slow");
    });
    app.post("/a", idempotent(made.wrap, { scope }), (_req, res) => void longText().pipe(res));
    const { port } = await listen(app);
    const head = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nIdempotency-Key: k\r\n\r\n`;
    const socket = connect(port, "127.0.0.1");
    socket.write(head("/slow") + head("/a"));
    await until(async () => (await made.entry())?.completedAt != null);
    await until(() => openFiles() === 1);
    socket.destroy();
    await until(() => openFiles() === 0);
    letGo();
    expect(made.limits.budget.heldBytes).toBe(0);
  });

  it("of the Fetch interface is recorded within the same bounds", async () => {
    const { wrap, limits, entry } = await instance({ maxAnswerBytes: LONG, maxStoredBodyBytes: 2 * LONG });
    const request = (key: string) => new Request("http://a/a", { method: "POST", headers: { "idempotency-key": key } });
    const long = bindFetch(wrap, { scope }, () => new Response(Readable.toWeb(longText()) as ReadableStream));
    const first = await long(request("k"));
    expect(openFiles()).toBe(1);
    expect((await first.arrayBuffer()).byteLength).toBe(LONG);
    expect((await (await long(request("k"))).arrayBuffer()).byteLength).toBe(LONG);
    const cut = (await long(request("other"))).body?.getReader();
    await cut?.read();
    await cut?.cancel();
    await until(() => openFiles() === 0);
    expect((await entry())?.state).toBe("succeeded");
    const cancelled = hold<unknown>();
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
      cancel: cancelled.letGo,
    });
    const tooLong = bindFetch(wrap, { scope }, () => new Response(endless));
    await expect(tooLong(request("long"))).rejects.toMatchObject({ code: "oncekey_stream_refused" });
    expect(await cancelled.held).toMatchObject({ code: "oncekey_stream_refused" });
    const lying = bindFetch(wrap, { scope }, () => new Response("abc", { headers: { "content-length": "1" } }));
    expect((await lying(request("lying"))).headers.get("content-length")).toBe("3");
    await until(() => openFiles() === 0);
    expect(limits.budget.heldBytes).toBe(0);
  });
});

describe("on HTTP/2", () => {
  it("captured handlers are refused before anything is claimed, and transactions work", async () => {
    const { wrap, write, entry } = await instance();
    let runs = 0;
    const app = fastify({ http2: true });
    // The types of a Fastify over HTTP/2 name other requests than the binding does.
    app.post("/a", bindFastify(wrap, { scope }) as never, (async () => `ran ${++runs}`) as never);
    app.post("/b", bindFastify(write, { scope }) as never);
    await app.listen({ port: 0, host: "127.0.0.1" });
    const client = connectHttp2(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`);
    const post = async (path: string) => {
      const stream = client.request({ ":method": "POST", ":path": path, "idempotency-key": "k" });
      stream.end();
      const status = new Promise((resolve) => stream.once("response", (headers) => resolve(headers[":status"])));
      const chunks: Buffer[] = [];
      for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
      return [await status, Buffer.concat(chunks).toString()];
    };
    const [status, body] = await post("/a");
    expect([status, runs, await entry()]).toEqual([500, 0, null]);
    expect(body).toContain("HTTP/2");
    expect(await post("/b")).toEqual([200, '{"a":1}']);
    expect(await post("/b")).toEqual([200, '{"a":1}']);
    await new Promise<void>((resolve) => client.close(resolve));
    await app.close();
  });
});
