import { listenerOf, readBody, sendJson } from "../host.ts";
import type { InvoiceInput } from "../invoice.ts";
import { inTransaction } from "./in-transaction.ts";
import { redisUrl, type Variant } from "./variant.ts";

interface RedisClient {
  connect(): Promise<unknown>;
  close(): Promise<unknown>;
}

interface Keyed {
  readonly key: string;
  readonly input: InvoiceInput;
}

interface Powertools {
  makeIdempotent<R>(work: (event: Keyed) => Promise<R>, options: object): (event: Keyed) => Promise<R>;
  readonly IdempotencyConfig: new (options: object) => { registerLambdaContext(context: object): void };
}

/** Powertools for AWS Lambda: its function wrapper and Redis cache around the plain handler, in a server that stays up. */
export const powertools: Variant = {
  name: "powertools",
  title: "Powertools for AWS Lambda with Redis",
  async open({ pool, handler, load, redisPort }) {
    const { makeIdempotent, IdempotencyConfig }: Powertools = load("@aws-lambda-powertools/idempotency");
    const { CachePersistenceLayer } = load("@aws-lambda-powertools/idempotency/cache") as {
      readonly CachePersistenceLayer: new (options: object) => unknown;
    };
    const { createClient } = load("@redis/client") as { createClient(options: object): RedisClient };
    const client = createClient({ url: redisUrl(redisPort) });
    await client.connect();
    const config = new IdempotencyConfig({ eventKeyJmesPath: "key" });
    // Without it each call warns on the console, which would be measured.
    config.registerLambdaContext({ getRemainingTimeInMillis: () => 60_000 });
    const create = makeIdempotent(
      ({ input }) => inTransaction(pool, (connection) => handler.insert(connection, input)),
      {
        persistenceStore: new CachePersistenceLayer({ client }),
        config,
      },
    );
    const listener = listenerOf(async (request, response) => {
      const input = JSON.parse(String(await readBody(request))) as InvoiceInput;
      const key = String(request.headers["idempotency-key"]);
      sendJson(response, 201, JSON.stringify(await create({ key, input })));
    });
    return { listener, close: () => client.close() };
  },
};
