import { createReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createGzip, gzipSync } from "node:zlib";
import { BYTES, FILE, LONG, TEXT, type Way, WIDE } from "./ways.ts";

/** Answers on Node's own response, as every Node framework lets handlers do. */
export type NodeAnswering = (res: ServerResponse) => unknown;

const ROOT = join(import.meta.dirname, "..", "..", "..");

/** The path of the file that is sent. */
export const FILE_PATH: string = join(ROOT, FILE);

function typed(res: ServerResponse, type = "text/plain; charset=utf-8"): ServerResponse {
  return res.setHeader("Content-Type", type);
}

function written(res: ServerResponse, text: string, encoding: BufferEncoding): ServerResponse {
  res.write(text, encoding);
  return res;
}

const bodies = {
  JSON: (res) => typed(res, "application/json").end(JSON.stringify({ text: WIDE, amount: 1.5 })),
  text: (res) => typed(res).end(TEXT),
  HTML: (res) => typed(res, "text/html; charset=utf-8").end(`<p title="x">${WIDE}</p>`),
  "text beyond ASCII": (res) => typed(res).end(WIDE),
  "all 256 bytes": (res) => typed(res, "application/octet-stream").end(BYTES),
  "an empty body": (res) => typed(res).end(),
  "no content type": (res) => res.end(TEXT),
  "a charset": (res) => typed(res, "text/plain; charset=iso-8859-1").end("caf\xe9", "latin1"),
} satisfies Partial<Record<Way, NodeAnswering>>;

const writes = {
  "one end with the body": (res) => res.end(TEXT),
  "one end in another encoding": (res) => res.end(Buffer.from(WIDE).toString("base64"), "base64"),
  "writes in small chunks"(res) {
    typed(res);
    for (const byte of BYTES) res.write(Uint8Array.of(byte));
    res.end();
  },
  "writes of text and bytes in turns"(res) {
    res.write("text ");
    res.write(Buffer.from(WIDE), () => res.end("the end"));
  },
  "a write in latin1": (res) => written(res, "caf\xe9", "latin1").end(),
  "a write in hex": (res) => written(res, "00ff7f80", "hex").end("0a", "hex"),
  "a write in base64": (res) => written(res, "AP9/gA==", "base64").end(),
  "a write in UTF-16": (res) => written(res, WIDE, "utf16le").end(),
  "a write of a Uint8Array"(res) {
    res.write(BYTES);
    res.end(BYTES.subarray(10, 20));
  },
  "a reused buffer"(res) {
    const buffer = Buffer.from("first ");
    res.write(buffer, () => {
      buffer.write("second");
      res.end(buffer);
    });
  },
  "corked writes"(res) {
    res.cork();
    res.write("one ");
    res.write("two ");
    res.uncork();
    res.end("three");
  },
  async "an end long after the first write"(res) {
    res.write("begun ");
    await sleep(20);
    res.end("ended");
  },
  async "an answer from a later tick"(res) {
    await sleep(20);
    typed(res).end(TEXT);
  },
} satisfies Partial<Record<Way, NodeAnswering>>;

const streams = {
  "a pipe": (res) => Readable.from([Buffer.from(TEXT), BYTES]).pipe(typed(res)),
  "a pipeline": (res) =>
    pipeline(Readable.from([TEXT]), new Transform({ transform: (chunk, _, done) => done(null, chunk) }), typed(res)),
  "a long stream": (res) => pipeline(Readable.from(LONG.toString("latin1").match(/.{1,60000}/gs) ?? []), typed(res)),
  "a stream of the web": (res) => pipeline(Readable.fromWeb(new Blob([WIDE]).stream() as never), typed(res)),
  "a file": (res) => pipeline(createReadStream(FILE_PATH), typed(res)),
  "a download"(res) {
    res.setHeader("Content-Disposition", 'attachment; filename="terms.txt"');
    return pipeline(createReadStream(FILE_PATH), typed(res));
  },
  "gzip by the handler"(res) {
    typed(res).setHeader("Content-Encoding", "gzip");
    return pipeline(Readable.from([TEXT]), createGzip(), res);
  },
} satisfies Partial<Record<Way, NodeAnswering>>;

const heads = {
  "a status and Location"(res) {
    res.statusCode = 201;
    res.setHeader("Location", "/orders/9");
    typed(res, "application/json").end('{"id":9}');
  },
  "a reason phrase": (res) => res.writeHead(202, "Taken In").end(TEXT),
  "writeHead with an object": (res) =>
    res.writeHead(200, { "Content-Type": "text/x", "Content-Language": "de", "X-Number": 5 }).end(TEXT),
  "writeHead with a flat list": (res) =>
    res.writeHead(200, ["Content-Type", "text/x", "Set-Cookie", "a=1", "Set-Cookie", "b=2"]).end(TEXT),
  "writeHead with pairs": (res) =>
    res
      .writeHead(200, [
        ["Content-Type", "text/x"],
        ["Link", "<a>"],
      ] as never)
      .end(TEXT),
  "writeHead over earlier headers"(res) {
    res.setHeader("Content-Type", "text/plain").setHeader("ETag", '"old"');
    res.writeHead(201, { "Content-Type": "text/html", ETag: '"new"' }).end(TEXT);
  },
  async "flushed headers"(res) {
    typed(res).flushHeaders();
    await sleep(5);
    res.end(TEXT);
  },
  "headers of several lines"(res) {
    typed(res).setHeader("Link", ["</a>; rel=next", "</b>; rel=prev"]);
    res.appendHeader("Link", "</c>; rel=up").end(TEXT);
  },
  "several cookies"(res) {
    typed(res).setHeader("Set-Cookie", ["a=1; Path=/", "b=2; Path=/"]);
    res.end(TEXT);
  },
  "a Content-Length of the handler's"(res) {
    typed(res).setHeader("Content-Length", Buffer.byteLength(WIDE));
    res.write(WIDE.slice(0, 7));
    res.end(WIDE.slice(7));
  },
  "validators and caching"(res) {
    res.setHeader("ETag", 'W/"1"').setHeader("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT");
    typed(res).setHeader("Cache-Control", "private, max-age=5").setHeader("Expires", "0").end(TEXT);
  },
  trailers(res) {
    typed(res).setHeader("Trailer", "X-Sum");
    res.write(TEXT);
    res.addTrailers({ "X-Sum": "5" });
    res.end();
  },
  "early hints"(res) {
    res.writeEarlyHints({ link: "</style.css>; rel=preload" });
    typed(res).end(TEXT);
  },
} satisfies Partial<Record<Way, NodeAnswering>>;

const statuses = {
  "204": (res) => res.writeHead(204).end(),
  "204 with a body that must not be sent": (res) => res.writeHead(204, { "Content-Type": "text/plain" }).end(TEXT),
  "304": (res) => res.writeHead(304, { ETag: '"1"' }).end(),
  "a redirect": (res) => res.writeHead(303, { Location: "/orders/9" }).end(),
  "a refusal of the handler's"(res) {
    res.statusCode = 409;
    typed(res, "application/problem+json").end('{"code":"sold_out"}');
  },
  "a 404 of the handler's": (res) => res.writeHead(404).end("no such order"),
} satisfies Partial<Record<Way, NodeAnswering>>;

/** The ways that Node's response object has by itself. */
export const nodeWays = { ...bodies, ...writes, ...streams, ...heads, ...statuses };

/** A body that was compressed beforehand, for frameworks that take bytes. */
export const GZIPPED: Buffer = gzipSync(TEXT);
