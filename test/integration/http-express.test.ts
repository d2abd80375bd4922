import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import { createOncekey, ok } from "oncekey";
import { idempotent } from "oncekey/express";
import { memoryStore } from "oncekey/memory";
import { afterEach, describe, expect, it } from "vitest";
import { sendRaw } from "../../src/testing/raw-client.ts";

// The alias has no types of its own.
const express4 = createRequire(import.meta.url)("express4") as typeof express;
const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Options {
  readonly before?: readonly RequestHandler[];
  readonly after?: readonly RequestHandler[];
  readonly capture?: RequestHandler;
  readonly lax?: boolean;
}

/** An app with one bound route; gives what bodies the operation saw and what reached the error handling. */
async function serve(framework: typeof express, { before = [], after = [], capture, lax = false }: Options) {
  const once = createOncekey({ store: memoryStore() });
  const seen: unknown[] = [];
  const errors: { code?: string; message: string }[] = [];
  const reconcile = async () => ({ kind: "unknown", why: "never asked" }) as const;
  const operation =
    capture === undefined
      ? once.transaction({
          name: "a.create",
          version: 1,
          async run({ input }) {
            seen.push(input.body);
            return ok(input.body ?? null);
          },
        })
      : once.capture({ name: "a.create", version: 1, reconcile });
  await once.start();
  const app = framework();
  for (const handler of before) app.use(handler);
  const scope = (_req: Request) => ({ tenant: "acme", client: null });
  const handlers = capture === undefined ? [] : [...after, capture];
  app.post("/a", idempotent(operation, { scope, allowUnsafeNumbers: lax }), ...handlers);
  app.use((error: Error, _req: Request, res: Response, _next: NextFunction) => {
    errors.push(error);
    if (!res.headersSent) res.status(500).json({ error: error.name });
  });
  const server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close());
  closing.push(() => server.closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const post = (body: string | Uint8Array, headers: Record<string, string> = {}) => {
    const all = { "Idempotency-Key": "k", "Content-Type": "application/json", ...headers };
    return sendRaw(port, { target: "/a", body, headers: Object.entries(all) });
  };
  return { post, seen, errors };
}

const drain: RequestHandler = (req, _res, next) => {
  req.resume();
  req.on("end", () => next());
};

for (const [version, framework] of [
  ["4", express4],
  ["5", express],
] as const) {
  describe(`Express ${version}`, () => {
    it("works behind a JSON parser, exact or refused", async () => {
      const { post, seen, errors } = await serve(framework, { before: [framework.json()] });
      const first = await post('{"a":1.5,"b":[1]}');
      const again = await post('{"b":[1.0], "a":1.50}');
      expect([first.status, again.status]).toEqual([200, 200]);
      expect(again.body.equals(first.body)).toBe(true);
      expect((await post('{"a":2}')).status).toBe(422);
      expect((await post('{"a":9007199254740993}')).status).toBe(400);
      expect(seen).toEqual([{ a: 1.5, b: [1] }]);
      expect(errors).toEqual([]);
    });

    it("takes the exact bytes where a parser kept them", async () => {
      const keep = (req: Request & { rawBody?: Uint8Array }, _res: unknown, bytes: Uint8Array) => {
        req.rawBody = bytes;
      };
      const parsers = [
        framework.json({ verify: keep as never }),
        framework.raw({ type: "*/*" }),
        framework.text({ type: "*/*" }),
      ];
      for (const parser of parsers) {
        const { post, seen } = await serve(framework, { before: [parser] });
        const zipped = gzipSync('{"a":9007199254740993}');
        expect((await post(zipped, { "Content-Encoding": "gzip" })).status).toBe(200);
        expect((await post('{"a":9007199254740993}')).status).toBe(200);
        expect((await post('{"a":9007199254740992}')).status).toBe(422);
        expect(seen).toEqual([{ a: 9007199254740993n }]);
      }
    });

    it("works behind a form parser, and tells no body from an empty one", async () => {
      const { post, seen } = await serve(framework, { before: [framework.urlencoded({ extended: true })] });
      expect((await post("a=1&m[x]=2", { "Content-Type": "application/x-www-form-urlencoded" })).status).toBe(200);
      expect((await post("", { "Idempotency-Key": "none" })).status).toBe(200);
      expect(seen).toEqual([{ a: "1", m: { x: "2" } }, undefined]);
      expect((await post("{}", { "Idempotency-Key": "none" })).status).toBe(422);
    });

    it("fails at once, naming the cause, where a reader left nothing of the body", async () => {
      const { post, seen, errors } = await serve(framework, { before: [drain] });
      expect((await post('{"a":1}')).status).toBe(500);
      expect(errors).toHaveLength(1);
      expect(errors[0]).toMatchObject({ code: "oncekey_body_consumed" });
      expect(errors[0]?.message).toContain("before that reader");
      expect(seen).toEqual([]);
    });

    it("gives a captured handler its body as a parser would, and later parsers do not wait", async () => {
      const bodies: unknown[] = [];
      const capture: RequestHandler = (req, res) => {
        bodies.push(req.body);
        res.json({});
      };
      const after = [framework.json(), framework.urlencoded({ extended: true })];
      const { post } = await serve(framework, { capture, after });
      expect((await post('{"a":[1.5]}', { "Idempotency-Key": "1" })).status).toBe(200);
      const zipped = gzipSync('{"z":1}');
      expect((await post(zipped, { "Idempotency-Key": "2", "Content-Encoding": "gzip" })).status).toBe(200);
      const form = { "Idempotency-Key": "3", "Content-Type": "application/x-www-form-urlencoded" };
      expect((await post("f[x]=1", form)).status).toBe(200);
      expect(bodies).toEqual([{ a: [1.5] }, { z: 1 }, { f: { x: "1" } }]);
    });

    it("leaves files and other bodies readable for a parser after a capture", async () => {
      const read: string[] = [];
      const capture: RequestHandler = (req, res, next) => {
        const chunks: Buffer[] = [];
        req.on("data", (chunk) => chunks.push(chunk));
        req.on("error", next);
        req.on("end", () => {
          read.push(Buffer.concat(chunks).toString("latin1"));
          res.json({ length: Buffer.concat(chunks).length });
        });
      };
      const { post } = await serve(framework, { capture });
      const file = (boundary: string, content: string) => ({
        body: `--${boundary}\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n${content}\r\n--${boundary}--\r\n`,
        headers: { "Content-Type": `multipart/form-data; boundary=${boundary}` },
      });
      const first = file("x", "y".repeat(300_000));
      const answer = await post(first.body, first.headers);
      expect(JSON.parse(answer.body.toString())).toEqual({ length: first.body.length });
      expect(read[0] === first.body).toBe(true);
      const again = file("other", "y".repeat(300_000));
      expect((await post(again.body, again.headers)).body.equals(answer.body)).toBe(true);
      const changed = file("x", "z".repeat(300_000));
      expect((await post(changed.body, changed.headers)).status).toBe(422);
      expect(read).toHaveLength(1);
    });

    it("lets a captured handler have ordinary numbers where the route allows it, and compares exactly", async () => {
      const bodies: unknown[] = [];
      const capture: RequestHandler = (req, res) => {
        bodies.push(req.body);
        res.json({});
      };
      const { post } = await serve(framework, { capture, lax: true });
      expect((await post('{"a":9007199254740993}')).status).toBe(200);
      expect((await post('{"a":9007199254740992}')).status).toBe(422);
      expect(bodies).toEqual([{ a: 9007199254740992 }]);
    });

    it("passes each error on exactly once", async () => {
      const throwing: RequestHandler = () => {
        throw new Error("sync");
      };
      const later: RequestHandler = (_req, _res, next) => void setImmediate(() => next(new Error("later")));
      const streaming: RequestHandler = (_req, res) => {
        res.writeHead(200, { "Content-Type": "text/event-stream" });
        res.write("data: 1\n\n");
      };
      for (const capture of [throwing, later, streaming]) {
        const { post, errors } = await serve(framework, { capture });
        expect((await post("{}")).status).toBe(500);
        expect(errors).toHaveLength(1);
        expect((await post("{}")).status).toBe(409);
        expect(errors).toHaveLength(1);
      }
    });

    it("keeps what earlier middleware set for this caller, on replays too", async () => {
      let requests = 0;
      const perRequest: RequestHandler = (_req, res, next) => {
        res.setHeader("X-Request-Id", String(++requests));
        res.vary("Origin");
        res.cookie("session", String(requests));
        next();
      };
      const capture: RequestHandler = (_req, res) => void res.cookie("own", "1").json({ a: 1 });
      for (const options of [{ before: [perRequest] }, { before: [perRequest], capture }]) {
        requests = 0;
        const { post } = await serve(framework, options);
        const answers = [await post("{}"), await post("{}")];
        const values = (name: string) =>
          answers.map(({ headers }) => headers.filter(([n]) => n === name).map(([, value]) => value.split(";")[0]));
        expect(values("x-request-id")).toEqual([["1"], ["2"]]);
        expect(values("vary")).toEqual([["Origin"], ["Origin"]]);
        expect(values("set-cookie")[1]).toEqual(["session=2"]);
      }
    });
  });
}
