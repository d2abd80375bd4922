import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { answer, cutAfter, cutBefore, hostileServer, raw, type Step } from "../support/hostile-server.ts";
import { CONTENT, expectOneAction, hostileWorld, problem } from "./support/hostile-client.ts";

const CREATED = "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\n";

/** Answers that are none, as bytes on the wire. */
const broken: Readonly<Record<string, string>> = {
  "nothing at all": "",
  "half a status line": "HTTP/1.1 2",
  "a status line of garbage": "ICY 2OO fine\r\n\r\n{}",
  "a status that is no number": "HTTP/1.1 abc Created\r\n\r\n",
  "half of the headers": "HTTP/1.1 201 Created\r\ncontent-ty",
  "a length that the body does not reach": `${CREATED}content-length: 500\r\n\r\n{"number":1`,
  "two lengths": `${CREATED}content-length: 2\r\ncontent-length: 4\r\n\r\n{}  `,
  "a length that is no number": `${CREATED}content-length: lots\r\n\r\n{}`,
  "chunks without an end": `${CREATED}transfer-encoding: chunked\r\n\r\nb\r\n{"number":1\r\n`,
  "a chunk of a size that is none": `${CREATED}transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
  "both a length and chunks": `${CREATED}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n`,
  "a body without length that ends in the middle": `${CREATED}connection: close\r\n\r\n{"number":1,"of":{"amo`,
  "half a megabyte of headers": `${CREATED}${`x-filler: ${"y".repeat(1_000)}\r\n`.repeat(500)}content-length: 2\r\n\r\n{}`,
  "a header line without end": `HTTP/1.1 201 Created\r\nx: ${"y".repeat(200_000)}`,
  "a zero byte in a header": `${CREATED}x-odd: a\0b\r\ncontent-length: 2\r\n\r\n{}`,
  "gzip that is none": `${CREATED}content-encoding: gzip\r\ncontent-length: 9\r\n\r\nnot gzip!`,
  "half of a gzip": `${CREATED}content-encoding: gzip\r\nconnection: close\r\n\r\n${gzipSync(
    JSON.stringify({ text: "x".repeat(99) }),
  )
    .subarray(0, 20)
    .toString("latin1")}`,
  "a change of protocol that nobody asked for":
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
  "early hints, and then nothing": "HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n",
  "the answer of another protocol": "SSH-2.0-OpenSSH_9.9\r\n",
};

const worked = [false, true];
const brokenRows = Object.entries(broken).flatMap(([what, bytes]) => worked.map((done) => ({ what, bytes, done })));

describe("an answer that is broken on the wire", () => {
  it.each(brokenRows)("is repeated under the same key: $what (work done: $done)", async ({ bytes, done }) => {
    const world = await hostileWorld();
    world.plan(raw(bytes, { worked: done }));
    const result = await world.submit();
    expect(result).toMatchObject({ kind: "succeeded", replayed: done, response: { status: 201 } });
    expect(world.seen).toHaveLength(2);
    expectOneAction(world);
    expect(world.executed).toEqual([JSON.stringify(CONTENT)]);
  });

  it.each([
    { end: cutBefore, what: "closed before the work", executions: 0 },
    { end: cutAfter, what: "closed after the work", executions: 1 },
    { end: (({ socket }) => void socket.resetAndDestroy()) as Step, what: "reset before the work", executions: 0 },
  ])("ends as unknown where every connection is $what, and is known when the server is well again", async (row) => {
    const world = await hostileWorld();
    world.plan(...Array.from({ length: 200 }, () => row.end));
    expect(await world.submit()).toEqual({ kind: "unknown", why: "window_over", response: null, sent: true });
    expect(world.seen.length).toBeGreaterThan(5);
    expect(world.executed).toHaveLength(row.executions);
    expect((await world.client.pending()).map(({ name, sent }) => [name, sent])).toEqual([["order-42", true]]);
    expectOneAction(world);
  });

  it("is given up after the attempt's own time when it drips in slowly, and repeated", async () => {
    const world = await hostileWorld({ attemptTimeoutMs: 200 });
    const timers: NodeJS.Timeout[] = [];
    const drip: Step = async ({ work, response, socket }) => {
      await work();
      response.writeHead(201, { "content-type": "application/json" });
      const timer = setInterval(() => response.write(" "), 20);
      timers.push(timer);
      socket.on("close", () => clearInterval(timer));
    };
    world.plan(drip, drip);
    expect(await world.submit()).toMatchObject({ kind: "succeeded", replayed: true });
    expect(world.seen).toHaveLength(3);
    expectOneAction(world);
    for (const timer of timers) clearInterval(timer);
  });

  it("is left behind when nothing ever comes, and repeated", async () => {
    const world = await hostileWorld({ attemptTimeoutMs: 200 });
    world.plan(
      () => {},
      ({ work }) => work(),
    );
    expect(await world.submit()).toMatchObject({ kind: "succeeded", replayed: true });
    expect(world.seen).toHaveLength(3);
    expectOneAction(world);
  });
});

describe("an answer that is whole but odd", () => {
  it("counts when interim answers come before it", async () => {
    const world = await hostileWorld();
    world.plan(async ({ work, response }) => {
      response.writeProcessing();
      await new Promise<void>((done) => response.writeEarlyHints({ link: "</a.css>; rel=preload" }, done));
      const { status, headers, body } = await work();
      response.writeHead(status, headers).end(body);
    });
    expect(await world.submit()).toMatchObject({ kind: "succeeded", replayed: false, response: { status: 201 } });
    expect(world.seen).toHaveLength(1);
  });

  it("is asked for again where it begins with a Continue that nobody asked for, which Node's fetch does not bear", async () => {
    const world = await hostileWorld();
    world.plan(async ({ work, response }) => {
      response.writeContinue();
      const { status, headers, body } = await work();
      response.writeHead(status, headers).end(body);
    });
    expect(await world.submit()).toMatchObject({ kind: "succeeded", response: { status: 201 } });
    expectOneAction(world);
    expect(world.executed).toHaveLength(1);
  });

  it("counts without a body, and with bytes after its end", async () => {
    for (const bytes of [
      "HTTP/1.1 204 No Content\r\n\r\n",
      `${CREATED}content-length: 2\r\n\r\n{}HTTP/1.1 500 Oops\r\n\r\n`,
    ]) {
      const world = await hostileWorld();
      world.plan(raw(bytes, { worked: true }));
      expect(await world.submit()).toMatchObject({ kind: "succeeded", replayed: false });
      expect(world.seen).toHaveLength(1);
      expect(world.executed).toHaveLength(1);
    }
  });

  it.each(worked)("is not taken for success where it is a page: HTML with 200 (work done: %s)", async (done) => {
    const world = await hostileWorld();
    const page =
      "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: 12\r\n\r\n<h1>Hi</h1>\r\n";
    world.plan(raw(page, { worked: done }));
    const result = await world.submit();
    expect(result).toMatchObject({ kind: "unknown", why: "not_understood", sent: true, response: { status: 200 } });
    expect(world.seen).toHaveLength(1);
    const [kept] = await world.client.pending();
    expect(await kept?.send()).toMatchObject({ kind: "succeeded", replayed: done });
    expectOneAction(world);
    expect(world.executed).toHaveLength(1);
  });

  it.each([500, 502, 503, 504])("is repeated where it is a page with %i", async (status) => {
    const world = await hostileWorld();
    world.plan(answer(status, { "content-type": "text/html" }, "<h1>Bad Gateway</h1>"), cutAfter);
    expect(await world.submit()).toMatchObject({ kind: "succeeded", replayed: true });
    expect(world.seen).toHaveLength(3);
    expectOneAction(world);
  });

  it("is shown where such pages never end", async () => {
    const world = await hostileWorld();
    world.plan(
      ...Array.from({ length: 200 }, () => answer(502, { "content-type": "text/html" }, "<h1>Bad Gateway</h1>")),
    );
    const result = await world.submit();
    expect(result).toMatchObject({ kind: "unknown", why: "window_over", sent: true, response: { status: 502 } });
    expectOneAction(world);
  });
});

describe("a redirect of a submission", () => {
  it.each([300, 301, 302, 303, 304, 307, 308])("is not followed, and said: %i", async (status) => {
    const world = await hostileWorld();
    const elsewhere = await hostileServer();
    world.plan(answer(status, { location: `${elsewhere.url}/things` }));
    expect(await world.submit()).toMatchObject({ kind: "unknown", why: "redirected" });
    expect(elsewhere.seen).toEqual([]);
    expect(world.seen).toHaveLength(1);
    const [kept] = await world.client.pending();
    expect(await kept?.send()).toMatchObject({ kind: "succeeded", replayed: false });
    expectOneAction(world);
    expect(world.executed).toHaveLength(1);
  });

  it("is not followed back to the same place either, and costs no second attempt", async () => {
    const world = await hostileWorld();
    world.plan(async ({ work, response }) => {
      await work();
      response.writeHead(303, { location: "/things/1" }).end();
    });
    expect(await world.submit()).toMatchObject({ kind: "unknown", why: "redirected", sent: true });
    expect(world.seen).toHaveLength(1);
    expect(await (await world.restarted().pending())[0]?.send()).toMatchObject({ kind: "succeeded", replayed: true });
    expectOneAction(world);
  });
});

describe("a problem that lies", () => {
  it("is no success because its status says so", async () => {
    const world = await hostileWorld();
    world.plan(problem(200, { status: 200, code: "idempotency_in_progress", retry: "new_key" }));
    expect(await world.submit()).toMatchObject({ kind: "unknown", why: "not_understood" });
    expect(world.seen).toHaveLength(1);
    expectOneAction(world);
  });

  it.each(["new_key", "never"])("makes no new key of a server error, whatever it advises (%s)", async (retry) => {
    const world = await hostileWorld();
    world.plan(
      problem(503, { code: "idempotency_store_unavailable", retry }),
      problem(500, { code: "x", retry }),
      cutAfter,
    );
    expect(await world.submit()).toMatchObject({ kind: "succeeded", replayed: true });
    expect(world.seen).toHaveLength(4);
    expectOneAction(world);
  });

  it("says that a refusal of the key is not certain after an attempt that got no answer, and keeps the submission", async () => {
    const world = await hostileWorld();
    world.plan(cutAfter, problem(422, { code: "idempotency_payload_mismatch", retry: "new_key" }));
    expect(await world.submit()).toMatchObject({
      kind: "refused",
      code: "idempotency_payload_mismatch",
      retry: "new_key",
      certain: false,
    });
    const [kept] = await world.client.pending();
    expect(await kept?.send()).toMatchObject({ kind: "succeeded", replayed: true });
    expectOneAction(world);
    expect(world.executed).toHaveLength(1);
  });

  it.each([
    { body: "null" },
    { body: "[]" },
    { body: '"refused"' },
    { body: '{"code":{"a":1},"retry":7,"error":null}' },
    { body: '{"code":"' },
    { body: "" },
    { body: `{"a":${"[".repeat(50_000)}` },
    { body: "ÿþ" },
  ])("is a refusal without a code where its body says nothing (%#)", async ({ body }) => {
    const world = await hostileWorld();
    world.plan(
      answer(
        422,
        { "content-type": "application/problem+json", "content-length": String(Buffer.byteLength(body)) },
        body,
      ),
    );
    expect(await world.submit()).toMatchObject({
      kind: "refused",
      code: null,
      certain: true,
      response: { status: 422 },
    });
    expect(world.seen).toHaveLength(1);
    expectOneAction(world);
  });

  it("cannot name another key, or make the client send elsewhere", async () => {
    const world = await hostileWorld();
    const headers = {
      "idempotency-key": "another",
      location: "http://127.0.0.1:1/",
      "content-location": "http://127.0.0.1:1/",
    };
    world.plan(answer(503, headers), answer(409, { ...headers, "retry-after": "0" }), cutAfter);
    expect(await world.submit()).toMatchObject({ kind: "succeeded", replayed: true });
    expect(world.seen).toHaveLength(4);
    expectOneAction(world);
  });
});
