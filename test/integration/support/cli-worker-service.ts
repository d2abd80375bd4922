import { created, createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { createRelay, delivered } from "oncekey/outbox";
import { postgresStore } from "oncekey/postgres";
import { createSweeper } from "oncekey/sweeper";
import pg from "pg";

/** What a service's own module for `oncekey worker` looks like: the same operations as its API, sweeper and relay. */
export function worker() {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 5, connectionTimeoutMillis: 2_000 });
  pool.on("error", () => {});
  const once = createOncekey({ store: postgresStore(fromPg(pool)) });
  once.phases({
    name: "standing.create",
    version: 1,
    run: (op) =>
      op.complete(async ({ send }) => {
        await send("standing.created", { note: "message-content" });
        return created("/v1/standing/1", { by: "the worker" });
      }),
  });
  const tellOf = async ({ topic, id }: { topic: string; id: string }) => {
    process.stderr.write(`delivered ${topic} ${id}\n`);
    return delivered();
  };
  return {
    once,
    sweeper: createSweeper(once, { intervalMs: 100 }),
    relay: createRelay(once, { topics: { "standing.*": tellOf }, intervalMs: 100 }),
    async close() {
      await pool.end();
      process.stderr.write("closed\n");
    },
  };
}
