import { created, createOncekey, type Operation } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { migrate, postgresStore } from "oncekey/postgres";
import pg from "pg";

/** The example's database. */
export const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });

/** One instance for all routes: Nitro puts them into one bundle. */
export const once = createOncekey({ store: postgresStore(fromPg(pool)) });

/** `POST /orders {"item"}`: business row and stored answer are one transaction. */
export const createOrder: Operation<"transaction"> = once.transaction({
  name: "orders.create",
  version: 1,
  async run({ tx, input, scope, reference }) {
    const { item } = input.body as { item: string };
    const id = `ord_${reference.slice(0, 8)}`;
    await tx.query("INSERT INTO shop_order VALUES ($1, $2, $3)", [id, scope.tenant, item]);
    return created(`/orders/${id}`, { id, item });
  },
});

/** Wraps the existing handler of `POST /orders/:id/refunds`. */
export const createRefund: Operation<"capture"> = once.capture({
  name: "refunds.create",
  version: 1,
  maxDurationMs: 30_000,
  // A real one would look for the refund that an unfinished run may have left behind.
  reconcile: async () => ({ kind: "unknown", why: "the example keeps no trace" }) as const,
});

/** Authentication as small as it gets: the bearer token is the tenant. Never take the scope from what a client may choose. */
export function scopeOf(event: { readonly req: { readonly headers: { get(name: string): string | null } } }) {
  const tenant = /^Bearer ([a-z]+)$/.exec(event.req.headers.get("authorization") ?? "")?.[1] ?? "";
  return { tenant, client: null };
}

await migrate(fromPg(pool));
await pool.query("CREATE TABLE IF NOT EXISTS shop_order (id text PRIMARY KEY, tenant text, item text)");
await pool.query(`CREATE TABLE IF NOT EXISTS shop_refund (id text PRIMARY KEY, "order" text)`);
// Nitro awaits no plugin, but a module that a route imports is awaited before the route's first request.
await once.start();
