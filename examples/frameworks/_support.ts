import { randomUUID } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { created, createOncekey, type Oncekey, type Operation, type Scope } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { memoryStore } from "oncekey/memory";
import { migrate, postgresStore } from "oncekey/postgres";
import pg from "pg";

// What the examples of all frameworks share, so that each of them shows its binding and nothing else: a small shop with
// one operation of its own and one existing piece of code to wrap. Without DATABASE_URL it lives in memory, which is
// enough to see replays and nothing else: a memory store survives no restart and is seen by one process only.

/** An order as the API shows it. */
export interface Order {
  readonly id: string;
  readonly item: string;
}

/** A shop behind a framework. */
export interface Shop {
  /** The instance, not started: an example may define operations of its own before {@link serve} or {@link ready}. */
  readonly once: Oncekey<unknown>;
  /** `POST /orders {"item"}` → 201: business row and stored answer are one transaction. */
  readonly createOrder: Operation<"transaction">;
  /** Wraps an existing handler that calls {@link Shop.refund}. */
  readonly createRefund: Operation<"capture">;
  /** What an existing handler does, with a connection of its own. */
  refund(order: string): Promise<{ readonly id: string; readonly order: string }>;
  /** Everything that was done, for `GET /effects`. */
  effects(): Promise<{ readonly orders: readonly Order[]; readonly refunds: readonly { readonly order: string }[] }>;
  /** Lets running operations finish and closes the database. */
  close(): Promise<void>;
}

/** Authentication as small as it gets: the bearer token is the tenant. Never take the scope from what a client may choose. */
export function tenantOf(authorization: string | undefined | null): string | null {
  return /^Bearer ([a-z]+)$/.exec(authorization ?? "")?.[1] ?? null;
}

/** Whose key it is, from an `Authorization` header that was checked before. */
export function scopeOf(authorization: string | undefined | null): Scope {
  return { tenant: tenantOf(authorization) ?? "", client: null };
}

/** Opens the shop on `DATABASE_URL`, or in memory. */
export async function openShop(): Promise<Shop> {
  const url = process.env.DATABASE_URL;
  return url === undefined ? memoryShop() : postgresShop(url);
}

interface Books<Tx> {
  addOrder(tx: Tx, order: Order & { readonly tenant: string }): Promise<unknown>;
  addRefund(refund: { readonly id: string; readonly order: string }): Promise<unknown>;
}

function shopOf<Tx>(
  once: Oncekey<Tx>,
  books: Books<Tx>,
): Pick<Shop, "once" | "createOrder" | "createRefund" | "refund"> {
  const createOrder = once.transaction({
    name: "orders.create",
    version: 1,
    async run({ tx, input, scope, reference }) {
      const order = { id: `ord_${reference.slice(0, 8)}`, item: String((input.body as Partial<Order>).item) };
      await books.addOrder(tx, { ...order, tenant: scope.tenant });
      return created(`/orders/${order.id}`, order);
    },
  });
  // A real one would look for the refund that an unfinished run may have left behind.
  const reconcile = async () => ({ kind: "unknown", why: "the example keeps no trace" }) as const;
  const createRefund = once.capture({ name: "refunds.create", version: 1, maxDurationMs: 30_000, reconcile });
  const refund = async (order: string) => {
    const row = { id: `ref_${randomUUID().slice(0, 8)}`, order };
    await books.addRefund(row);
    return row;
  };
  return { once: once as Oncekey<unknown>, createOrder, createRefund, refund };
}

function memoryShop(): Shop {
  const store = memoryStore();
  const refunds: { readonly order: string }[] = [];
  const shop = shopOf(createOncekey({ store }), {
    addOrder: (tx, order) => tx.insert("orders", order),
    addRefund: async (refund) => refunds.push(refund),
  });
  return {
    ...shop,
    effects: async () => ({ orders: store.rows<Order>("orders"), refunds: [...refunds] }),
    close: async () => void (await shop.once.close()),
  };
}

async function postgresShop(connectionString: string): Promise<Shop> {
  const pool = new pg.Pool({ connectionString });
  const driver = fromPg(pool);
  await migrate(driver);
  await pool.query(
    `CREATE TABLE IF NOT EXISTS shop_order (id text PRIMARY KEY, tenant text NOT NULL, item text NOT NULL)`,
  );
  await pool.query(`CREATE TABLE IF NOT EXISTS shop_refund (id text PRIMARY KEY, "order" text NOT NULL)`);
  const shop = shopOf(createOncekey({ store: postgresStore(driver) }), {
    addOrder: (tx, { id, tenant, item }) => tx.query("INSERT INTO shop_order VALUES ($1, $2, $3)", [id, tenant, item]),
    addRefund: ({ id, order }) => pool.query("INSERT INTO shop_refund VALUES ($1, $2)", [id, order]),
  });
  const rows = async (table: string) => (await pool.query(`SELECT * FROM ${table} ORDER BY id`)).rows;
  return {
    ...shop,
    effects: async () => ({ orders: await rows("shop_order"), refunds: await rows("shop_refund") }),
    async close() {
      await shop.once.close();
      await pool.end();
    },
  };
}

/** `PORT`, or 0 for any that is free. */
export const port = Number(process.env.PORT ?? 0);

/** Serves a listener of Node's on the loopback address and says so, see {@link ready}. */
export async function serve(name: string, shop: Shop, listener: RequestListener): Promise<void> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  ready(name, shop, url, () => new Promise((resolve) => void server.close(resolve).closeIdleConnections()));
}

/**
 * Prints the one line `oncekey <name> ready {"url":…,"pid":…}` and stops on SIGTERM and SIGINT: first the server, then
 * what it still runs.
 */
export function ready(name: string, shop: Shop, url: string, stop: () => Promise<unknown>): void {
  const end = async () => {
    await stop();
    await shop.close();
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void end());
  console.log(`oncekey ${name} ready ${JSON.stringify({ url, pid: process.pid })}`);
}
