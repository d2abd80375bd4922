import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Duplex, Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterAll, describe, expect, it } from "vitest";
import { recordResponse } from "../../src/http/recorder.ts";
import { recordingBudget } from "../../src/http/recording-limits.ts";

const limits = { maxAnswerBytes: 8_388_608, budget: recordingBudget(8_388_608) };

/** A way of answering; `saw` notes what the handler sees meanwhile. */
type Way = (res: ServerResponse, saw: (...seen: unknown[]) => void) => unknown;

const open: { close(): unknown; closeAllConnections(): void }[] = [];

afterAll(() => {
  for (const server of open) {
    server.closeAllConnections();
    server.close();
  }
});

interface Wire {
  readonly first: string;
  readonly headers: readonly string[];
  readonly body: string;
  readonly trailers: readonly string[];
  readonly seen: readonly unknown[];
}

/** What a client gets from a bare server, or from one that records the handler first. */
async function answerOf(way: Way, recording: boolean, version = "1.1"): Promise<Wire> {
  const seen: unknown[] = [];
  const server = createServer((_req, res) => {
    const saw = (...more: unknown[]) => void seen.push(...more);
    if (!recording) return void way(res, saw);
    const recorder = recordResponse(res, new AbortController().signal, limits);
    recorder.run(() => way(res, saw));
    return void recorder.outcome.then(() => recorder.release({ add: [], remove: "idempotent-replayed" }));
  });
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write(`POST / HTTP/${version}\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
  return { ...parsed(Buffer.concat(chunks)), seen };
}

// How the body is framed is Node's choice, and may be another once its length is known.
const FRAMING = /^(date|content-length|transfer-encoding):/i;

function parsed(bytes: Buffer): Omit<Wire, "seen"> {
  const text = bytes.toString("latin1");
  const at = text.indexOf("\r\n\r\n");
  const [first = "", ...lines] = text.slice(0, at).split("\r\n");
  const rest = text.slice(at + 4);
  const headers = lines.filter((line) => !FRAMING.test(line));
  if (!/transfer-encoding: chunked/i.test(text.slice(0, at))) return { first, headers, body: rest, trailers: [] };
  let body = "";
  for (let from = 0; ; ) {
    const end = rest.indexOf("\r\n", from);
    const size = Number.parseInt(rest.slice(from, end), 16);
    if (!(size > 0)) {
      const trailers = rest.slice(end + 2).split("\r\n");
      return { first, headers, body, trailers: trailers.filter((line) => line !== "") };
    }
    body += rest.slice(end + 2, end + 2 + size);
    from = end + 2 + size + 2;
  }
}

function codeOf(run: () => unknown): unknown {
  try {
    run();
    return "nothing";
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

const big = Buffer.alloc(700_000, "0123456789abcdef!");

function inParts(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
}

const ways: Readonly<Record<string, Way>> = {
  "end without anything": (res) => res.end(),
  "end of text": (res) => res.end("täxt"),
  "end of a Buffer": (res) => res.end(Buffer.of(0, 255, 128)),
  "end of a Uint8Array": (res) => res.end(Uint8Array.of(1, 2, 3)),
  "end of what is falsy": (res) => res.end(0 as never),
  "end of an empty text": (res) => res.end(""),
  "end of text in another encoding": (res) => res.end("68616c6c6f", "hex"),
  "write in every encoding": (res) => {
    for (const [text, encoding] of [
      ["é", "latin1"],
      ["é", "utf8"],
      ["aGVsbG8=", "base64"],
      ["aGVsbG8", "base64url"],
      ["00ff", "hex"],
      ["é", "utf16le"],
      ["é", "ucs2"],
      ["a", "ascii"],
      ["é", "binary"],
    ] as const) {
      res.write(text, encoding);
    }
    res.end();
  },
  "write with a callback in either place": (res) => {
    res.write("a", () => res.write("b", "utf8", () => res.end("c")));
  },
  "an end inside the callback of end": (res, saw) => {
    res.end("a", () => {
      saw("ended", res.writableEnded);
    });
  },
  "empty writes": (res) => {
    res.write("");
    res.write(Buffer.alloc(0));
    res.end("x");
  },
  "writeHead with a status": (res) => res.writeHead(201).end("x"),
  "writeHead with text, as a number in text": (res) => res.writeHead("202" as never).end("x"),
  "writeHead with a reason": (res) => res.writeHead(200, "Fine").end("x"),
  "writeHead with a reason and headers": (res) => res.writeHead(200, "Fine", { "X-A": "1" }).end("x"),
  "writeHead with no reason and headers": (res) => res.writeHead(200, undefined, { "X-A": "1" }).end("x"),
  "writeHead with headers": (res) => res.writeHead(200, { "X-A": "1", "x-number": 7, "X-List": ["a", "b"] }).end("x"),
  "writeHead with a flat list": (res) => res.writeHead(200, ["X-A", "1", "X-B", "2"]).end("x"),
  "writeHead with a flat list that repeats": (res) =>
    res.writeHead(200, ["Set-Cookie", "a=1", "Set-Cookie", "b=2"]).end(),
  "writeHead with pairs": (res) =>
    res
      .writeHead(200, [
        ["X-A", "1"],
        ["X-A", "2"],
      ] as never)
      .end("x"),
  "writeHead after setHeader": (res) =>
    res.setHeader("X-A", "0").setHeader("X-B", "1").writeHead(200, { "x-a": "2" }).end(),
  "writeHeader, its old name": (res) =>
    (res as unknown as { writeHeader: typeof res.writeHead }).writeHeader(201).end("x"),
  "a status by property": (res) => {
    res.statusCode = 418;
    res.statusMessage = "Short and stout";
    res.end("x");
  },
  "setHeaders and appendHeader": (res) => {
    res.setHeaders(new Headers([["x-a", "1"]]));
    res.appendHeader("X-B", "1").appendHeader("X-B", "2");
    res.end("x");
  },
  "several cookies": (res) => res.setHeader("Set-Cookie", ["a=1", "b=2", "c=3"]).end("x"),
  "headers in latin1": (res) => res.setHeader("X-A", "\xe9\xff").end(Buffer.from("x")),
  flushHeaders: (res) => {
    res.setHeader("X-A", "1");
    res.flushHeaders();
    res.end("x");
  },
  "cork and uncork": (res) => {
    res.cork();
    res.write("a");
    res.write("b");
    res.uncork();
    res.end("c");
  },
  "a cork that is never drawn": (res) => {
    res.cork();
    res.write("a");
    res.end("b");
  },
  "204": (res) => res.writeHead(204).end(),
  "204 with a body": (res) => {
    res.writeHead(204);
    res.write("no");
    res.end("body");
  },
  "304 with a body and an ETag": (res) => res.writeHead(304, { ETag: '"a"' }).end("no body"),
  "205, and statuses that nobody knows": (res) => res.writeHead(299).end("x"),
  "700": (res) => res.writeHead(700).end("x"),
  "Date, Connection and Keep-Alive of its own": (res) =>
    res
      .writeHead(200, { Date: "Thu, 01 Jan 1970 00:00:00 GMT", Connection: "close", "Keep-Alive": "timeout=9" })
      .end("x"),
  "no Date": (res) => {
    res.sendDate = false;
    res.end("x");
  },
  "Content-Length that is right": (res) => res.writeHead(200, { "Content-Length": 3 }).end("abc"),
  "Transfer-Encoding of its own": (res) => res.writeHead(200, { "Transfer-Encoding": "chunked" }).end("abc"),
  "trailers that are announced": (res) => {
    res.setHeader("Trailer", "X-Sum");
    res.write("abc");
    res.addTrailers({ "X-Sum": "1" });
    res.end();
  },
  "trailers that are not announced": (res) => {
    res.write("abc");
    res.addTrailers([
      ["X-Sum", "1"],
      ["X-More", "2"],
    ]);
    res.end("d");
  },
  "trailers of a long body": (res) => {
    res.write(big);
    res.addTrailers({ "X-Sum": "1" });
    res.end();
  },
  "a long body in one piece": (res) => res.end(big),
  "a long body in pieces, none of them waited for": (res) => {
    for (const part of inParts(big, 10_007)) res.write(part);
    res.end();
  },
  "a long body that waits for drain": async (res) => {
    for (const part of inParts(big, 10_007)) {
      if (!res.write(part)) await new Promise((resolve) => res.once("drain", () => resolve(undefined)));
    }
    res.end();
  },
  "a long body that waits for its callbacks": async (res) => {
    for (const part of inParts(big, 100_000)) await new Promise<unknown>((resolve) => res.write(part, resolve));
    res.end();
  },
  "a pipe": (res) => Readable.from(inParts(big, 65_536), { objectMode: false }).pipe(res),
  "a pipe that does not end, and an end": (res) => {
    const source = Readable.from([Buffer.from("a")]);
    source.pipe(res, { end: false });
    source.once("end", () => res.end("b"));
  },
  "a pipeline": (res) => pipeline(Readable.from(inParts(big, 65_536)), res),
  "a pipeline of a generator": (res) =>
    pipeline(async function* () {
      yield "a";
      yield Buffer.from("b");
    }, res),
  "a web stream": (res) => new Response(new Uint8Array(big)).body?.pipeTo(Writable.toWeb(res as unknown as Writable)),
  "a duplex in between": (res) =>
    Readable.from(["a", "b"])
      .pipe(
        Duplex.from(async function* (source: AsyncIterable<string>) {
          for await (const part of source) yield part.toString().toUpperCase();
        }),
      )
      .pipe(res),
  "what middleware sees": (res, saw) => {
    saw(res.headersSent, res.writableEnded, res.statusMessage);
    res.writeHead(200);
    saw(res.headersSent, res.writableEnded, res.statusMessage);
    res.write("a");
    saw(
      res.hasHeader("x"),
      codeOf(() => res.setHeader("x", "1")),
      codeOf(() => res.writeHead(200)),
    );
    saw(
      codeOf(() => res.removeHeader("x")),
      codeOf(() => res.appendHeader("x", "1")),
      codeOf(() => res.flushHeaders()),
    );
    res.end();
    saw(res.headersSent, res.writableEnded, res.destroyed);
  },
  "events in their order": (res, saw) => {
    // Whether the callback of end() comes before or after listeners of "finish" differs between versions of Node.
    let called = 0;
    for (const event of ["prefinish", "finish"]) res.on(event, () => saw(event));
    res.on("close", () => saw("close", called));
    res.write("a");
    res.end("b", () => called++);
  },
  "wrong chunks": (res, saw) => {
    for (const chunk of [1, null, undefined, {}, new DataView(new ArrayBuffer(2)), new Uint16Array(2), ["a"]]) {
      saw(codeOf(() => res.write(chunk as never)));
    }
    saw(codeOf(() => res.end({} as never)));
    res.end("x");
  },
  "wrong statuses": (res, saw) => {
    for (const status of [0, 99, 1000, "abc", undefined, -1]) saw(codeOf(() => res.writeHead(status as never)));
    res.statusCode = 1;
    saw(codeOf(() => res.end("x")));
    res.statusCode = 200;
    res.end("x");
  },
  "wrong headers": (res, saw) => {
    saw(codeOf(() => res.writeHead(200, { "X-A": undefined })));
    saw(codeOf(() => res.writeHead(200, { "X-A": "a\r\nX-B: b" })));
    saw(codeOf(() => res.writeHead(200, { "X-A": "\u{1f600}" })));
    saw(codeOf(() => res.writeHead(200, { "X A": "a" })));
    saw(codeOf(() => res.writeHead(200, ["odd"])));
    saw(
      codeOf(() => res.setHeader("X-A", "a\0")),
      codeOf(() => res.setHeader("", "a")),
    );
    saw(codeOf(() => res.writeHead(200, "rea\nson")));
    res.statusMessage = "";
    res.end("x");
  },
  "trailers where there can be none": (res, saw) => {
    res.setHeader("Trailer", "X-Sum");
    saw(codeOf(() => res.writeHead(200, { "Content-Length": 1 })));
    saw(codeOf(() => res.addTrailers({ "X-A": "a\r\nb" })));
    res.removeHeader("Trailer");
    res.end("x");
  },
  "a strict length": (res, saw) => {
    res.strictContentLength = true;
    res.writeHead(200, { "Content-Length": 3 });
    saw(codeOf(() => res.write("abcd")));
    res.write("ab");
    saw(codeOf(() => res.end()));
    res.end("c");
  },
  "writes after the end": (res, saw) => {
    res.on("error", () => {});
    res.end("x");
    saw(res.write("y", (error) => void saw((error as { code?: string } | null)?.code)));
  },
};

const behind: Readonly<Record<string, string>> = {
  "writes after the end": "Node also emits an error, which nobody here may be listening for",
};

describe("a recorded response", () => {
  for (const [name, way] of Object.entries(ways)) {
    it(`sends what a bare one sends: ${name}`, async () => {
      const bare = await answerOf(way, false);
      const recorded = await answerOf(way, true);
      if (!(name in behind)) expect(recorded.seen).toEqual(bare.seen);
      expect({ ...recorded, seen: [] }).toEqual({ ...bare, seen: [] });
    });
  }

  it("sends what a bare one sends to a client of HTTP/1.0", async () => {
    for (const name of ["end of text", "a pipe", "write in every encoding", "trailers that are not announced", "204"]) {
      const way = ways[name] as Way;
      expect(await answerOf(way, true, "1.0"), name).toEqual(await answerOf(way, false, "1.0"));
    }
  });
});
