/** A relay in a process of its own, to be killed at any moment: posts every message to the sink. */
import { createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { createRelay, delivered, type OutboxMessage, type Published, publisherOf, retry } from "oncekey/outbox";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import type { RelaySettings } from "./outbox-world.ts";

const settings = JSON.parse(process.env.LAB_SETTINGS ?? "{}") as RelaySettings;
const pool = new pg.Pool({ connectionString: settings.url, max: 4 });
pool.on("error", () => {});

/** Taken over once the sink has committed the effect. */
async function post(message: OutboxMessage, signal: AbortSignal): Promise<Published> {
  const { id, orderBy, tenant, payload } = message;
  const body = JSON.stringify({ id, orderBy, tenant, payload });
  const answer = await fetch(`${settings.sinkUrl}/messages`, { method: "POST", body, signal });
  await answer.arrayBuffer();
  return answer.ok ? delivered() : retry(`the sink answered ${answer.status}`);
}

const once = createOncekey({ store: postgresStore(fromPg(pool)), onError: () => {} });
await once.start();
const { leaseMs, timeoutMs, intervalMs, longestPauseMs, maxAttempts } = settings;
const relay = createRelay(once, {
  topics: { "lab.*": publisherOf("sink", post) },
  ...{ leaseMs, timeoutMs, intervalMs, longestPauseMs, maxAttempts },
});
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
process.send?.({ ready: null });
await relay.run(stop.signal);
await once.close();
await pool.end();
process.disconnect?.();
