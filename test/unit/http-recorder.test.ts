import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip, gunzipSync } from "node:zlib";
import compression from "compression";
import { afterEach, describe, expect, it } from "vitest";
import { type AnyOutcome, bytesOf, type Outcome } from "../../src/core/outcome.ts";
import { writeNodeAnswer } from "../../src/http/node-response.ts";
import { type Recorder, recordResponse } from "../../src/http/recorder.ts";
import { recordingBudget } from "../../src/http/recording-limits.ts";
import { openRaw, type RawAnswer, sendRaw } from "../../src/testing/raw-client.ts";

const open: { close(): unknown; closeAllConnections(): void }[] = [];

const limits = { maxAnswerBytes: 1_048_576, budget: recordingBudget(1_048_576) };

afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: (res: ServerResponse) => unknown): Promise<number> {
  const server = createServer((_req, res) => void listener(res));
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

type Handler = (res: ServerResponse) => unknown;

/** Records the handler, releases, and gives what was recorded beside what the client got. */
async function recorded(handler: Handler, before?: Handler): Promise<{ outcome: Outcome; answer: RawAnswer }> {
  let outcome: Outcome | undefined;
  const port = await serve(async (res) => {
    before?.(res);
    const recorder = recordResponse(res, new AbortController().signal, limits);
    handler(res);
    outcome = await inMemory(recorder.outcome);
    recorder.release({ add: [["x-extra", "1"]], remove: "idempotent-replayed" });
  });
  const answer = await sendRaw(port, { method: "GET", target: "/" });
  if (outcome === undefined) throw new Error("nothing was recorded");
  return { outcome, answer };
}

async function inMemory(recorded: Promise<AnyOutcome>): Promise<Outcome> {
  const outcome = await recorded;
  return { ...outcome, body: await bytesOf(outcome.body) };
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
const values = (answer: RawAnswer, name: string) => answer.headers.filter(([n]) => n === name).map(([, v]) => v);

/** A compression middleware as they are written: it wraps write and end, and decides when the head is about to go. */
function compress(res: ServerResponse): void {
  const { write, end, writeHead } = res;
  const gzip = createGzip();
  res.writeHead = ((...all: Parameters<typeof writeHead>) => {
    if (!res.hasHeader("content-encoding")) {
      res.setHeader("Content-Encoding", "gzip");
      res.removeHeader("Content-Length");
    }
    return writeHead.apply(res, all);
  }) as typeof writeHead;
  const ensure = () => void (res.headersSent || res.writeHead(res.statusCode));
  res.write = ((chunk: string) => {
    ensure();
    return gzip.write(chunk);
  }) as typeof write;
  res.end = ((chunk?: string) => {
    ensure();
    gzip.end(chunk);
    return res;
  }) as typeof end;
  gzip.on("data", (chunk) => write.call(res, chunk, "utf8", () => {}));
  gzip.on("end", () => end.call(res, undefined, "utf8", () => {}));
}

describe("recordResponse", () => {
  it("records chunks of every form and sends the same bytes", async () => {
    const reused = Buffer.from("reused");
    const { outcome, answer } = await recorded((res) => {
      res.setHeader("Content-Type", "text/plain");
      res.write("Санкт ");
      res.write("e9", "hex");
      res.write(reused);
      reused.fill(0);
      res.end(Uint8Array.of(33), () => {});
    });
    const want = Buffer.concat([Buffer.from("Санкт "), Buffer.of(0xe9), Buffer.from("reused!")]);
    expect(Buffer.compare(outcome.body, want)).toBe(0);
    expect(Buffer.compare(answer.body, want)).toBe(0);
    expect(outcome.headers).toContainEqual(["content-type", "text/plain"]);
    expect(values(answer, "x-extra")).toEqual(["1"]);
  });

  it("takes writeHead in all its forms, and keeps the reason and both cookies", async () => {
    const forms: Handler[] = [
      (res) => res.writeHead(202, "Taken", { "X-A": "1", "Set-Cookie": ["a=1", "b=2"] }).end(),
      (res) => res.writeHead(202, ["X-A", "1", "Set-Cookie", "a=1", "Set-Cookie", "b=2"]).end(),
      (res) => res.setHeader("X-A", "0").writeHead(202, ["X-A", "1", "Set-Cookie", "a=1", "Set-Cookie", "b=2"]).end(),
    ];
    for (const form of forms) {
      const { outcome, answer } = await recorded(form);
      expect(outcome.status).toBe(202);
      expect(values(answer, "x-a")).toEqual(["1"]);
      expect(values(answer, "set-cookie")).toEqual(["a=1", "b=2"]);
      expect(outcome.headers.filter(([name]) => name === "set-cookie")).toHaveLength(2);
    }
  });

  it("lets the handler believe that the head is out as soon as it would be", async () => {
    const seen: unknown[] = [];
    await recorded((res) => {
      seen.push(res.headersSent, res.writableEnded);
      res.write("a");
      seen.push(
        res.headersSent,
        codeOf(() => res.setHeader("x", "1")),
        codeOf(() => res.writeHead(200)),
      );
      res.end();
      seen.push(
        res.writableEnded,
        res.write("b"),
        codeOf(() => res.end("c")),
      );
    });
    expect(seen).toEqual([
      false,
      false,
      true,
      "ERR_HTTP_HEADERS_SENT",
      "ERR_HTTP_HEADERS_SENT",
      true,
      false,
      undefined,
    ]);
  });

  it("refuses what Node refuses: chunks of other types, impossible statuses", async () => {
    const codes: unknown[] = [];
    await recorded((res) => {
      codes.push(
        codeOf(() => res.write(1 as never)),
        codeOf(() => res.write(null as never)),
      );
      codes.push(
        codeOf(() => res.writeHead(42)),
        codeOf(() => res.writeHead(200, ["odd"])),
      );
      res.end();
    });
    expect(codes).toEqual([
      "ERR_INVALID_ARG_TYPE",
      "ERR_STREAM_NULL_VALUES",
      "ERR_HTTP_INVALID_STATUS_CODE",
      "ERR_INVALID_ARG_VALUE",
    ]);
  });

  it("calls callbacks and tells finish and close, once, and leaves no listener behind", async () => {
    const told: string[] = [];
    let response: ServerResponse | undefined;
    let listeners = 0;
    const closed = new Promise<void>((resolve) => {
      void recorded((res) => {
        response = res;
        for (const event of ["finish", "close"]) res.on(event, () => told.push(event));
        res.on("close", resolve);
        listeners = res.eventNames().reduce((sum, name) => sum + res.listenerCount(name), 0);
        res.write("a", () => told.push("write"));
        res.end("b", () => told.push("end"));
      });
    });
    await closed;
    expect(told).toEqual(["write", "finish", "end", "close"]);
    const left = response?.eventNames().reduce((sum, name) => sum + (response?.listenerCount(name) ?? 0), 0) ?? 0;
    expect(left).toBeLessThanOrEqual(listeners);
  });

  it("records a pipe and a pipeline to their end, also after the client has gone", async () => {
    const outcomes: Promise<Outcome>[] = [];
    let started: () => void = () => {};
    const handling = new Promise<void>((resolve) => {
      started = resolve;
    });
    const gone: Promise<unknown>[] = [];
    const port = await serve(async (res) => {
      gone.push(new Promise((resolve) => res.req.once("close", resolve)));
      const recorder = recordResponse(res, new AbortController().signal, limits);
      outcomes.push(inMemory(recorder.outcome));
      const parts = async function* () {
        yield "first ";
        started();
        await gone[0];
        await new Promise((resolve) => setImmediate(resolve));
        yield "last";
      };
      void pipeline(Readable.from(parts()), res).catch(() => {});
      await recorder.outcome;
      recorder.release({ add: [], remove: "x" });
    });
    const socket = openRaw(port, { method: "GET", target: "/" });
    await handling;
    socket.destroy();
    expect(text((await (outcomes[0] as Promise<Outcome>)).body)).toBe("first last");
  });

  it("stores identity bytes with compression outside of it", async () => {
    const { outcome, answer } = await recorded((res) => res.end("plain text"), compress);
    expect(text(outcome.body)).toBe("plain text");
    expect(outcome.headers.map(([name]) => name)).not.toContain("content-encoding");
    expect(values(answer, "content-encoding")).toEqual(["gzip"]);
    expect(gunzipSync(answer.body).toString()).toBe("plain text");
  });

  it("stores identity bytes with compression inside of it", async () => {
    const { outcome, answer } = await recorded((res) => {
      compress(res);
      res.write("plain ");
      res.end("text");
    });
    expect(text(outcome.body)).toBe("plain text");
    expect(outcome.headers.map(([name]) => name)).not.toContain("content-encoding");
    expect(gunzipSync(answer.body).toString()).toBe("plain text");
  });

  it("pauses and goes on with the real compression middleware, outside of it and inside", async () => {
    const piece = Buffer.from("once and never twice, ".repeat(3_000));
    const long = Buffer.concat(Array.from({ length: 12 }, () => piece));
    const wrapped: Handler = (res) => {
      res.req.headers["accept-encoding"] = "gzip";
      compression()(res.req as never, res as never, () => {});
    };
    const piped: Handler = (res) => {
      res.setHeader("Content-Type", "text/plain");
      Readable.from(Array.from({ length: 12 }, () => piece)).pipe(res);
    };
    const inside: Handler = (res) => {
      wrapped(res);
      piped(res);
    };
    for (const { outcome, answer } of [await recorded(piped, wrapped), await recorded(inside)]) {
      expect(Buffer.compare(outcome.body, long)).toBe(0);
      expect(values(answer, "content-encoding")).toEqual(["gzip"]);
      expect(Buffer.compare(gunzipSync(answer.body), long)).toBe(0);
    }
  });

  it("refuses to store a coding that it cannot undo", async () => {
    const port = await serve(async (res) => {
      const recorder = recordResponse(res, new AbortController().signal, limits);
      res.writeHead(200, { "Content-Encoding": "zstd" }).end("?");
      await answerInstead(recorder, res);
    });
    const answer = await sendRaw(port, { method: "GET", target: "/" });
    expect(text(answer.body)).toBe("oncekey_stream_refused");
  });

  it("refuses an event stream, forgets its head and swallows what still comes", async () => {
    const port = await serve(async (res) => {
      res.setHeader("x-before", "1");
      const recorder = recordResponse(res, new AbortController().signal, limits);
      res.statusMessage = "Streaming";
      res.setHeader("Content-Type", "text/event-stream");
      res.flushHeaders();
      const ticking = setInterval(() => res.write("data: tick\n\n"), 1);
      res.on("close", () => clearInterval(ticking));
      await answerInstead(recorder, res);
    });
    const answer = await sendRaw(port, { method: "GET", target: "/" });
    expect(text(answer.body)).toBe("oncekey_stream_refused");
    expect(values(answer, "content-type")).toEqual(["text/plain"]);
    expect(values(answer, "x-before")).toEqual(["1"]);
  });

  it("gives the response back when the signal aborts, and lets no late write of the handler through", async () => {
    const errors: unknown[] = [];
    const port = await serve(async (res) => {
      const aborting = new AbortController();
      const recorder = recordResponse(res, aborting.signal, limits);
      res.on("error", (error) => errors.push(error));
      res.write("half");
      setImmediate(() => aborting.abort(new Error("the lease is lost")));
      await answerInstead(recorder, res);
      res.write("late");
      res.setHeader("x-late", "1");
      res.end("late");
    });
    const answer = await sendRaw(port, { method: "GET", target: "/" });
    expect(text(answer.body)).toBe("the lease is lost");
    expect(errors).toEqual([]);
  });

  it("takes a handler that destroys its response for a 500, and then cuts the connection", async () => {
    let outcome: Outcome | undefined;
    const port = await serve(async (res) => {
      const recorder = recordResponse(res, new AbortController().signal, limits);
      res.write("half");
      res.destroy();
      outcome = await inMemory(recorder.outcome);
      recorder.release({ add: [], remove: "x" });
    });
    await expect(sendRaw(port, { method: "GET", target: "/" })).rejects.toThrow();
    expect(outcome).toEqual({ status: 500, headers: [], body: new Uint8Array() });
  });

  it("keeps bodyless answers bodyless", async () => {
    const { outcome, answer } = await recorded((res) => res.writeHead(204).end("ignored"));
    expect(outcome.body).toHaveLength(0);
    expect(answer.body).toHaveLength(0);
  });
});

function codeOf(run: () => unknown): unknown {
  try {
    run();
    return undefined;
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

async function answerInstead(recorder: Recorder, res: ServerResponse): Promise<void> {
  const said = await recorder.outcome.then(
    () => "answered",
    (error: { code?: string; message: string }) => error.code ?? error.message,
  );
  recorder.discard();
  writeNodeAnswer(res, { status: 503, headers: [["content-type", "text/plain"]], body: Buffer.from(said) });
}
