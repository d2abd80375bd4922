/** A Kafka endpoint as a process of its own, whose log is PostgreSQL. Started by kafka-append-workers.ts. */
import { createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import { startKafkaEndpoint } from "../../support/brokers/kafka-endpoint.ts";
import type { FromKafkaWorker, ToKafkaWorker } from "./kafka-append-workers.ts";
import { newProducerId, tableAppend } from "./kafka-log-table.ts";

const pool = new pg.Pool({ connectionString: process.env.WORKER_URL ?? "", max: 4 });
pool.on("error", () => {});

let dieAt: string | null = null;
const store = postgresStore(fromPg(pool));
const onPoint = (point: string) => {
  if (point === dieAt) process.kill(process.pid, "SIGKILL");
};
const once = createOncekey({ store, onError: () => {}, onPoint });
await once.start();

const port = Number(process.env.WORKER_PORT ?? 0);
const append = tableAppend(once);
const endpoint = await startKafkaEndpoint({ port, partitions: 1, append, newProducer: () => newProducerId(pool) });
const tell = (message: FromKafkaWorker) => process.send?.(message);
process.on("message", (message: ToKafkaWorker) => {
  dieAt = message.dieAt;
  tell({ armed: true });
});
tell({ ready: endpoint.port });
