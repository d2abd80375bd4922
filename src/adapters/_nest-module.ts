import { OncekeyError } from "../core/errors.ts";
import type { Operation } from "../engine/operation.ts";

/** What is used of an instance. */
export interface NestInstance {
  start(): Promise<void>;
  close(): Promise<unknown>;
  /** @internal */
  readonly internals: { readonly registry: { known(operation: Operation): unknown; all(): readonly Operation[] } };
}

/** How the module is made. */
export interface NestModuleOptions {
  /** The instance whose operations the application's methods name. */
  readonly once: NestInstance;
  /**
   * `nest`: started before the application listens, and closed when it shuts down, after the server. `own`: both are
   * yours, for an instance that lives longer than the application. Default `nest`.
   */
  readonly lifecycle?: "nest" | "own";
}

/** A dynamic module, as Nest takes it. */
export interface NestModule {
  readonly module: new () => object;
  readonly global: true;
  readonly providers: { readonly provide: symbol; readonly useFactory: () => Promise<NestInstance> }[];
  readonly exports: symbol[];
}

/** What is used of Nest's execution context. */
export interface NestContext {
  getType(): string;
  switchToHttp(): { getRequest<Request>(): Request; getResponse<Response>(): Response; getNext(): unknown };
}

/** The rest of a request behind an interceptor. */
export interface NestCallHandler {
  handle(): unknown;
}

type Intercept = (context: NestContext, next: NestCallHandler) => unknown;

// In Nest's message about a dependency that cannot be found, which names it, this says what to do.
const INSTANCE = Symbol("OncekeyModule.forRoot({ once })");

/** The modules in use, by the application's own HTTP adapter: the one thing of an application that each module can see. */
const inUse = new WeakMap<object, object>();

/** Makes the module of an instance. */
export function oncekeyModule({ once, lifecycle = "nest" }: NestModuleOptions): NestModule {
  const hooks = {
    configure(consumer: { getHttpAdapter(): object }) {
      const app = consumer.getHttpAdapter();
      if ((inUse.get(app) ?? hooks) !== hooks) throw importedTwice();
      inUse.set(app, hooks);
    },
    onModuleInit() {
      for (const operation of once.internals.registry.all()) decorated.get(operation)?.forEach(checkRouted);
    },
    onApplicationShutdown: async () => void (lifecycle === "nest" && (await once.close())),
  };
  const useFactory = async () => {
    if (lifecycle === "nest") await once.start();
    return once;
  };
  const module = constructorOf("OncekeyModule", () => hooks);
  return { module, global: true, providers: [{ provide: INSTANCE, useFactory }], exports: [INSTANCE] };
}

function importedTwice(): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    "OncekeyModule.forRoot() was imported twice, so nobody can tell which instance a method means. The application did not start. Import it once, in the root module: it is global.",
  );
}

/** A method as it was decorated. */
interface Decorated {
  readonly operation: Operation;
  readonly target: object;
  readonly name: string | symbol;
  readonly interceptor: unknown;
}

const decorated = new WeakMap<Operation, Decorated[]>();

/**
 * Nest calls interceptors for what it routes to, and reads them from the method that the class has in the end: on a
 * provider's method, or below a decorator that puts another function in its place, ours would do nothing.
 */
function checkRouted({ operation, target, name, interceptor }: Decorated): void {
  const { getMetadata } = nestMetadata(operation);
  const method = (target as Readonly<Record<string | symbol, unknown>>)[name];
  if (typeof method === "function" && getMetadata("path", method) !== undefined) {
    if (((getMetadata("__interceptors__", method) ?? []) as unknown[]).includes(interceptor)) return;
  }
  throw new OncekeyError(
    "oncekey_config_invalid",
    `@Idempotent for ${operation.name} decorates ${target.constructor.name}.${String(name)}, which is no HTTP route, or which another decorator has replaced: it would protect nothing. The application did not start. Decorate a controller's method that has @Post or its like, above decorators that replace the method.`,
  );
}

/**
 * A method decorator that puts an interceptor around the method, before those that the method has. Nest makes it when the
 * application starts, and only where the module is there.
 */
export function interceptWith(operation: Operation, intercept: Intercept) {
  const interceptor = constructorOf("IdempotentInterceptor", (once: NestInstance) => {
    once.internals.registry.known(operation);
    return { intercept };
  });
  return (target: object, name: string | symbol, descriptor: PropertyDescriptor): void => {
    const method: unknown = descriptor?.value;
    if (typeof method !== "function") throw notAMethod(operation, name);
    const { getMetadata, defineMetadata } = nestMetadata(operation);
    defineMetadata("self:paramtypes", [{ index: 0, param: INSTANCE }], interceptor);
    const others = (getMetadata("__interceptors__", method) ?? []) as unknown[];
    defineMetadata("__interceptors__", [interceptor, ...others], method);
    decorated.set(operation, [...(decorated.get(operation) ?? []), { operation, target, name, interceptor }]);
  };
}

// Nest makes modules and interceptors with `new`, and takes the object that this gives.
function constructorOf<Given>(name: string, make: (given: Given) => object): new () => object {
  function construct(given: Given): object {
    return make(given);
  }
  return Object.defineProperty(construct, "name", { value: name }) as unknown as new () => object;
}

interface Metadata {
  getMetadata(key: string, target: object): unknown;
  defineMetadata(key: string, value: unknown, target: object): void;
}

// Nest loads reflect-metadata, which puts these into the global Reflect.
function nestMetadata({ name }: Operation): Metadata {
  const { getMetadata, defineMetadata } = Reflect as typeof Reflect & Partial<Metadata>;
  if (getMetadata !== undefined && defineMetadata !== undefined) return { getMetadata, defineMetadata };
  throw new OncekeyError(
    "oncekey_config_invalid",
    `@Idempotent for ${name} ran before @nestjs/common was loaded. Nothing was bound. Import @nestjs/common first.`,
  );
}

function notAMethod({ name }: Operation, member: string | symbol): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    `@Idempotent for ${name} decorates ${String(member)}, which is no method. Nothing was bound. Decorate a method of a controller.`,
  );
}
