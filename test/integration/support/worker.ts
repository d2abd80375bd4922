/** One process of a fleet: runs orders when its parent says so. Started by workers.ts. */
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import { answerOf, type Order, orders, type Place } from "./orders.ts";
import type { FromWorker, ToWorker, WorkerSettings } from "./workers.ts";

const settings = JSON.parse(process.env.WORKER_SETTINGS ?? "{}") as WorkerSettings;
const pool = new pg.Pool({ connectionString: settings.url, max: settings.poolSize ?? 4 });
pool.on("error", () => {});
const driver = fromPg(pool);

const tell = (message: FromWorker) => process.send?.(message);

let holdAt: string | null = null;
let go = () => {};

/** Stays here until the parent says go, if it asked for that. */
async function hold(place: string): Promise<void> {
  if (place !== holdAt) return;
  holdAt = null;
  const opened = new Promise<void>((resolve) => {
    go = resolve;
  });
  tell({ held: place });
  await opened;
}

const fleet = await orders({
  driver,
  ...(settings.groups === undefined ? {} : { store: postgresStore(driver, { groups: settings.groups }) }),
  at: (place: Place, _order: Order) => hold(place),
  once: { leaseMs: settings.leaseMs ?? 30_000, waitMs: 30_000, onError: () => {}, onPoint: hold },
  ...(settings.maxDurationMs === undefined ? {} : { maxDurationMs: settings.maxDurationMs }),
});

process.on("message", (message: ToWorker) => {
  if ("go" in message) return go();
  if (message.holdAt !== undefined) holdAt = message.holdAt;
  const { id, kind, key, amount, waitMs } = message;
  fleet
    .run(kind, key, { ...(amount === undefined ? {} : { amount }), ...(waitMs === undefined ? {} : { waitMs }) })
    .then(
      (result) => tell({ id, kind: result.kind, answer: answerOf(result) }),
      (error: unknown) => tell({ id, kind: "threw", answer: String(error) }),
    );
});
tell({ ready: true });
