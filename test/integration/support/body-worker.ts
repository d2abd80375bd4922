/** A process that answers one long transaction, and is killed once its body is put and before it commits. */
import { createOncekey, json } from "oncekey";
import { fileBodyStore } from "oncekey/bodies/file";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";

const { url, directory } = JSON.parse(process.env.BODY_WORKER ?? "{}") as { url: string; directory: string };
const once = createOncekey({
  store: postgresStore(fromPg(new pg.Pool({ connectionString: url, max: 4 }))),
  bodyStore: fileBodyStore({ directory }),
  onPoint: (point) => {
    if (point === "put_body:after") process.kill(process.pid, "SIGKILL");
  },
});
const operation = once.transaction({
  name: "reports.create",
  version: 1,
  run: async () => json(201, { rows: "x".repeat(400_000) }),
});
await once.start();
await once.run(operation, { scope: { tenant: "acme", client: null }, key: "killed", input: {} });
