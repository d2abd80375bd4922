import { createReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { ArgumentsHost, INestApplication } from "@nestjs/common";
import { Idempotent, OncekeyModule } from "oncekey/nest";
import type { NestPeer } from "../adapter-hosts/nest.ts";
import type { Captured, CaptureHost, Mount } from "./compare.ts";
import { compressingMiddleware } from "./node.ts";
import { BYTES, LONG, lacking, TEXT, type WaysOf, WIDE } from "./ways.ts";
import { FILE_PATH, GZIPPED, type NodeAnswering, nodeWays } from "./ways-node.ts";

/** A controller's method: what it returns, and its decorators beside ours. `res`: it answers on the bare response. */
interface NestAnswering {
  readonly decorators?: readonly MethodDecorator[];
  readonly res?: NodeAnswering;
  readonly gives?: () => unknown;
}

const bare = Object.fromEntries(Object.entries(nodeWays).map(([way, res]) => [way, { res }]));

function waysOf({ common, platform }: NestPeer): WaysOf<NestAnswering> {
  const { Header, HttpCode, HttpException, StreamableFile } = common;
  const typed = Header("Content-Type", "text/plain");
  const thrown = (error: () => unknown): NestAnswering => ({
    gives() {
      throw error();
    },
  });
  return {
    ...(bare as Record<keyof typeof nodeWays, NestAnswering>),
    ...(platform === "express"
      ? lacking("Express has set a header by then, and Node refuses pairs after that", "writeHead with pairs")
      : {}),
    "writeHead with a flat list": { res: (res) => res.writeHead(200, ["Content-Type", "text/x"]).end(TEXT) },
    JSON: { gives: () => ({ text: WIDE, amount: 1.5 }) },
    text: { gives: () => TEXT },
    HTML: { decorators: [Header("Content-Type", "text/html")], gives: () => `<p>${WIDE}</p>` },
    "text beyond ASCII": { gives: async () => WIDE },
    "all 256 bytes": { gives: () => new StreamableFile(Buffer.from(BYTES)) },
    "an empty body": { gives: () => undefined },
    "a long stream": {
      decorators: [typed],
      gives: () => new StreamableFile(Readable.from([LONG.subarray(0, 9), LONG.subarray(9)])),
    },
    "a stream of the web": lacking("Nest streams by StreamableFile", "a stream of the web")["a stream of the web"],
    "a Response or Blob": "Nest 12 alone has them: shown by the adapter suite",
    "a file": { decorators: [typed], gives: () => new StreamableFile(createReadStream(FILE_PATH)) },
    "a download": {
      gives: () => new StreamableFile(createReadStream(FILE_PATH), { disposition: 'attachment; filename="terms.txt"' }),
    },
    ...lacking("the platform's, not Nest's", "a template", "negotiated content"),
    "gzip by the handler": {
      decorators: [Header("Content-Encoding", "gzip"), typed],
      gives: () => new StreamableFile(GZIPPED),
    },
    "compression inside of Oncekey": "compression of Nest is the platform's middleware: outside",
    "compression outside of Oncekey": { gives: () => ({ text: TEXT }) },
    "a status and Location": {
      decorators: [HttpCode(201), Header("Location", "/orders/9")],
      gives: () => ({ id: 9 }),
    },
    "204": { decorators: [HttpCode(204)], gives: () => undefined },
    "a redirect": { decorators: [common.Redirect("/orders/9", 303)], gives: () => undefined },
    "a refusal of the handler's": thrown(() => new HttpException({ code: "sold_out" }, 409)),
    "a 404 of the handler's": thrown(() => new common.NotFoundException()),
    "an error that error handling answers": {
      decorators: [common.UseFilters({ catch: refuse })],
      ...thrown(() => new Error("refused")),
    },
    "an error of the framework's own": thrown(() => new common.GoneException("gone")),
  };
}

interface Reply {
  status(code: number): Reply;
  header(name: string, value: string): Reply;
  send(body: unknown): unknown;
}

function refuse(error: Error, host: ArgumentsHost): void {
  const reply = host.switchToHttp().getResponse<Reply>();
  reply
    .status(422)
    .header("content-type", "application/json")
    .send(JSON.stringify({ error: error.message }));
}

/** Nest on one of its platforms. */
export function nestCapture(peer: NestPeer): CaptureHost<NestAnswering> {
  const ways = waysOf(peer);
  return {
    name: `nest ${peer.version} on ${peer.platform}`,
    ways,
    async serve([mount], captured) {
      const { way } = mount as Mount;
      const controller = controllerOf(peer, ways[way] as NestAnswering, captured);
      const imports = [OncekeyModule.forRoot({ once: onceOf(captured) })];
      const root = { module: class Root {}, controllers: [controller], imports };
      const options = { logger: false, abortOnError: false, bodyParser: false, forceCloseConnections: true } as const;
      const app = await peer.core.NestFactory.create<INestApplication>(root, peer.adapter(), options);
      if (way === "compression outside of Oncekey") app.use(compressingMiddleware);
      await app.listen(0, "127.0.0.1");
      return { port: (app.getHttpServer().address() as { port: number }).port, close: () => app.close() };
    },
  };
}

/** Nest asks the instance to know the operation. */
function onceOf({ operation }: Captured): never {
  const { engine } = operation;
  const known = (given: Captured["operation"]) => engine.bound(given, { requiresKey: true });
  return {
    start: async () => {},
    close: async () => {},
    internals: { registry: { known, all: () => [operation] } },
  } as never;
}

// What decorator syntax compiles to: the tests' own compiler settings have none of Nest's old decorators.
function controllerOf({ common }: NestPeer, answering: NestAnswering, { operation, scope, ran }: Captured) {
  const { decorators = [], res: answer, gives } = answering;
  const handle = async (res: (ServerResponse & { readonly raw?: ServerResponse }) | undefined) => {
    if (answer === undefined) return gives?.();
    const raw = res?.raw ?? (res as ServerResponse);
    raw.statusCode = 200;
    return answer(raw);
  };
  class Controller {
    plain(res: ServerResponse | undefined) {
      return handle(res);
    }
    once(res: ServerResponse | undefined) {
      ran();
      return handle(res);
    }
  }
  common.Controller()(Controller);
  decorate(common, Controller, "plain", [common.Post("/plain"), ...decorators], answer !== undefined);
  const ours = [common.Post("/once"), Idempotent(operation, { scope } as never), ...decorators];
  decorate(common, Controller, "once", ours, answer !== undefined);
  return Controller;
}

function decorate(
  { Res }: NestPeer["common"],
  controller: { readonly prototype: object },
  name: "plain" | "once",
  decorators: readonly MethodDecorator[],
  withRes: boolean,
): void {
  const { prototype } = controller;
  if (withRes) Res()(prototype, name, 0);
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor;
  for (const decorator of decorators.toReversed()) decorator(prototype, name, descriptor);
}
