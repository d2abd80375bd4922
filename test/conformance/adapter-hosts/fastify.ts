import { Readable } from "node:stream";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { Operation } from "oncekey";
import { idempotent } from "oncekey/fastify";
import { type AdapterHarness, type AdapterRoute, bindingOptions } from "oncekey/testing";

type Way = (reply: FastifyReply, text: string) => unknown;

const ways: Readonly<Record<string, Way>> = {
  json: (reply, text) => reply.code(201).send({ text }),
  text: (reply, text) => reply.send(text),
  "429": (reply, text) => reply.code(429).send(text),
  "500": (reply, text) => reply.code(500).send(text),
  throw: (_reply, text) => {
    throw new Error(text);
  },
  eventStream: (reply, text) => reply.header("content-type", "text/event-stream").send(`data: ${text}\n\n`),
};

const moreWays: Readonly<Record<string, Way>> = {
  "a returned value": (_reply, text) => ({ text }),
  "a buffer": (reply, text) => reply.send(Buffer.from(text)),
  "a stream": (reply, text) => reply.type("text/plain").send(Readable.from([text, text])),
  "a Response": (_reply, text) => new Response(text, { status: 202, headers: { "set-cookie": "a=1" } }),
  "the raw response": (reply, text) => {
    reply.hijack();
    reply.raw.writeHead(200, { "content-type": "text/x" });
    reply.raw.write(text);
    reply.raw.end();
  },
  "an empty 204": (reply) => reply.code(204).send(),
  "a redirect": (reply) => reply.redirect("/v1/orders/9", 303),
};

/** Fastify as a host of the adapter suite. */
export async function fastifyHost(): Promise<AdapterHarness> {
  const apps: { close(): Promise<unknown> }[] = [];
  return {
    ways: Object.keys(moreWays),
    close: async () => void (await Promise.all(apps.map((app) => app.close()))),
    async serve(routes) {
      const app = fastify({ forceCloseConnections: true });
      apps.push(app);
      app.addHook("preHandler", async (request, reply) => {
        if (request.headers.authorization === undefined) await reply.code(401).send({ error: "who are you?" });
      });
      for (const route of routes) {
        await app.register(async (scope) => mount(scope, route), { prefix: route.mount });
      }
      await app.listen({ port: 0, host: "127.0.0.1" });
      return (app.server.address() as { port: number }).port;
    },
  };
}

function mount(scope: FastifyInstance, { path, operation, binding, existing }: AdapterRoute): void {
  const options = bindingOptions<FastifyRequest>(binding, (req, name) => req.headers[name] as string | undefined);
  if (existing === undefined) {
    scope.post(path, idempotent(operation as Operation<"transaction">, options));
    return;
  }
  const answer = (ways[existing.way] ?? moreWays[existing.way]) as Way;
  scope.post(path, idempotent(operation as Operation<"capture">, options), async (request, reply) =>
    answer(reply, await existing.text(request.body)),
  );
}
