import { Readable } from "node:stream";
import type { CallHandler, DynamicModule, ExecutionContext, INestApplication } from "@nestjs/common";
import { type BodyStore, createOncekey, type Oncekey, type Operation } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { Idempotent, type NestRequest, OncekeyModule } from "oncekey/nest";
import { describe, expect, it, onTestFinished } from "vitest";
import type { NestPeer } from "../conformance/adapter-hosts/nest.ts";
import { nestPeers } from "../conformance/adapter-hosts/nest-peers.ts";
import { longBodies, post, scope, writeAndWrap } from "./support/capturing.ts";

interface Shop {
  readonly once: Oncekey<unknown>;
  readonly write: Operation<"transaction">;
  readonly wrap: Operation<"capture">;
  readonly seen: unknown[];
  readonly errors: unknown[];
}

/** An instance that is not started. */
function shop(options: { readonly bodyStore?: BodyStore } = {}): Shop {
  const errors: unknown[] = [];
  const once = createOncekey({ store: memoryStore(), onError: (error) => void errors.push(error), ...options });
  return { once: once as Oncekey<unknown>, ...writeAndWrap(once), errors };
}

type Method = (...given: never[]) => unknown;
type Decorator = (target: object, name: string, descriptor: PropertyDescriptor) => unknown;

/** A controller of one method `POST /a`, with these decorators (the outermost first). */
function controller({ common }: NestPeer, method: Method, ...decorators: Decorator[]) {
  class Orders {
    create(...given: never[]) {
      return method(...given);
    }
  }
  common.Controller()(Orders);
  const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, "create") as PropertyDescriptor;
  for (const decorator of [common.Post("a") as Decorator, ...decorators].reverse()) {
    decorator(Orders.prototype, "create", descriptor);
  }
  Object.defineProperty(Orders.prototype, "create", descriptor);
  return Orders;
}

interface Serving {
  readonly imports?: DynamicModule["imports"];
  /** As an application has it: Nest parses bodies and keeps their bytes. */
  readonly rawBody?: boolean;
  prepare?(app: INestApplication): void;
}

async function create(peer: NestPeer, controllers: DynamicModule["controllers"], serving: Serving = {}) {
  const { imports = [], rawBody = true } = serving;
  const root: DynamicModule = { module: class Root {}, controllers: controllers ?? [], imports };
  const options = { logger: false, abortOnError: false, rawBody, forceCloseConnections: true } as const;
  const app = await peer.core.NestFactory.create<INestApplication>(root, peer.parsing(), options);
  onTestFinished(() => app.close());
  serving.prepare?.(app);
  return app;
}

async function serve(...given: Parameters<typeof create>): Promise<string> {
  const app = await create(...given);
  await app.listen(0, "127.0.0.1");
  return `${await app.getUrl()}/a`;
}

const forRoot = (once: Oncekey<unknown>) => OncekeyModule.forRoot({ once });
const marked = (answer: Response) => answer.headers.get("idempotent-replayed");

for (const [name, makePeer] of Object.entries(nestPeers)) {
  describe(`the module of ${name}`, () => {
    const peer = makePeer();
    const { common } = peer;

    it("is missed when the application starts, by its name", async () => {
      const { write } = shop();
      const orders = controller(peer, () => {}, Idempotent(write, { scope }));
      await expect(create(peer, [orders])).rejects.toThrow(/OncekeyModule\.forRoot\(\{ once \}\)/);
    });

    it("is refused where its instance is not the operation's", async () => {
      const orders = controller(peer, () => {}, Idempotent(shop().write, { scope }));
      await expect(create(peer, [orders], { imports: [forRoot(shop().once)] })).rejects.toMatchObject({
        code: "oncekey_operation_unknown",
      });
    });

    it("is refused twice, with two instances or with one", async () => {
      const [one, other] = [shop(), shop()];
      for (const second of [one, other]) {
        const app = await create(peer, [], { imports: [forRoot(one.once), forRoot(second.once)] });
        await expect(app.init()).rejects.toMatchObject({ code: "oncekey_config_invalid" });
      }
    });

    it("may be one module that several modules import", async () => {
      const { once, write } = shop();
      const shared = forRoot(once);
      const feature = { module: class Feature {}, imports: [shared] };
      const orders = controller(peer, () => {}, Idempotent(write, { scope }));
      const url = await serve(peer, [orders], { imports: [shared, feature] });
      expect((await post(url)).status).toBe(200);
    });

    it("starts the instance before the application listens, and closes it when that shuts down", async () => {
      const { once, write } = shop();
      const orders = controller(peer, () => {}, Idempotent(write, { scope }));
      const app = await create(peer, [orders], { imports: [forRoot(once)] });
      await app.listen(0, "127.0.0.1");
      expect((await post(`${await app.getUrl()}/a`)).status).toBe(200);
      await app.close();
      const request = { scope: scope(), key: "k", input: { body: {} } };
      await expect(once.run(write, request)).rejects.toMatchObject({ code: "oncekey_closed" });
    });

    it("leaves both to you where you say so", async () => {
      const { once, write } = shop();
      const orders = controller(peer, () => {}, Idempotent(write, { scope }));
      const module = OncekeyModule.forRoot({ once, lifecycle: "own" });
      const app = await create(peer, [orders], { imports: [module] });
      await app.listen(0, "127.0.0.1");
      expect((await post(`${await app.getUrl()}/a`)).status).toBe(500);
      await once.start();
      expect((await post(`${await app.getUrl()}/a`)).status).toBe(200);
      await app.close();
      await expect(once.run(write, { scope: scope(), key: "other", input: { body: {} } })).resolves.toBeDefined();
    });

    it("does not start where a decorated method is replaced above it, or is no route", async () => {
      const replace: Decorator = (_target, _name, descriptor) => {
        const { value } = descriptor;
        descriptor.value = (...given: unknown[]) => value(...given);
      };
      class Service {
        create() {}
      }
      const cases = [
        [/Orders\.create/, (decorator: Decorator) => [controller(peer, () => {}, replace, decorator)]],
        [
          /Service\.create/,
          (decorator: Decorator) => {
            const descriptor = Object.getOwnPropertyDescriptor(Service.prototype, "create");
            decorator(Service.prototype, "create", descriptor as PropertyDescriptor);
            return [];
          },
        ],
      ] as const;
      for (const [message, decorate] of cases) {
        const { once, write } = shop();
        const app = await create(peer, decorate(Idempotent(write, { scope })), { imports: [forRoot(once)] });
        await expect(app.init()).rejects.toMatchObject({
          code: "oncekey_config_invalid",
          message: expect.stringMatching(message),
        });
      }
    });

    it("takes a method that controllers inherit, and one that was replaced below it", async () => {
      const { once, wrap } = shop();
      const trace: Decorator = (_target, _name, descriptor) => {
        const { value } = descriptor;
        descriptor.value = (...given: unknown[]) => ({ traced: value(...given) });
      };
      const base = controller(peer, () => 7, Idempotent(wrap, { scope }), trace);
      class Inheriting extends base {}
      common.Controller("child")(Inheriting);
      const url = await serve(peer, [base, Inheriting], { imports: [forRoot(once)] });
      const child = url.replace(/a$/, "child/a");
      expect(await (await post(url)).json()).toEqual({ traced: 7 });
      expect(marked(await post(url))).toBe("true");
      expect((await post(child)).status).toBe(422);
      expect((await post(child, "{}", { "idempotency-key": "other" })).status).toBe(201);
    });

    it("does not fit what is no method", () => {
      expect(() => Idempotent(shop().write, { scope })({}, "create", { get: () => 1 })).toThrow(/no method/);
    });

    it("gives the request that guards have made to scope", async () => {
      const { once, write } = shop();
      const guard = {
        canActivate(context: ExecutionContext) {
          Object.assign(context.switchToHttp().getRequest<object>(), { user: { tenant: "acme" } });
          return true;
        },
      };
      const scopes: unknown[] = [];
      const ofUser = (request: NestRequest & { readonly user: { readonly tenant: string } }) => {
        scopes.push(request.user.tenant);
        return { tenant: request.user.tenant, client: null };
      };
      const orders = controller(
        peer,
        () => {},
        common.UseGuards(guard) as Decorator,
        Idempotent(write, { scope: ofUser }),
      );
      expect((await post(await serve(peer, [orders], { imports: [forRoot(once)] }))).status).toBe(200);
      expect(scopes).toEqual(["acme"]);
    });

    it("compares and hands over every digit where Nest keeps the raw body, and refuses lost ones where not", async () => {
      const body = '{"a":9007199254740993}';
      for (const rawBody of [true, false]) {
        const { once, write, seen } = shop();
        const orders = controller(peer, () => {}, Idempotent(write, { scope }));
        const url = await serve(peer, [orders], { imports: [forRoot(once)], rawBody });
        expect((await post(url, body)).status).toBe(rawBody ? 200 : 400);
        expect(seen).toEqual(rawBody ? [{ a: 9007199254740993n }] : []);
        expect((await post(url)).status).toBe(rawBody ? 422 : 200);
      }
    });

    it("replays the bytes of an answer that a global interceptor wrapped, once", async () => {
      const { once, wrap, write } = shop();
      let runs = 0;
      const envelope = {
        intercept: (_: unknown, next: CallHandler) =>
          next.handle().pipe(peer.rxjs.map((data) => ({ data, run: ++runs, text: String((data as { id: 1 }).id) }))),
      };
      const prepare = (app: INestApplication) => app.useGlobalInterceptors(envelope);
      for (const operation of [wrap, write]) {
        const orders = controller(peer, () => ({ id: 1 }), Idempotent(operation, { scope }));
        const url = await serve(peer, [orders], {
          imports: [OncekeyModule.forRoot({ once, lifecycle: "own" })],
          prepare,
        });
        if (operation === wrap) await once.start();
        const [first, again] = [await post(url), await post(url)];
        expect([first.status < 300, marked(first), marked(again)]).toEqual([true, null, "true"]);
        const text = await first.text();
        expect(text).toBe(operation === wrap ? '{"data":{"id":1},"run":1,"text":"1"}' : '{"a":1}');
        expect(await again.text()).toBe(text);
      }
    });

    it("validates with pipes before the method, and stores what they refuse", async () => {
      const { once, wrap } = shop();
      let runs = 0;
      const refuse = {
        transform(value: { a: number }) {
          runs++;
          if (value.a !== 2) throw new common.BadRequestException("a must be 2");
          return value;
        },
      };
      const orders = controller(peer, () => ({}), common.UsePipes(refuse) as Decorator, Idempotent(wrap, { scope }));
      common.Body()(orders.prototype, "create", 0);
      const url = await serve(peer, [orders], { imports: [forRoot(once)] });
      const [first, again] = [await post(url), await post(url)];
      expect([first.status, again.status, marked(again)]).toEqual([400, 400, "true"]);
      expect(await again.text()).toBe(await first.text());
      expect(runs).toBe(1);
    });

    it("keeps headers that were set for this caller on replays and refusals", async () => {
      const { once, wrap } = shop();
      const orders = controller(
        peer,
        () => ({}),
        common.Header("X-Method", "yes") as Decorator,
        Idempotent(wrap, { scope }),
      );
      const prepare = (app: INestApplication) => app.enableCors({ origin: "https://shop.example", credentials: true });
      const url = await serve(peer, [orders], { imports: [forRoot(once)], prepare });
      const answers = [await post(url), await post(url), await post(url, '{"a":2}')];
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 422]);
      for (const { headers } of answers) {
        expect(headers.get("access-control-allow-origin")).toBe("https://shop.example");
        expect(headers.get("x-method")).toBe("yes");
      }
    });

    it("replays a long stream whole, whatever Nest writes beside it", async () => {
      const { once, wrap } = shop({ bodyStore: await longBodies() });
      const chunks = () => Array.from({ length: 32 }, (_, at) => Buffer.alloc(65_536, at));
      const orders = controller(
        peer,
        () => new common.StreamableFile(Readable.from(chunks())),
        Idempotent(wrap, { scope }),
      );
      const url = await serve(peer, [orders], { imports: [forRoot(once)] });
      for (const marker of [null, "true", "true"]) {
        const answer = await post(url);
        expect([answer.status, marked(answer)]).toEqual([201, marker]);
        expect(Buffer.concat(chunks()).equals(Buffer.from(await answer.arrayBuffer()))).toBe(true);
      }
    });

    it("hands an error after the method to the exception filters, or to onError where the response is given away", async () => {
      const { once, wrap, errors } = shop();
      const stream = () => new common.StreamableFile(Readable.from([Buffer.from("data: 1\n\n")]));
      const type = common.Header("content-type", "text/event-stream") as Decorator;
      const orders = controller(peer, stream, type, Idempotent(wrap, { scope }));
      const url = await serve(peer, [orders], { imports: [forRoot(once)] });
      const answer = await post(url);
      expect(answer.status).toBe(500);
      expect(await answer.text()).not.toContain("data");
      expect(errors).toMatchObject(peer.platform === "fastify" ? [{ code: "oncekey_stream_refused" }] : []);
    });
  });
}
