import { listenerOf, PATH, readBody, sendJson } from "../host.ts";
import type { InvoiceInput } from "../invoice.ts";
import { inTransaction } from "./in-transaction.ts";
import { redisUrl, type Variant } from "./variant.ts";

interface Seen {
  readonly body?: string;
  readonly additional?: { readonly status: number };
}

interface Core {
  onRequest(request: object): Promise<Seen | undefined>;
  onResponse(request: object, seen: Seen): Promise<void>;
}

interface RedisAdapter {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
}

/** \@node-idempotency/core with its Redis adapter around the plain handler. The answer is stored before it is sent. */
export const nodeIdempotency: Variant = {
  name: "node-idempotency",
  title: "node-idempotency with Redis",
  async open({ pool, handler, load, redisPort }) {
    const { Idempotency } = load("@node-idempotency/core") as {
      readonly Idempotency: new (storage: RedisAdapter, options: object) => Core;
    };
    const { RedisStorageAdapter } = load("@node-idempotency/storage-adapter-redis") as {
      readonly RedisStorageAdapter: new (options: object) => RedisAdapter;
    };
    const storage = new RedisStorageAdapter({ url: redisUrl(redisPort) });
    await storage.connect();
    const core = new Idempotency(storage, { enforceIdempotency: true });
    const listener = listenerOf(async (request, response) => {
      const input = JSON.parse(String(await readBody(request))) as InvoiceInput;
      const asked = { method: request.method, headers: request.headers, body: input, path: PATH };
      const seen = await core.onRequest(asked);
      if (seen !== undefined) return sendJson(response, seen.additional?.status ?? 200, seen.body ?? "");
      const body = JSON.stringify(await inTransaction(pool, (client) => handler.insert(client, input)));
      await core.onResponse(asked, { body, additional: { status: 201 } });
      sendJson(response, 201, body);
    });
    return { listener, close: () => storage.disconnect() };
  },
};
