import { createTRPCClient, httpBatchLink, httpLink, type TRPCClientError } from "@trpc/client";
import { initTRPC, TRPCError } from "@trpc/server";
import { createHTTPServer } from "@trpc/server/adapters/standalone";
import { createOncekey, ok, reject } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { idempotencyErrors, idempotent, idempotentMutation, type ValueTransformer } from "oncekey/trpc";
import { afterEach, describe, expect, it, vi } from "vitest";

interface Context {
  readonly headers: Headers;
}

const KEY = "idempotency-key";
const context = (key: string | null): Context => ({ headers: new Headers(key === null ? {} : { [KEY]: key }) });
const scope = () => ({ tenant: "acme", client: null });
const reconcile = async () => ({ kind: "unknown", why: "not asked" }) as const;
const t = initTRPC.context<Context>().create({ errorFormatter: idempotencyErrors });
const input = t.procedure.input((value: unknown) => value as { readonly n: number });

function started() {
  const once = createOncekey({ store: memoryStore(), onError: () => {} });
  const pay = once.capture({ name: "pay", version: 1, reconcile });
  const refund = once.capture({ name: "refund", version: 1, reconcile });
  return { once, pay, refund };
}

describe("values", () => {
  async function twice(value: unknown, transformer?: ValueTransformer) {
    const { once, pay } = started();
    const existing = vi.fn(() => value);
    const options = { scope, ...(transformer && { transformer }) };
    const router = t.router({ pay: t.procedure.use(idempotent(pay, options)).mutation(existing) });
    await once.start();
    const call = () => router.createCaller(context("k")).pay();
    const answers = [await call(), await call()];
    expect(existing).toHaveBeenCalledTimes(1);
    return answers;
  }

  it.each([
    [new Date(0)],
    [{ big: 2n ** 70n, at: new Date(5), deep: [{ none: undefined }] }],
    [undefined],
    [new Uint8Array([0, 255])],
    [-0],
    [{ $bigint: "1", ["__proto__"]: 1 }],
  ])("%o is the same on the replay", async (value) => {
    const [first, replay] = await twice(value);
    expect(first).toEqual(value);
    expect(replay).toStrictEqual(first);
  });

  it("takes what a transformer makes plain", async () => {
    const transformer: ValueTransformer = {
      serialize: (value) => (value instanceof Map ? { map: [...value] } : { plain: value ?? null }),
      deserialize: (form) => {
        const { map, plain } = form as { map?: [string, number][]; plain?: unknown };
        return map === undefined ? plain : new Map(map);
      },
    };
    const [first, replay] = await twice(new Map([["a", 1]]), transformer);
    expect(first).toEqual(new Map([["a", 1]]));
    expect(replay).toEqual(first);
  });
});

describe("an input that is nested too deeply", () => {
  const deep = (levels: number) =>
    JSON.parse(`${'{"n":['.repeat(levels)}1${"]}".repeat(levels)}`) as { readonly n: number };
  const copy = (value: unknown) => ({ value: JSON.parse(JSON.stringify(value)) as unknown });

  it.each([
    ["existing code", "pay", 50_000],
    ["an operation", "plain", 50_000],
    ["an operation whose schema copies it", "copying", 700],
  ] as const)("is refused as the client's fault, by %s", async (_, name, levels) => {
    const { once, pay } = started();
    const plain = once.transaction({ name: "plain", version: 1, run: async () => ok(1) });
    const body = { "~standard": { version: 1, vendor: "test", validate: copy } } as const;
    const copying = once.transaction({ name: "copying", version: 1, input: { body }, run: async () => ok(1) });
    const router = t.router({
      pay: input.use(idempotent(pay, { scope })).mutation(() => 1),
      plain: input.mutation(idempotentMutation(plain, { scope })),
      copying: input.mutation(idempotentMutation(copying, { scope })),
    });
    await once.start();
    const call = router.createCaller(context("k"))[name](deep(levels));
    await expect(call).rejects.toMatchObject({ code: "BAD_REQUEST" });
  });
});

describe("a batch", () => {
  let close = () => {};
  afterEach(() => close());

  async function shop() {
    const { once, pay, refund } = started();
    const ran: string[] = [];
    const mutation = (name: string, operation: typeof pay, key?: (call: { input: unknown }) => string) =>
      input.use(idempotent(operation, { scope, ...(key && { key }) })).mutation(({ input: { n } }) => {
        ran.push(`${name} ${n}`);
        return { name, n };
      });
    const router = t.router({
      pay: mutation("pay", pay),
      refund: mutation("refund", refund),
      payToo: mutation("payToo", pay),
      keyed: mutation("keyed", pay, ({ input: given }) => `k${(given as { n: number }).n}`),
    });
    await once.start();
    const server = createHTTPServer({
      router,
      createContext: ({ req }) => ({ headers: new Headers(req.headers as Record<string, string>) }),
    });
    const bare = createHTTPServer({ router, createContext: ({ req }) => req as never });
    await Promise.all([server, bare].map((s) => new Promise<void>((resolve) => s.listen(0, "127.0.0.1", resolve))));
    close = () => [server, bare].forEach((s) => void s.close());
    const urlOf = (s: typeof server) => `http://127.0.0.1:${(s.address() as { port: number }).port}`;
    const client = (url = urlOf(server), link = httpBatchLink) =>
      createTRPCClient<typeof router>({ links: [link({ url, headers: { [KEY]: "k" } })] });
    return { client, ran, httpOf: urlOf(bare) };
  }

  const codeOf = (result: PromiseSettledResult<unknown>) =>
    result.status === "rejected" ? (result.reason as TRPCClientError<never>).shape : result.value;
  const refusedKey = expect.objectContaining({
    data: expect.objectContaining({
      code: "BAD_REQUEST",
      idempotency: { code: "idempotency_key_invalid", retry: "new_key", state: "none" },
    }),
  });

  it("may hold different operations under one key, each replayed for itself", async () => {
    const { client, ran } = await shop();
    const both = () => Promise.all([client().pay.mutate({ n: 1 }), client().refund.mutate({ n: 1 })]);
    const first = await both();
    expect(first).toEqual([
      { name: "pay", n: 1 },
      { name: "refund", n: 1 },
    ]);
    expect(await both()).toEqual(first);
    expect(ran.toSorted()).toEqual(["pay 1", "refund 1"]);
  });

  it.each([1, 2])("that calls one mutation twice under one key is refused, the second with n = %d", async (n) => {
    const { client, ran, httpOf } = await shop();
    const { pay } = client(httpOf);
    const results = await Promise.allSettled([pay.mutate({ n: 1 }), pay.mutate({ n })]);
    expect(results.map(codeOf)).toEqual([refusedKey, refusedKey]);
    expect(ran).toEqual([]);
  });

  it("that calls one operation by two paths, or hides its address from us, has its later call refused", async () => {
    const { client, ran, httpOf } = await shop();
    const { pay, payToo } = client(httpOf);
    const paths = await Promise.allSettled([pay.mutate({ n: 1 }), payToo.mutate({ n: 1 })]);
    expect(paths.map(codeOf)).toEqual([{ name: "pay", n: 1 }, refusedKey]);
    const { refund } = client();
    const hidden = await Promise.allSettled([refund.mutate({ n: 1 }), refund.mutate({ n: 1 })]);
    expect(hidden.map(codeOf)).toEqual([{ name: "refund", n: 1 }, refusedKey]);
    expect(ran).toEqual(["pay 1", "refund 1"]);
  });

  it("may call one mutation often where each call has its own key", async () => {
    const { client, ran } = await shop();
    const { keyed } = client();
    const results = await Promise.all([keyed.mutate({ n: 1 }), keyed.mutate({ n: 2 }), keyed.mutate({ n: 1 })]);
    expect(results.map(({ n }) => n)).toEqual([1, 2, 1]);
    expect(ran.toSorted()).toEqual(["keyed 1", "keyed 2"]);
  });

  it("of one is a call like any other", async () => {
    const { client, ran } = await shop();
    const first = await client().pay.mutate({ n: 1 });
    expect(await client(undefined, httpLink as never).pay.mutate({ n: 1 })).toEqual(first);
    expect(ran).toEqual(["pay 1"]);
  });

  it("keeps two pieces of existing code behind one operation apart", async () => {
    const { client, ran } = await shop();
    await client().pay.mutate({ n: 1 });
    const error = await client()
      .payToo.mutate({ n: 1 })
      .catch((thrown: unknown) => thrown);
    expect((error as TRPCClientError<never>).data).toMatchObject({
      code: "UNPROCESSABLE_CONTENT",
      idempotency: { code: "idempotency_payload_mismatch" },
    });
    expect(ran).toEqual(["pay 1"]);
  });
});

describe("the procedure around it", () => {
  it("runs what comes before on every attempt, and what comes after once", async () => {
    const { once, pay } = started();
    const seen: string[] = [];
    const router = t.router({
      pay: t.procedure
        .use(({ next }) => {
          seen.push("before");
          return next({ ctx: { user: "ann" } });
        })
        .use(idempotent(pay, { scope: ({ ctx }) => ({ tenant: (ctx as { user: string }).user, client: null }) }))
        .use(({ next }) => {
          seen.push("after");
          return next();
        })
        .mutation(({ ctx }) => ctx.user),
    });
    await once.start();
    const call = () => router.createCaller(context("k")).pay();
    expect([await call(), await call()]).toEqual(["ann", "ann"]);
    expect(seen).toEqual(["before", "after", "before"]);
  });

  it("stores nothing of an input that validation refuses", async () => {
    const { once, pay } = started();
    const positive = t.procedure.input((value) => {
      if ((value as { n: number }).n > 0) return value as { n: number };
      throw new Error("n must be positive");
    });
    const router = t.router({ pay: positive.use(idempotent(pay, { scope })).mutation((call) => call.input.n) });
    await once.start();
    await expect(router.createCaller(context("k")).pay({ n: 0 })).rejects.toMatchObject({ code: "BAD_REQUEST" });
    expect(await router.createCaller(context("k")).pay({ n: 1 })).toBe(1);
  });

  it.each([401, 408])("may count status %d among those that free the key", async (status) => {
    const once = createOncekey({ store: memoryStore(), onError: () => {} });
    const pay = once.capture({ name: "pay", version: 1, reconcile, notBegun: [status] });
    const code = status === 401 ? "UNAUTHORIZED" : "TIMEOUT";
    const existing = vi.fn().mockRejectedValueOnce(new TRPCError({ code })).mockResolvedValue("paid");
    const router = t.router({ pay: t.procedure.use(idempotent(pay, { scope })).mutation(existing) });
    await once.start();
    await expect(router.createCaller(context("k")).pay()).rejects.toMatchObject({ code });
    expect(await router.createCaller(context("k")).pay()).toBe("paid");
  });

  it("gives an error's own data again, and never its cause", async () => {
    class LimitError extends TRPCError {
      readonly limit = 5;
      readonly connection = new Map();
    }
    const { once, pay } = started();
    const existing = vi.fn(async () => {
      throw new LimitError({ code: "PAYMENT_REQUIRED", message: "Too much", cause: new Error("secret") });
    });
    const router = t.router({ pay: t.procedure.use(idempotent(pay, { scope })).mutation(existing) });
    await once.start();
    const call = () =>
      router
        .createCaller(context("k"))
        .pay()
        .catch((error: unknown) => error);
    const [first, replay] = [await call(), await call()];
    expect(first).toBeInstanceOf(LimitError);
    expect(replay).toMatchObject({ name: "TRPCError", code: "PAYMENT_REQUIRED", message: "Too much", limit: 5 });
    expect(replay).not.toHaveProperty("connection");
    expect(replay).not.toHaveProperty("cause");
    expect(existing).toHaveBeenCalledTimes(1);
  });

  it("runs a call without a key for itself where none is required", async () => {
    const { once, pay } = started();
    const existing = vi.fn(() => "paid");
    const options = { scope, requireKey: false };
    const router = t.router({ pay: t.procedure.use(idempotent(pay, options)).mutation(existing) });
    await once.start();
    const caller = router.createCaller(context(null));
    expect([await caller.pay(), await caller.pay()]).toEqual(["paid", "paid"]);
    expect(existing).toHaveBeenCalledTimes(2);
  });

  it("asks authorize without a key as well, and takes an answer that is meant for HTTP for a refusal", async () => {
    const { once, pay } = started();
    const existing = vi.fn(() => "paid");
    const http = (() => reject(404, {})) as unknown as () => boolean;
    const [keyless, rejecting] = [
      { scope, requireKey: false, authorize: () => false },
      { scope, authorize: http },
    ];
    const router = t.router({
      keyless: t.procedure.use(idempotent(pay, keyless)).mutation(existing),
      rejecting: t.procedure.use(idempotent(pay, rejecting)).mutation(existing),
    });
    await once.start();
    await expect(router.createCaller(context(null)).keyless()).rejects.toMatchObject({ code: "FORBIDDEN" });
    await expect(router.createCaller(context("k")).rejecting()).rejects.toMatchObject({ code: "FORBIDDEN" });
    expect(existing).not.toHaveBeenCalled();
  });

  it.each([{ "Idempotency-Key": "k" }, { "IDEMPOTENCY-KEY": ["k"] }])(
    "finds the key in headers that are a plain object, as its host wrote their names: %o",
    async (headers) => {
      const { once, pay } = started();
      const existing = vi.fn(() => "paid");
      const options = { scope, requireKey: false };
      const router = t.router({ pay: t.procedure.use(idempotent(pay, options)).mutation(existing) });
      await once.start();
      const call = () => router.createCaller({ headers: { ...headers } } as never).pay();
      expect([await call(), await call()]).toEqual(["paid", "paid"]);
      expect(existing).toHaveBeenCalledTimes(1);
    },
  );

  it("refuses queries, and a context without headers, as a developer's mistake", async () => {
    const { once, pay } = started();
    const run = once.transaction({ name: "run", version: 1, run: async () => ok(1) });
    const causes: unknown[] = [];
    const router = t.router({
      wrapped: t.procedure.use(idempotent(pay, { scope })).query(() => 1),
      run: t.procedure.query(idempotentMutation(run, { scope })),
      fine: t.procedure.mutation(idempotentMutation(run, { scope })),
    });
    await once.start();
    const caller = router.createCaller(context("k"));
    const lost = router.createCaller({} as Context);
    for (const call of [caller.wrapped, caller.run, lost.fine]) {
      await call().catch((error: TRPCError) => causes.push(error.cause?.cause));
    }
    expect(causes).toEqual(Array(3).fill(expect.objectContaining({ code: "oncekey_config_invalid" })));
  });

  it("refuses a second call under the header of one connection", async () => {
    const { once, pay } = started();
    const router = t.router({ pay: t.procedure.use(idempotent(pay, { scope })).mutation(() => "paid") });
    await once.start();
    const connection = router.createCaller(context("k"));
    expect(await connection.pay()).toBe("paid");
    await expect(connection.pay()).rejects.toMatchObject({ code: "BAD_REQUEST" });
  });

  it("tells clients tRPC's own code without the formatter", async () => {
    const { once, pay } = started();
    const bare = initTRPC.context<Context>().create();
    const router = bare.router({ pay: bare.procedure.use(idempotent(pay, { scope })).mutation(() => 1) });
    await once.start();
    await expect(router.createCaller(context(null)).pay()).rejects.toMatchObject({ code: "BAD_REQUEST" });
  });

  it("reads an operation's answer by its media type, and into the mutation's own type", async () => {
    const once = createOncekey({ store: memoryStore() });
    const run = once.transaction({
      name: "run",
      version: 1,
      run: async ({ input: { body } }) => ok({ body, big: 2n ** 60n, nul: "\0" }),
    });
    const read = (answer: unknown) => (answer as { big: bigint }).big;
    const router = t.router({
      whole: input.mutation(idempotentMutation(run, { scope })),
      read: input.mutation(idempotentMutation(run, { scope, read })),
    });
    await once.start();
    expect(await router.createCaller(context("a")).whole({ n: 1 })).toEqual({
      body: { n: 1 },
      big: 2n ** 60n,
      nul: "\0",
    });
    const big: bigint = await router.createCaller(context("a")).read({ n: 1 });
    expect(big).toBe(2n ** 60n);
  });
});
