import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { getRequestListener } from "@hono/node-server";
import express, { type Request as ExpressRequest, type Response as ExpressResponse, type NextFunction } from "express";
import { fastify } from "fastify";
import { Hono } from "hono";
import { createOncekey, ok, respond } from "oncekey";
import { idempotent as bindExpress } from "oncekey/express";
import { idempotent as bindFastify } from "oncekey/fastify";
import { idempotent as bindFetch } from "oncekey/fetch";
import { idempotent as bindHono } from "oncekey/hono";
import { memoryStore } from "oncekey/memory";
import { afterAll, describe, expect, it } from "vitest";
import type { Store } from "../../src/core/store.ts";
import { encodeContent } from "../../src/core/stored-outcome.ts";
import type { MemoryTransaction } from "../../src/stores/memory/index.ts";
import { type AdapterHarness, type App, hold, serveApp, until } from "../../src/testing/adapter-harness.ts";
import { sendRaw } from "../../src/testing/raw-client.ts";
import { expressHost } from "../conformance/adapter-hosts/express.ts";
import { fastifyHost } from "../conformance/adapter-hosts/fastify.ts";
import { fetchHost } from "../conformance/adapter-hosts/fetch.ts";
import { honoHost } from "../conformance/adapter-hosts/hono.ts";
import { listening } from "../conformance/adapter-hosts/listening.ts";

const hosts: Readonly<Record<string, () => Promise<AdapterHarness>>> = {
  "Express 5": () => expressHost(express),
  Fastify: fastifyHost,
  "Hono on Node": honoHost,
  "the Fetch interface": fetchHost,
};

const BODY = '{"amount":1}';

/** A request as text, with a key and a token, and whatever else. */
function request(headers: readonly string[], body: string, key = "key-1"): string {
  const lines = ["POST /v1/orders/7 HTTP/1.1", "Host: a", "Authorization: Bearer acme/app", `Idempotency-Key: ${key}`];
  return [...lines, "Content-Type: application/json", ...headers, "", body].join("\r\n");
}

/** Everything that comes back on one connection for these bytes, until the server closes it, or we do when it is enough. */
async function talk(port: number, bytes: string, enough: (received: string) => boolean = () => false): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(Buffer.from(bytes, "latin1"));
  let received = "";
  return new Promise((resolve) => {
    socket.once("close", () => resolve(received));
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
      if (enough(received)) socket.destroy();
    });
  });
}

const statuses = (received: string) =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
const answers = (count: number, end: string) => (received: string) =>
  statuses(received).length === count && received.endsWith(end);

for (const [name, host] of Object.entries(hosts)) {
  describe(`${name}, given bad input`, async () => {
    const harness = await host();
    afterAll(() => harness.close());

    const transaction = () => serveApp(harness, { run: async ({ input }) => ok(input.body) });
    const capture = () => serveApp(harness, { existing: { way: "json", text: async () => "stored" } });

    /** Nothing ran, nothing is stored, and the same key serves the same request sent rightly. */
    async function expectUntouched(app: App, right = 200): Promise<void> {
      expect(app.runs()).toBe(0);
      expect(await app.entry("key-1")).toBeNull();
      expect((await app.post({ body: BODY })).status).toBe(right);
    }

    it("refuses a content coding that is wrong, unknown or doubled", async () => {
      for (const serve of [transaction, capture]) {
        for (const [coding, body, status] of [
          ["gzip", Buffer.from(BODY), 400],
          ["gzip", gzipSync(BODY).subarray(0, 12), 400],
          ["br", gzipSync(BODY), 400],
          ["zstd", Buffer.from(BODY), 415],
          ["gzip, gzip", gzipSync(gzipSync(BODY)), 415],
        ] as const) {
          const app = await serve();
          const refused = await app.post({ body, headers: [["content-encoding", coding]] });
          // Before a captured handler Fastify's own parser meets the bytes, and finds no JSON.
          if (name === "Fastify" && serve === capture) expect([400, status], coding).toContain(refused.status);
          else expect(refused.status, coding).toBe(status);
          await expectUntouched(app, serve === capture ? 201 : 200);
        }
      }
    });

    it("runs nothing where Content-Length promises more than comes", async () => {
      for (const serve of [transaction, capture]) {
        const app = await serve();
        const socket = connect(app.port, "127.0.0.1");
        socket.on("error", () => {});
        socket.write(request(["Content-Length: 100"], BODY));
        socket.end();
        socket.resume();
        await new Promise((resolve) => socket.once("close", resolve));
        await expectUntouched(app, serve === capture ? 201 : 200);
      }
    });

    it("takes what Content-Length says, and nothing of what comes behind it, for the request", async () => {
      const app = await transaction();
      // What comes behind ends the connection, maybe before the first request is answered on it.
      const received = await talk(app.port, request([`Content-Length: ${BODY.length}`], `${BODY}{"amount":2}\r\n\r\n`));
      expect(statuses(received).at(-1)).toBe(400);
      expect(received).not.toContain('{"amount":2}');
      expect((await app.post({ body: BODY })).body.toString()).toBe(BODY);
      expect(app.runs()).toBe(1);
    });

    it("refuses framing that can be read in two ways", async () => {
      for (const headers of [
        [`Content-Length: ${BODY.length}`, "Content-Length: 3"],
        [`Content-Length: ${BODY.length}`, "Transfer-Encoding: chunked"],
        ["Content-Length: +12"],
        ["Content-Length: 12, 12"],
        ["Transfer-Encoding: gzip"],
      ]) {
        const app = await transaction();
        expect(statuses(await talk(app.port, request(headers, BODY))), headers.join()).toEqual([400]);
        await expectUntouched(app);
      }
    });

    it("runs nothing where the chunks are garbage, or end too early", async () => {
      for (const serve of [transaction, capture]) {
        for (const chunks of [
          "zz\r\nabc\r\n0\r\n\r\n",
          `c\r\n${BODY}garbage`,
          "-1\r\n\r\n",
          "ffffffffffffffffff\r\n",
        ]) {
          const app = await serve();
          const received = await talk(app.port, request(["Transfer-Encoding: chunked"], chunks));
          expect(statuses(received).every((status) => status >= 400)).toBe(true);
          await expectUntouched(app, serve === capture ? 201 : 200);
        }
      }
    });

    it("answers pipelined requests in their order, and runs those of one key once", async () => {
      const headers = [`Content-Length: ${BODY.length}`];
      for (const kind of ["transaction", "capture"]) {
        const app = kind === "capture" ? await capture() : await transaction();
        const end = kind === "capture" ? "}" : BODY;
        const twice = request(headers, BODY) + request(headers, BODY);
        const received = await talk(app.port, twice, answers(2, end));
        expect(new Set(statuses(received)).size).toBe(1);
        expect(received.match(/idempotent-replayed: true/gi)).toHaveLength(1);
        expect(received.indexOf("dempotent-")).toBeGreaterThan(received.indexOf("HTTP/1.1", 10));
        expect(app.runs()).toBe(1);
      }
    });

    it("answers pipelined requests of two keys in their order, though the second is done first", async () => {
      const { held, letGo } = hold();
      let first = true;
      const app = await serveApp(harness, {
        run: async ({ input }) => {
          const slow = first;
          first = false;
          if (slow) await held;
          return ok(input.body);
        },
      });
      const one = request(["Content-Length: 7"], '{"n":1}', "key-1");
      const two = request(["Content-Length: 7"], '{"n":2}', "key-2");
      const received = talk(app.port, one + two, answers(2, '{"n":2}'));
      // A server that begins the second only when the first is answered is as good.
      await until(async () => app.runs() === 2 || (await app.entry("key-1")) === null);
      letGo();
      expect((await received).indexOf('{"n":1}')).toBeLessThan((await received).indexOf('{"n":2}'));
      expect(statuses(await received)).toEqual([200, 200]);
      expect(app.runs()).toBe(2);
    });

    it("lets no stored header break out of its line", async () => {
      const replayed = async (header: readonly [string, string]) => {
        const app = await serveApp(harness, {
          run: async () => ok({}),
          settings: { store: tampering([header]) },
        });
        expect((await app.post({ body: BODY })).status).toBe(200);
        const answer = await app.post({ body: BODY });
        expect(app.runs()).toBe(1);
        return answer;
      };
      for (const value of ["/a\r\nX-Evil: 1", "/a\nX-Evil: 1", "/a\r\n\r\n<script>", "/a\0b", "/\u{1f600}"]) {
        const answer = await replayed(["location", value]);
        expect(answer.status).toBe(500);
        expect(answer.headers.map(([header]) => header)).not.toContain("x-evil");
        expect(answer.body.toString()).not.toContain("<script>");
      }
      const latin = ["etag", '"\xe9"'] as const;
      expect((await replayed(latin)).headers).toContainEqual(latin);
    });

    it("lets no operation store such a header", async () => {
      for (const value of ["a\r\nX-Evil: 1", "a\0", "\u{1f600}"]) {
        const app = await serveApp(harness, {
          run: async () => respond(200, "{}", { etag: value }),
        });
        expect((await app.post({ body: BODY })).status).toBe(500);
        expect(await app.entry("key-1")).toBeNull();
      }
    });
  });
}

/** A store whose outcomes have these headers, as a broken or hostile database would have them. */
function tampering(headers: readonly (readonly [string, string])[]): Store<MemoryTransaction> {
  const store = memoryStore();
  return {
    ...store,
    async read(id) {
      const entry = await store.read(id);
      if (entry?.outcome == null) return entry;
      const content = encodeContent({ headers, body: Buffer.from("{}") });
      return { ...entry, outcome: { status: 200, content, pointer: null } };
    },
  };
}

describe("a body that was read before the binding", () => {
  const scope = () => ({ tenant: "acme", client: null });

  async function operation() {
    const once = createOncekey({ store: memoryStore() });
    let runs = 0;
    const write = once.transaction({ name: "a.write", version: 1, run: async () => ok({ runs: ++runs }) });
    await once.start();
    return { write, runs: () => runs };
  }

  /** The order of parsers has to be named, and nothing of the request. */
  function expectExplained(errors: readonly unknown[], runs: number): void {
    expect(errors).toMatchObject([{ code: "oncekey_body_consumed" }]);
    const { message } = errors[0] as Error;
    expect(message).toMatch(/Nothing was run or stored\..*(first|before|keep|hook)/);
    expect(message).not.toContain("amount");
    expect(runs).toBe(0);
  }

  const { listen, close } = listening();
  afterAll(close);
  const post = (port: number, type = "application/json") =>
    sendRaw(port, {
      target: "/a",
      body: BODY,
      headers: [
        ["idempotency-key", "k"],
        ["content-type", type],
      ],
    });

  it("is explained by Express", async () => {
    const { write, runs } = await operation();
    const errors: unknown[] = [];
    const app = express();
    app.use((req, _res, next) => void req.resume().once("end", () => next()));
    app.post("/a", bindExpress(write, { scope }));
    app.use((error: unknown, _req: ExpressRequest, res: ExpressResponse, _next: NextFunction) => {
      errors.push(error);
      res.status(500).end();
    });
    expect((await post(await listen(app))).status).toBe(500);
    expectExplained(errors, runs());
  });

  it("is explained by Fastify", async () => {
    const { write, runs } = await operation();
    const errors: unknown[] = [];
    const app = fastify();
    const { handler } = bindFastify(write, { scope });
    const errorHandler = (error: unknown, _request: unknown, reply: { code(status: number): { send(): void } }) => {
      errors.push(error);
      reply.code(500).send();
    };
    app.post("/a", { handler, errorHandler } as never);
    const answer = await app.inject({
      method: "POST",
      url: "/a",
      payload: BODY,
      headers: { "idempotency-key": "k", "content-type": "application/json" },
    });
    expect(answer.statusCode).toBe(500);
    expectExplained(errors, runs());
    await app.close();
  });

  it("is explained by Hono and by the Fetch interface", async () => {
    for (const bound of ["hono", "fetch"]) {
      const { write, runs } = await operation();
      const errors: unknown[] = [];
      const app = new Hono();
      app.onError((error, c) => {
        errors.push(error);
        return c.body(null, 500);
      });
      app.use(async (c, next) => {
        await c.req.raw.text();
        await next();
      });
      if (bound === "hono") app.post("/a", bindHono(write, { scope }));
      else app.post("/a", (c) => bindFetch(write, { scope })(c.req.raw));
      expect((await post(await listen(getRequestListener(app.fetch)))).status).toBe(500);
      expectExplained(errors, runs());
    }
  });
});
