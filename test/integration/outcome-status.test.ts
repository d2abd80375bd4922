import { createOncekey, reject } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { idempotent } from "oncekey/fetch";
import { postgresStore } from "oncekey/postgres";
import { describe, expect, it } from "vitest";
import { createDatabase, testPool } from "../support/postgres.ts";

const KEY = "a-key-that-no-log-may-show";
const scope = () => ({ tenant: "acme", client: null });

async function instance() {
  const { url } = await createDatabase();
  const pool = testPool(url);
  return { pool, once: createOncekey({ store: postgresStore(fromPg(pool)) }) };
}

/** All that a logger which prints an error's members would write. */
function printed(error: unknown): string {
  if (!(error instanceof Error)) return "";
  const members = Object.entries(error).map(([name, value]) => `${name}=${String(value)}`);
  return [error.message, ...members, printed(error.cause)].join("\n");
}

describe("a status that cannot be stored", () => {
  it("is refused in our own words, which show no key", async () => {
    const { once } = await instance();
    const operation = once.transaction({ name: "t", version: 1, run: async () => reject(700, {}) });
    await once.start();
    const error = await once.run(operation, { scope: scope(), key: KEY, input: {} }).catch((thrown: unknown) => thrown);
    expect(printed(error)).not.toContain(KEY);
    expect(error).toMatchObject({ code: "oncekey_response_invalid" });
  });

  it("leaves a captured key marked as unknown, not as running", async () => {
    const { once, pool } = await instance();
    const operation = once.capture({ name: "c", version: 1, reconcile: async () => ({ kind: "not_done" }) });
    await once.start();
    // Response refuses such a status, Node's own response object does not.
    const answer = { status: 700, statusText: "", headers: new Headers(), arrayBuffer: async () => new ArrayBuffer(0) };
    const handle = idempotent(operation, { scope }, async () => answer as unknown as Response);
    const request = new Request("http://localhost/", { method: "POST", headers: { "idempotency-key": KEY } });
    const error = await handle(request).catch((thrown: unknown) => thrown);
    expect(printed(error)).not.toContain(KEY);
    expect((await pool.query("SELECT state FROM oncekey.entry")).rows).toEqual([{ state: "needs_recovery" }]);
  });
});
