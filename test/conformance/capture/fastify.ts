import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { type FastifyInstance, type FastifyReply, fastify } from "fastify";
import { idempotent } from "oncekey/fastify";
import type { CaptureHost } from "./compare.ts";
import { compressingMiddleware } from "./node.ts";
import { BYTES, LONG, lacking, TEXT, type WaysOf, WIDE } from "./ways.ts";
import { FILE_PATH, GZIPPED, type NodeAnswering, nodeWays } from "./ways-node.ts";

type Answering = (reply: FastifyReply) => unknown;

/** On the bare response, which a handler takes away from Fastify. */
const raw =
  (answer: NodeAnswering): Answering =>
  async (reply) => {
    reply.hijack();
    await answer(reply.raw);
  };

const bare = Object.fromEntries(Object.entries(nodeWays).map(([way, answer]) => [way, raw(answer)]));

const ways: WaysOf<Answering> = {
  ...(bare as Record<keyof typeof nodeWays, Answering>),
  JSON: () => ({ text: WIDE, amount: 1.5 }),
  text: (reply) => reply.send(TEXT),
  HTML: (reply) => reply.type("text/html").send(`<p>${WIDE}</p>`),
  "text beyond ASCII": () => WIDE,
  "all 256 bytes": (reply) => reply.send(Buffer.from(BYTES)),
  "an empty body": (reply) => reply.send(),
  "no content type": (reply) => reply.send(Readable.from([Buffer.from(TEXT)])),
  "a charset": (reply) => reply.type("text/plain; charset=iso-8859-1").send(Buffer.from("caf\xe9", "latin1")),
  "a long stream": (reply) => reply.type("text/plain").send(Readable.from([LONG.subarray(0, 9), LONG.subarray(9)])),
  "a stream of the web": (reply) => reply.type("text/plain").send(new Blob([WIDE]).stream()),
  "a Response or Blob": () => new Response(WIDE, { status: 202, headers: { "content-type": "text/x", etag: '"1"' } }),
  "a file": (reply) => reply.type("text/plain").send(createReadStream(FILE_PATH)),
  "a download": (reply) =>
    reply.header("content-disposition", 'attachment; filename="terms.txt"').send(createReadStream(FILE_PATH)),
  ...lacking(
    "a plugin of its own (@fastify/view, @fastify/accepts) sends by reply.send",
    "a template",
    "negotiated content",
  ),
  "gzip by the handler": (reply) => reply.header("content-encoding", "gzip").type("text/plain").send(GZIPPED),
  "compression inside of Oncekey":
    "compression of Fastify (@fastify/compress) is a hook before sending, for every route: outside of the handler",
  "compression outside of Oncekey": (reply) => ({ text: TEXT, sent: reply.sent }),
  "a status and Location": (reply) => reply.code(201).header("location", "/orders/9").send({ id: 9 }),
  "headers of several lines": (reply) => reply.header("link", ["</a>; rel=next", "</b>; rel=prev"]).send(TEXT),
  "several cookies": (reply) => reply.header("set-cookie", "a=1").header("set-cookie", "b=2").send(TEXT),
  trailers: (reply) => reply.trailer("x-sum", async () => "5").send(TEXT),
  "204": (reply) => reply.code(204).send(),
  "a redirect": (reply) => reply.redirect("/orders/9", 303),
  "a refusal of the handler's": (reply) => reply.code(409).type("application/problem+json").send('{"code":"sold_out"}'),
  "a 404 of the handler's": (reply) => reply.callNotFound(),
  "an error that error handling answers": () => {
    throw Object.assign(new Error("refused"), { code: "REFUSED" });
  },
  "an error of the framework's own": () => {
    throw Object.assign(new Error("gone"), { statusCode: 410 });
  },
};

/** Fastify 5. */
export const fastifyCapture: CaptureHost<Answering> = {
  name: "fastify 5",
  ways,
  async serve([mount], { operation, scope, ran }) {
    const way = mount?.way ?? "text";
    const answer = ways[way] as Answering;
    const app = fastify({ forceCloseConnections: true });
    app.setErrorHandler(async (error: Error & { code?: string }, _request, reply) => {
      if (error.code === "REFUSED") return reply.code(422).send({ error: error.message });
      throw error;
    });
    app.setNotFoundHandler(async (_request, reply) => reply.code(404).send("no such order"));
    if (way === "compression outside of Oncekey") compressAll(app);
    app.post("/plain", async (_request, reply) => answer(reply));
    app.post("/once", idempotent(operation, { scope }), async (_request, reply) => {
      ran();
      return answer(reply);
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { port: (app.server.address() as { port: number }).port, close: () => app.close() };
  },
};

function compressAll(app: FastifyInstance): void {
  app.addHook("onRequest", (request, reply, done) => compressingMiddleware(request.raw, reply.raw, done));
}
