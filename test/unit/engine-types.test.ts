import { type } from "arktype";
import { type CallArguments, type Completed, created, createOncekey, found, type Scope } from "oncekey";
import { type MemoryTransaction, memoryStore } from "oncekey/memory";
import * as v from "valibot";
import { describe, expectTypeOf, it } from "vitest";
import { z } from "zod";

const once = createOncekey({ store: memoryStore() });

describe("types flow from the store and the schemas into the operation", () => {
  it("hands the driver's own transaction and each validated part to a transaction's run", () => {
    once.transaction({
      name: "a",
      version: 1,
      input: {
        body: z.object({ amount: z.bigint() }),
        params: v.object({ id: v.string() }),
        query: type({ page: "number" }),
      },
      async run({ tx, input, scope }) {
        expectTypeOf(tx).toEqualTypeOf<MemoryTransaction>();
        expectTypeOf(input.body).toEqualTypeOf<{ amount: bigint }>();
        expectTypeOf(input.params).toEqualTypeOf<{ id: string }>();
        expectTypeOf(input.query).toEqualTypeOf<{ page: number }>();
        expectTypeOf(scope).toEqualTypeOf<Scope>();
        return created("/", {});
      },
    });
  });

  it("leaves a part without a schema unknown", () => {
    once.transaction({
      name: "b",
      version: 1,
      input: { body: z.string() },
      async run({ input }) {
        expectTypeOf(input.body).toEqualTypeOf<string>();
        expectTypeOf(input.params).toEqualTypeOf<unknown>();
        return created("/", {});
      },
    });
  });

  it("carries values through phases and calls, and demands op.complete", () => {
    once.phases({
      name: "c",
      version: 1,
      input: { body: z.object({ amount: z.number() }) },
      async run(op) {
        expectTypeOf(op.input.body).toEqualTypeOf<{ amount: number }>();
        const row = await op.phase("row", async ({ tx }) => {
          expectTypeOf(tx).toEqualTypeOf<MemoryTransaction>();
          return { id: "1" };
        });
        expectTypeOf(row).toEqualTypeOf<{ id: string }>();
        const auth = await op.call("authorize", {
          timeoutMs: 1,
          request: { id: row.id },
          run: async (call) => {
            expectTypeOf(call).toEqualTypeOf<CallArguments<{ id: string }>>();
            return { auth: 1 };
          },
          recover: { find: async () => found({ auth: 1 }), settlesWithinMs: 1 },
        });
        expectTypeOf(auth).toEqualTypeOf<{ auth: number }>();
        const end = op.complete(async () => created("/", {}));
        expectTypeOf(end).toEqualTypeOf<Promise<Completed>>();
        return end;
      },
    });
    // @ts-expect-error a phases operation must return op.complete()
    once.phases({ name: "d", version: 1, run: async () => {} });
  });

  it("demands one recovery form for a call", () => {
    once.phases({
      name: "e",
      version: 1,
      async run(op) {
        // @ts-expect-error recover is missing
        await op.call("x", { timeoutMs: 1, request: 1, run: async () => 1 });
        // @ts-expect-error find alone cannot tell that nothing is under way
        await op.call("y", { timeoutMs: 1, request: 1, run: async () => 1, recover: { find: async () => found(1) } });
        return op.complete(async () => created("/", {}));
      },
    });
  });
});
