import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import type { Request, RequestHandler, Response } from "express";

// Public idempotency middlewares, from the project that installs them, as their own documents say to use them.

const load = createRequire(import.meta.url);

interface ExpressIdempotency {
  idempotency(options: { readonly dataAdapter?: unknown }): RequestHandler;
  getSharedIdempotencyService(): { isHit(request: Request): boolean };
}

interface RedisAdapter {
  findByIdempotencyKey(key: string): Promise<unknown>;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
}

/** A middleware in an application. */
export interface Middleware {
  readonly handler: RequestHandler;
  /** Whether it has answered already, though it calls the handler. */
  isAnswered(request: Request): boolean;
  close(): Promise<void>;
}

/** express-idempotency 1.0.6 with its Redis adapter 1.0.8. `latencyMs`: what a Redis elsewhere would take for a look-up. */
export async function expressIdempotency(redisPort: number, latencyMs = 0): Promise<Middleware> {
  const { idempotency, getSharedIdempotencyService }: ExpressIdempotency = load("express-idempotency");
  const { default: Adapter } = load("express-idempotency-redis-adapter") as {
    readonly default: new (options: object) => RedisAdapter;
  };
  const adapter = new Adapter({ connectionConfig: { url: `redis://127.0.0.1:${redisPort}` } });
  await adapter.connect();
  const find = adapter.findByIdempotencyKey.bind(adapter);
  adapter.findByIdempotencyKey = async (key) => {
    const found = await find(key);
    await sleep(latencyMs);
    return found;
  };
  return {
    handler: idempotency({ dataAdapter: adapter }),
    isAnswered: (request) => getSharedIdempotencyService().isHit(request),
    close: () => adapter.disconnect(),
  };
}

interface Seen {
  readonly body?: unknown;
  readonly additional?: { readonly status?: number };
}

interface Idempotency {
  onRequest(request: object): Promise<Seen | undefined>;
  onResponse(request: object, seen: Seen): Promise<void>;
}

/** The statuses of its own wrapper for NestJS. */
const STATUSES: Readonly<Record<string, number>> = {
  IDEMPOTENCY_KEY_MISSING: 400,
  IDEMPOTENCY_KEY_LEN_EXEEDED: 400,
  IDEMPOTENCY_FINGERPRINT_MISSMATCH: 422,
  REQUEST_IN_PROGRESS: 409,
};

/** @node-idempotency/core 1.0.11 with its memory adapter, around a handler's `send`. */
export function nodeIdempotency(): Middleware {
  const { Idempotency: Core } = load("@node-idempotency/core") as {
    readonly Idempotency: new (storage: unknown, options: object) => Idempotency;
  };
  const { MemoryStorageAdapter } = load("@node-idempotency/storage-adapter-memory") as {
    readonly MemoryStorageAdapter: new () => unknown;
  };
  const core = new Core(new MemoryStorageAdapter(), { enforceIdempotency: true });
  return {
    handler: (request, response, next) => {
      const { method, headers, body, originalUrl: path } = request;
      const asked = { method, headers, body, path };
      const answer = (seen: Seen | undefined) => {
        if (seen !== undefined) return void response.status(seen.additional?.status ?? 200).send(seen.body);
        storing(response, (first) => core.onResponse(asked, first));
        next();
      };
      core.onRequest(asked).then(answer, (error: { readonly code?: string }) => {
        response.status(STATUSES[error.code ?? ""] ?? 500).json({ code: error.code });
      });
    },
    isAnswered: () => false,
    close: async () => {},
  };
}

/** Stores what a handler sends, before it is sent. */
function storing(response: Response, store: (seen: Seen) => Promise<void>): void {
  const send = response.send.bind(response);
  response.send = (body) => {
    response.send = send;
    void store({ body, additional: { status: response.statusCode } }).finally(() => send(body));
    return response;
  };
}
