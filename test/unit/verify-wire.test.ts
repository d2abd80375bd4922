import { createServer, type Server, type Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { told, wordsOf } from "../../src/verify/answer.ts";
import { cutOff, exchange, type Outgoing } from "../../src/verify/wire.ts";

const servers: Server[] = [];
afterAll(async () => {
  for (const server of servers) await new Promise((done) => server.close(done));
});

interface Heard {
  readonly url: URL;
  /** All bytes that came, as latin-1, once a connection has ended. */
  readonly all: Promise<string>;
  connections(): number;
}

/** A server of bare bytes: says this as soon as the head of a request has come. */
async function saying(text: string): Promise<Heard> {
  let connections = 0;
  let tell: (heard: string) => void = () => {};
  const all = new Promise<string>((done) => {
    tell = done;
  });
  const server = createServer((socket: Socket) => {
    connections += 1;
    let heard = "";
    socket.on("error", () => {});
    socket.on("close", () => tell(heard));
    socket.setEncoding("latin1").on("data", (data: string) => {
      heard += data;
      if (heard.includes("\r\n\r\n") && text !== "") socket.end(text, "latin1");
    });
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { url: new URL(`http://127.0.0.1:${address.port}/a?b=c`), all, connections: () => connections };
}

const ANSWER = "HTTP/1.1 201 Created\r\nSet-Cookie: a\r\nset-cookie: b\r\nContent-Length: 3\r\n\r\n\u00ff\u0000x";

const post = (url: URL, more: Partial<Outgoing> = {}): Outgoing => ({
  ...{ url, method: "POST", headers: [["Idempotency-Key", "one"]], body: Buffer.from('{"a":1}') },
  ...more,
});

describe("a request", () => {
  it("goes out line by line as it was given, and its answer comes back byte for byte", async () => {
    const { url, all } = await saying(ANSWER);
    const headers = [
      ["Idempotency-Key", "one"],
      ["Idempotency-Key", "tw\u00c3\u00b6"],
    ] as const;
    const reply = await exchange(post(url, { headers }), 5_000);
    expect(await all).toMatch(/^POST \/a\?b=c HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/);
    expect(await all).toContain("\r\nIdempotency-Key: one\r\nIdempotency-Key: tw\u00c3\u00b6\r\n");
    expect(await all).toMatch(/\r\nContent-Length: 7\r\n.*\r\n\r\n\{"a":1\}$/s);
    expect(reply).toMatchObject({ kind: "answer", status: 201 });
    if (reply.kind !== "answer") return;
    expect(reply.bytes).toEqual(Buffer.from([0xff, 0x00, 0x78]));
    expect(reply.headers.filter(([name]) => name.toLowerCase() === "set-cookie")).toHaveLength(2);
  });

  it("follows no redirect", async () => {
    const elsewhere = await saying(ANSWER);
    const { url } = await saying(`HTTP/1.1 307 Moved\r\nLocation: ${elsewhere.url}\r\nContent-Length: 0\r\n\r\n`);
    expect(await exchange(post(url), 5_000)).toMatchObject({ kind: "answer", status: 307 });
    expect(elsewhere.connections()).toBe(0);
  });

  it("never rejects: what breaks has a reason", async () => {
    const { url: silent } = await saying("");
    expect(await exchange(post(silent), 50)).toEqual({ kind: "none", why: "timeout" });
    const { url: broken } = await saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    const reply = await exchange(post(broken), 5_000);
    expect(reply).toEqual({ kind: "none", why: expect.stringMatching(/^(?:ECONNRESET|closed)$/) });
    const { url: nonsense } = await saying("nonsense\r\n\r\n");
    expect(await exchange(post(nonsense), 5_000)).toMatchObject({ kind: "none", why: expect.stringMatching(/^HPE_/) });
    expect(await exchange(post(new URL("http://127.0.0.1:1/")), 5_000)).toEqual({ kind: "none", why: "ECONNREFUSED" });
  });

  it("is cut within its body, or behind it", async () => {
    const first = await saying("");
    await cutOff(post(first.url), "sending", 5_000);
    expect(await first.all).toMatch(/\r\n\r\n\{"a"$/);
    const second = await saying("");
    await cutOff(post(second.url), "waiting", 5_000);
    expect(await second.all).toMatch(/\r\n\r\n\{"a":1\}$/);
  });
});

describe("what is told of an answer", () => {
  const answer = (status: number, body: string) => ({
    ...{ kind: "answer" as const, status, headers: [], bytes: Buffer.from(body), sentAtMs: 0, doneAtMs: 0 },
  });

  it("is status, word, length and digest, never its content", () => {
    expect(told(answer(200, '{"code":"secret"}'))).toMatch(/^200 \(17 bytes, sha256 [0-9a-f]{8}\)$/);
    expect(told(answer(204, ""))).toBe("204 (no body)");
    expect(told(answer(422, '{"code":"key_reused"}'))).toMatch(/^422 key_reused \(/);
    expect(told({ kind: "none", why: "timeout" })).toBe("no answer (timeout)");
  });

  it.each([
    ['{"error":{"type":"idempotency_error"}}', ["idempotency_error"]],
    ['{"status":422,"errorCode":"704"}', ["704"]],
    ['{"errors":[{"code":"IDEMPOTENCY_KEY_REUSED"}]}', ["IDEMPOTENCY_KEY_REUSED"]],
    ['{"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"DUPLICATE"}]}', ["DUPLICATE", "UNPROCESSABLE_ENTITY"]],
    ['{"name":"Ada","code":"deadbeef-0000-4000-8000-000000000000"}', []],
    ['{"code":"two words","type":"https://example.com/x"}', []],
    ["no JSON", []],
  ])("has the words that programs decide on: %s", (body, words) => {
    expect(wordsOf(answer(422, body))).toEqual(words);
  });
});
