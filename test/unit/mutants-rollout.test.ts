import { created, createOncekey, type OncekeyOptions } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { z } from "zod";

/** One release of an API: what it accepts as `a`, over a store that it shares with the others. */
async function release(store: MemoryStore, most: number, kind: "transaction" | "phases" = "transaction") {
  const options: OncekeyOptions<MemoryTransaction> = { store, waitMs: 0 };
  const once = createOncekey(options);
  let runs = 0;
  const answer = () => created("/orders/1", { run: ++runs });
  const definition = { name: "orders.create", version: 1, input: { body: z.object({ a: z.number().max(most) }) } };
  const operation =
    kind === "transaction"
      ? once.transaction({ ...definition, run: async () => answer() })
      : once.phases({ ...definition, run: (op) => op.complete(async () => answer()) });
  await once.start();
  const handle = idempotent(operation, { scope: () => ({ tenant: "acme", client: null }) });
  return async (text: string) => {
    const headers = { "idempotency-key": "k", "content-type": "application/json" };
    const response = await handle(new Request("http://api.test/orders", { method: "POST", headers, body: text }));
    return {
      status: response.status,
      replayed: response.headers.get("idempotent-replayed"),
      body: await response.text(),
    };
  };
}

describe.each(["transaction", "phases"] as const)("a retry after a deploy that tightened the schema (%s)", (kind) => {
  it("is replayed, though its input would be refused as a new one", async () => {
    const store = memoryStore();
    const before = await (await release(store, 100, kind))('{"a":50}');
    expect(before).toMatchObject({ status: 201, replayed: null });
    const post = await release(store, 5, kind);
    expect(await post('{"a":50}')).toEqual({ ...before, replayed: "true" });
    // Other bytes of the same request: no digest of the bytes helps.
    expect(await post('{ "a" : 5e1 }')).toEqual({ ...before, replayed: "true" });
  });

  it("is a mismatch where it was changed, valid or not", async () => {
    const store = memoryStore();
    await (await release(store, 100, kind))('{"a":50}');
    const post = await release(store, 5, kind);
    for (const changed of ['{"a":3}', '{"a":51}', '{"b":1}']) expect((await post(changed)).status).toBe(422);
  });
});
