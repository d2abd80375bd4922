import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { Context } from "hono";
import pg from "pg";

/** The one endpoint. */
export const PATH = "/payments";

/** Connections to the database of `DATABASE_URL`. */
export function openPool(): pg.Pool {
  const connectionString = process.env.DATABASE_URL;
  if (connectionString === undefined) throw new Error("Set DATABASE_URL. Nothing was started.");
  const pool = new pg.Pool({ connectionString });
  pool.on("error", (error) => console.error(`The database cut a connection: ${error.message}`));
  return pool;
}

/** Authentication as small as it gets: the bearer token is the tenant. */
export function tenantOf(c: Context): string | null {
  return /^Bearer ([a-z]+)$/.exec(c.req.header("authorization") ?? "")?.[1] ?? null;
}

/** Serves on `PORT` (default: any that is free) until SIGTERM, and says so in one line. `finish` comes before the pool's end. */
export async function serve(
  name: "old" | "new",
  pool: pg.Pool,
  listener: RequestListener,
  finish: () => Promise<unknown> = async () => {},
): Promise<void> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  console.log(`oncekey migrating ${name} ready ${JSON.stringify({ url, pid: process.pid })}`);
  await new Promise((resolve) => process.once("SIGTERM", resolve));
  await new Promise((resolve) => void server.close(resolve).closeIdleConnections());
  await finish();
  await pool.end();
}
