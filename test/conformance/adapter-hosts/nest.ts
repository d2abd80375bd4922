import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { ArgumentsHost, CallHandler, ExecutionContext, INestApplication } from "@nestjs/common";
import { Idempotent, OncekeyModule } from "oncekey/nest";
import { type AdapterHarness, type AdapterRoute, bindingOptions, type ExistingHandler } from "oncekey/testing";

/** One version of Nest on one of its platforms. */
export interface NestPeer {
  readonly common: typeof import("@nestjs/common");
  readonly core: typeof import("@nestjs/core");
  /** Its own copy: Nest 11 does not know the Observables of another one. */
  readonly rxjs: typeof import("rxjs");
  readonly version: 11 | 12;
  readonly platform: "express" | "fastify";
  /** A new HTTP adapter that parses no body. */
  adapter(): never;
  /** A new HTTP adapter as an application has it. */
  parsing(): never;
}

/** What both platforms' responses can do. */
interface Reply {
  status(code: number): Reply;
  header(name: string, value: string): Reply;
  send(body: unknown): unknown;
  readonly raw?: ServerResponse;
}

interface Way {
  /** Decorators of the method beside ours, the outermost first. */
  readonly decorators?: readonly MethodDecorator[];
  /** `true`: `@Res()`; `passthrough`: `@Res({ passthrough: true })`. */
  readonly res?: true | "passthrough";
  answer(text: string, res: Reply): unknown;
}

const commonWays = ({ common }: NestPeer): Readonly<Record<string, Way>> => ({
  json: { answer: (text) => ({ text }) },
  text: { decorators: [common.HttpCode(200)], answer: (text) => text },
  "429": {
    answer(text) {
      throw new common.HttpException(text, 429);
    },
  },
  "500": {
    answer(text) {
      throw new common.InternalServerErrorException(text);
    },
  },
  throw: {
    answer(text) {
      throw new Error(text);
    },
  },
  eventStream: {
    decorators: [common.Header("content-type", "text/event-stream")],
    answer: (text) => new common.StreamableFile(Readable.from([Buffer.from(`data: ${text}\n\n`)])),
  },
});

const moreWays = ({ common, rxjs }: NestPeer): Readonly<Record<string, Way>> => ({
  nothing: { answer: () => undefined },
  "an empty 204": { decorators: [common.HttpCode(204)], answer: () => undefined },
  "a promise": { answer: async (text) => [text, { text }] },
  "an Observable": { answer: (text) => rxjs.of({ text: "dropped" }, { text }) },
  "a promise of an Observable": { answer: async (text) => rxjs.of({ text }) },
  "@Header": { decorators: [common.Header("content-type", "text/x"), common.HttpCode(202)], answer: (text) => text },
  "a StreamableFile": { answer: (text) => new common.StreamableFile(Buffer.from(text), { type: "text/x" }) },
  "a StreamableFile of a stream": {
    answer: (text) => new common.StreamableFile(Readable.from([Buffer.from(text), Buffer.from(text)])),
  },
  "@Redirect": { decorators: [common.Redirect("/v1/orders/8", 303)], answer: () => ({ url: "/v1/orders/9" }) },
  "@Res()": { res: true, answer: (text, res) => res.status(202).header("content-type", "text/x").send(text) },
  "@Res() and the raw response": {
    res: true,
    answer: (text, res) => {
      const raw = res.raw ?? (res as unknown as ServerResponse);
      raw.writeHead(200, { "content-type": "text/x" }).write(text);
      setImmediate(() => raw.end());
    },
  },
  "@Res({ passthrough: true })": {
    res: "passthrough",
    answer: (text, res) => {
      res.status(202).header("set-cookie", "a=1");
      return { text };
    },
  },
  "an interceptor": {
    decorators: [
      common.UseInterceptors({ intercept: (_, next: CallHandler) => next.handle().pipe(rxjs.map((value) => [value])) }),
    ],
    answer: (text) => ({ text }),
  },
  "an exception filter": {
    decorators: [common.UseFilters({ catch: catchAs303 })],
    answer(text) {
      throw new Error(text);
    },
  },
});

function catchAs303(error: Error, host: ArgumentsHost): void {
  const reply = host.switchToHttp().getResponse<Reply>();
  reply.status(303).header("location", "/v1/orders/9").header("content-type", "text/plain").send(error.message);
}

/** What Nest 12 can send beside that. */
const twelveWays: Readonly<Record<string, Way>> = {
  "a Response": { answer: (text) => new Response(text, { status: 202, headers: { "content-type": "text/x" } }) },
  "a web stream": { answer: (text) => new Blob([text, text]).stream() },
  "an async generator": {
    async *answer(text) {
      yield text;
      yield { text };
    },
  },
};

/** NestJS as a host of the adapter suite. */
export async function nestHost(peer: NestPeer): Promise<AdapterHarness> {
  const more = { ...moreWays(peer), ...(peer.version === 12 ? twelveWays : {}) };
  const ways = { ...commonWays(peer), ...more };
  const apps: INestApplication[] = [];
  return {
    ways: Object.keys(more),
    close: async () => void (await Promise.all(apps.map((app) => app.close()))),
    async serve(routes) {
      const controllers = routes.map((route) => controllerOf(peer, route, ways));
      const root = { module: class Root {}, controllers, imports: [OncekeyModule.forRoot({ once: onceOf(routes) })] };
      const options = { logger: false, abortOnError: false, bodyParser: false, forceCloseConnections: true } as const;
      const app = await peer.core.NestFactory.create<INestApplication>(root, peer.adapter(), options);
      apps.push(app);
      app.useGlobalGuards({ canActivate: (context: ExecutionContext) => isKnown(peer, context) });
      await app.listen(0, "127.0.0.1");
      return (app.getHttpServer().address() as { port: number }).port;
    },
  };
}

function isKnown({ common }: NestPeer, context: ExecutionContext): true {
  const { headers } = context.switchToHttp().getRequest<IncomingMessage>();
  if (headers.authorization === undefined) throw new common.UnauthorizedException();
  return true;
}

/** The suite hands over operations only; their engine asks the same instance. */
function onceOf(routes: readonly AdapterRoute[]) {
  const engine = (routes[0] as AdapterRoute).operation.engine;
  return {
    start: async () => {},
    close: async () => {},
    internals: {
      registry: {
        known: (operation: AdapterRoute["operation"]) => engine.bound(operation, { requiresKey: true }),
        all: () => routes.map(({ operation }) => operation),
      },
    },
  };
}

// What decorator syntax compiles to: the tests' own compiler settings have none of Nest's old decorators.
function controllerOf(peer: NestPeer, route: AdapterRoute, ways: Readonly<Record<string, Way>>) {
  const { common } = peer;
  const { mount, path, operation, binding, existing } = route;
  const way = existing === undefined ? undefined : ways[existing.way];
  class Controller {
    async handle(body: unknown, res: Reply) {
      const { text } = existing as ExistingHandler;
      return (way as Way).answer(await text(body), res);
    }
  }
  common.Controller(mount)(Controller);
  common.Body()(Controller.prototype, "handle", 0);
  if (way?.res === true) common.Res()(Controller.prototype, "handle", 1);
  if (way?.res === "passthrough") common.Res({ passthrough: true })(Controller.prototype, "handle", 1);
  const options = bindingOptions<never>(binding, (request: IncomingMessage, name) => request.headers[name] as never);
  const decorators = [common.Post(path), Idempotent(operation, options), ...(way?.decorators ?? [])];
  const descriptor = Object.getOwnPropertyDescriptor(Controller.prototype, "handle") as PropertyDescriptor;
  for (const decorator of decorators.reverse()) decorator(Controller.prototype, "handle", descriptor);
  return Controller;
}
