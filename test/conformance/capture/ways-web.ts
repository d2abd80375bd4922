import { Readable } from "node:stream";
import { BYTES, LONG, lacking, TEXT, type WaysOf, WIDE } from "./ways.ts";
import { GZIPPED } from "./ways-node.ts";

/** Answers with a `Response`. */
export type WebAnswering = () => Response | Promise<Response>;

const headers = (lines: readonly (readonly [string, string])[]) =>
  new Headers(lines.map(([name, value]): [string, string] => [name, value]));
const text =
  (body: BodyInit | null, init: ResponseInit = {}) =>
  () =>
    new Response(body, init);
const chunks = (parts: readonly (string | Uint8Array)[]) =>
  Readable.toWeb(Readable.from(parts.map((part) => Buffer.from(part)))) as ReadableStream;

const NODE_ONLY = "a Response has no such thing: it is written by the host";

/** The ways that the Fetch interface has. */
export const webWays: WaysOf<WebAnswering> = {
  JSON: () => Response.json({ text: WIDE, amount: 1.5 }),
  text: text(TEXT),
  HTML: text(`<p>${WIDE}</p>`, { headers: { "content-type": "text/html; charset=utf-8" } }),
  "text beyond ASCII": text(WIDE),
  "all 256 bytes": text(BYTES, { headers: { "content-type": "application/octet-stream" } }),
  "an empty body": text("", { headers: { "content-type": "text/plain" } }),
  "no content type": text(BYTES),
  "a charset": text(Buffer.from("caf\xe9", "latin1"), {
    headers: { "content-type": "text/plain; charset=iso-8859-1" },
  }),
  ...lacking(
    NODE_ONLY,
    "one end with the body",
    "one end in another encoding",
    "a write in latin1",
    "a write in hex",
    "a write in base64",
    "a write in UTF-16",
    "a reused buffer",
    "corked writes",
    "a pipe",
    "a pipeline",
    "writeHead with an object",
    "writeHead with a flat list",
    "writeHead with pairs",
    "writeHead over earlier headers",
    "flushed headers",
    "trailers",
    "early hints",
    "a file",
  ),
  "writes in small chunks": () => new Response(chunks([...BYTES].map((byte) => Uint8Array.of(byte)))),
  "writes of text and bytes in turns": () => new Response(chunks(["text ", Buffer.from(WIDE), "the end"])),
  "a write of a Uint8Array": () => new Response(chunks([BYTES, BYTES.subarray(10, 20)])),
  async "an end long after the first write"() {
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(Buffer.from("begun "));
        await new Promise((done) => setTimeout(done, 20));
        controller.enqueue(Buffer.from("ended"));
        controller.close();
      },
    });
    return new Response(body);
  },
  async "an answer from a later tick"() {
    await new Promise((done) => setTimeout(done, 20));
    return new Response(TEXT);
  },
  "a long stream": () => new Response(chunks([LONG.subarray(0, 9), LONG.subarray(9)])),
  "a stream of the web": () => new Response(new Blob([WIDE]).stream()),
  "a Response or Blob": text(new Blob([WIDE], { type: "text/x" })),
  "a download": text(TEXT, { headers: { "content-disposition": 'attachment; filename="terms.txt"' } }),
  ...lacking(
    "not a part of the Fetch interface",
    "a template",
    "negotiated content",
    "an error of the framework's own",
  ),
  "gzip by the handler": text(Uint8Array.from(GZIPPED), {
    headers: { "content-encoding": "gzip", "content-type": "text/plain" },
  }),
  "compression inside of Oncekey": () =>
    new Response(new Blob([TEXT]).stream().pipeThrough(new CompressionStream("gzip")), {
      headers: { "content-encoding": "gzip", "content-type": "text/plain" },
    }),
  "compression outside of Oncekey": "the host compresses what it writes, after the Response",
  "a status and Location": () => Response.json({ id: 9 }, { status: 201, headers: { location: "/orders/9" } }),
  "a reason phrase": text(TEXT, { status: 202, statusText: "Taken In" }),
  "headers of several lines": () =>
    new Response(TEXT, {
      headers: headers([
        ["link", "</a>; rel=next"],
        ["link", "</b>; rel=prev"],
      ]),
    }),
  "several cookies": () =>
    new Response(TEXT, {
      headers: headers([
        ["set-cookie", "a=1; Path=/"],
        ["set-cookie", "b=2; Path=/"],
      ]),
    }),
  "a Content-Length of the handler's": text(WIDE, { headers: { "content-length": String(Buffer.byteLength(WIDE)) } }),
  "validators and caching": text(TEXT, {
    headers: {
      etag: 'W/"1"',
      "last-modified": "Mon, 02 Nov 2026 10:00:00 GMT",
      "cache-control": "private",
      expires: "0",
    },
  }),
  "204": text(null, { status: 204 }),
  "204 with a body that must not be sent": "a Response refuses a body with 204",
  "304": text(null, { status: 304, headers: { etag: '"1"' } }),
  "a redirect": text(null, { status: 303, headers: { location: "/orders/9" } }),
  "a refusal of the handler's": text('{"code":"sold_out"}', {
    status: 409,
    headers: { "content-type": "application/problem+json" },
  }),
  "a 404 of the handler's": text("no such order", { status: 404 }),
  "an error that error handling answers": "no error handling between a handler and its host",
};
