import { createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { migrate, postgresStore } from "oncekey/postgres";
import pg from "pg";
import { startAcceptor } from "./acceptor.ts";
import { TABLES } from "./orders.ts";

// A FIX acceptor for one counterparty, on PostgreSQL:
//
//   DATABASE_URL=postgres://… FIX_PASSWORD=… node --conditions=oncekey-source --import tsx examples/fix/start.ts

/** A setting from the environment. */
function setting(name: string, otherwise?: string): string {
  const value = process.env[name] ?? otherwise;
  if (value === undefined) throw new Error(`Set ${name}. Nothing was started.`);
  return value;
}

async function main(): Promise<void> {
  const password = setting("FIX_PASSWORD");
  const pool = new pg.Pool({ connectionString: setting("DATABASE_URL") });
  pool.on("error", (error) => console.error(`The database cut a connection: ${error.message}`));
  const driver = fromPg(pool);
  await migrate(driver);
  // Several may start at once, and `IF NOT EXISTS` alone is no protection then.
  await pool.query(`BEGIN; SELECT pg_advisory_xact_lock(7162536); ${TABLES} COMMIT;`);
  const once = createOncekey({ store: postgresStore(driver) });
  await once.start();
  const crashAt = process.env.FIX_LAB_CRASH;
  const acceptor = await startAcceptor({
    once,
    database: pool,
    us: setting("FIX_COMP_ID", "EXCHANGE"),
    counterparties: new Map([[setting("FIX_COUNTERPARTY", "ACME"), { tenant: "acme", password }]]),
    port: Number(setting("FIX_PORT", "0")),
    // The place that this example is about: the order is committed, and nobody knows it yet.
    beforeAnswer: ({ type }) => {
      if (type === crashAt) process.kill(process.pid, "SIGKILL");
    },
    report: (error) => console.error(`A connection was ended: ${error instanceof Error ? error.message : error}`),
  });
  const stopping = new Promise<void>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => resolve());
  });
  process.stdout.write(`${JSON.stringify({ ready: acceptor.port })}\n`);
  await stopping;
  await acceptor.close();
  await once.close();
  await pool.end();
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
});
