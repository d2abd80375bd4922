/** One consumer process: takes deliveries in when its parent says so. Started by inbox-workers.ts. */
import { createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import { consumeOne } from "./inbox-effects.ts";
import type { FromInboxWorker, ToInboxWorker } from "./inbox-workers.ts";

const pool = new pg.Pool({ connectionString: process.env.WORKER_URL ?? "", max: 4 });
pool.on("error", () => {});

const tell = (message: FromInboxWorker) => process.send?.(message);
let holdAt: string | null = null;

/** A place that is held at is never left: the parent kills the process there. */
async function hold(place: string): Promise<void> {
  if (place !== holdAt) return;
  tell({ held: place });
  await new Promise<never>(() => {});
}

const store = postgresStore(fromPg(pool));
const once = createOncekey({ store, waitMs: 30_000, onError: () => {}, onPoint: hold });
await once.start();

process.on("message", (message: ToInboxWorker) => {
  holdAt = message.holdAt ?? null;
  consumeOne(once, message.delivery).then(
    (result) => tell({ id: message.id, kind: result.kind }),
    (error: unknown) => tell({ id: message.id, kind: String(error) }),
  );
});
tell({ ready: true });
