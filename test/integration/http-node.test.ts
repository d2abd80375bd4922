import type { IncomingMessage } from "node:http";
import { idempotent, type NodeBindingOptions, type NodeHandler } from "oncekey/node";
import { describe, expect, it } from "vitest";
import { bindable, post, scope, served } from "./support/capturing.ts";

async function capturing(
  handler: NodeHandler<IncomingMessage>,
  options: Partial<NodeBindingOptions<IncomingMessage>> = {},
) {
  const ops = await bindable();
  const url = await served(idempotent(ops.wrap, { scope, ...options }, handler));
  return { ...ops, url };
}

describe("node:http", () => {
  it("answers an empty 500 and tells onError of what a handler threw or rejected with", async () => {
    const secret = new Error("the secret");
    const handlers: NodeHandler<IncomingMessage>[] = [
      () => {
        throw secret;
      },
      async () => Promise.reject(secret),
      (_req, res) => {
        res.setHeader("X-Secret", "yes").write("a part");
        throw secret;
      },
    ];
    for (const [at, handler] of handlers.entries()) {
      const told: unknown[] = [];
      const { url, state, errors } = await capturing(handler, { onError: (error) => void told.push(error) });
      const answer = await post(url).then(
        async (got) => [got.status, await got.text()],
        () => "cut",
      );
      expect(answer).toEqual(at === 2 ? "cut" : [500, ""]);
      expect(told).toContain(secret);
      expect(errors).toEqual([]);
      expect(await (await post(url)).json()).toMatchObject({ code: "idempotency_outcome_unknown" });
      expect(await state()).toBe("needs_recovery");
    }
  });

  it("tells the instance's onError where the binding has none", async () => {
    const { url, errors } = await capturing(() => {
      throw new Error("broken");
    });
    expect((await post(url)).status).toBe(500);
    expect(errors).toMatchObject([{ message: "broken" }]);
  });

  it("leaves an answer alone that was complete when its handler threw", async () => {
    const told: unknown[] = [];
    const handler: NodeHandler<IncomingMessage> = (_req, res) => {
      res.end("done");
      throw new Error("too late");
    };
    const { url } = await capturing(handler, { onError: (error) => void told.push(error) });
    for (const marker of [null, "true"]) {
      const answer = await post(url);
      expect([answer.status, await answer.text(), answer.headers.get("idempotent-replayed")]).toEqual([
        200,
        "done",
        marker,
      ]);
    }
    expect(told).toMatchObject([{ message: "too late" }]);
  });

  it("refuses an event stream with an empty 500", async () => {
    const told: unknown[] = [];
    const { url } = await capturing(
      (_req, res) => void res.writeHead(200, { "content-type": "text/event-stream" }).write("x"),
      {
        onError: (error) => void told.push(error),
      },
    );
    const answer = await post(url);
    expect([answer.status, await answer.text()]).toEqual([500, ""]);
    expect(told).toMatchObject([{ code: "oncekey_stream_refused" }]);
  });

  it("compares the URL that a router keeps in originalUrl", async () => {
    const { wrap } = await bindable();
    const bound = idempotent(wrap, { scope }, (req, res) => res.end(req.url));
    const url = await served((req, res) => {
      Object.assign(req, { originalUrl: req.url, url: "/" });
      bound(req, res);
    });
    expect(await (await post(`${url}/v1`)).text()).toBe("/");
    expect((await post(`${url}/v2`)).status).toBe(422);
  });

  it("shows the handler the whole stream, an empty one of chunks too", async () => {
    const read: NodeHandler<IncomingMessage> = (req, res) => {
      const chunks: Buffer[] = [];
      req.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => res.end(Buffer.concat(chunks)));
    };
    const { url } = await capturing(read);
    const bodies = ['{"a":1}', new Blob(['{"a":', "2}"]).stream(), new Blob([]).stream()];
    const seen = [];
    for (const [at, body] of bodies.entries()) {
      seen.push(await (await post(url, body, { "idempotency-key": `k${at}` })).text());
    }
    expect(seen).toEqual(['{"a":1}', '{"a":2}', ""]);
  });

  it("calls a handler without any of ours for a safe method", async () => {
    const { url } = await capturing((_req, res) => res.end("alone"));
    const answer = await fetch(url);
    expect([await answer.text(), answer.headers.get("idempotent-replayed")]).toEqual(["alone", null]);
  });
});
