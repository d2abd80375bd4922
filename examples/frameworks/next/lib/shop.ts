import { created, createOncekey, type Oncekey, type Operation } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { migrate, postgresStore } from "oncekey/postgres";
import { Pool, type PoolClient } from "pg";

interface Shop {
  readonly once: Oncekey<PoolClient>;
  readonly pool: Pool;
  readonly createOrder: Operation<"transaction">;
  readonly createRefund: Operation<"capture">;
  start(): Promise<void>;
}

function openShop(): Shop {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL });
  const once = createOncekey({ store: postgresStore(fromPg(pool)) });
  const createOrder = once.transaction({
    name: "orders.create",
    version: 1,
    async run({ tx, input, scope, reference }) {
      const { item } = input.body as { item: string };
      const id = `ord_${reference.slice(0, 8)}`;
      await tx.query("INSERT INTO shop_order VALUES ($1, $2, $3)", [id, scope.tenant, item]);
      return created(`/orders/${id}`, { id, item });
    },
  });
  // A real one would look for the refund that an unfinished run may have left behind.
  const reconcile = async () => ({ kind: "unknown", why: "the example keeps no trace" }) as const;
  const createRefund = once.capture({ name: "refunds.create", version: 1, maxDurationMs: 30_000, reconcile });
  return {
    once,
    pool,
    createOrder,
    createRefund,
    async start() {
      await migrate(fromPg(pool));
      await pool.query("CREATE TABLE IF NOT EXISTS shop_order (id text PRIMARY KEY, tenant text, item text)");
      await pool.query(`CREATE TABLE IF NOT EXISTS shop_refund (id text PRIMARY KEY, "order" text)`);
      await once.start();
    },
  };
}

// Next.js bundles instrumentation and each route by itself, and `next dev` evaluates this module again whenever it
// changes: without a place outside of the modules there would be an instance, and a pool, for each. A changed operation
// therefore needs a new start of `next dev`.
const kept = globalThis as { oncekeyShop?: Shop };
kept.oncekeyShop ??= openShop();
export const shop: Shop = kept.oncekeyShop;

/** Authentication as small as it gets: the bearer token is the tenant. Never take the scope from what a client may choose. */
export function scopeOf(request: Request): { tenant: string; client: null } {
  const tenant = /^Bearer ([a-z]+)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
  return { tenant, client: null };
}
