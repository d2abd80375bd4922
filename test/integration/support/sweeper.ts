/** A process that does nothing but sweep orders, until its parent says stop. Started by sweepers.ts. */
import { fromPg } from "oncekey/drivers/pg";
import { createSweeper } from "oncekey/sweeper";
import pg from "pg";
import { atWork } from "./at-work.ts";
import { orders } from "./orders.ts";

const pool = new pg.Pool({ connectionString: process.env.SWEEPER_URL, max: 4 });
const failures: string[] = [];
const { once } = await orders({
  driver: fromPg(pool),
  kinds: ["phases"],
  at: atWork,
  once: { onError: (error) => void failures.push(String(error)) },
});
const stopping = new AbortController();
process.once("message", () => stopping.abort());
process.send?.("ready");
await createSweeper(once).run(stopping.signal);
await pool.end();
process.send?.({ failures });
process.disconnect();
