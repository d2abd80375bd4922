import assert from "node:assert/strict";
import { ok, reject, StoreFailure } from "../index.ts";
import { memoryStore } from "../stores/memory/index.ts";
import { type AdapterCase, assertProblem, assertReplay, serveApp, valuesOf } from "./adapter-harness.ts";

const group = "access and errors";

export const accessCases: readonly AdapterCase[] = [
  {
    name: "leaves authentication the first word: 401 before the key is looked at, and instead of a replay",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}) });
      await app.post();
      const requests = [{ token: null, keys: [""], body: "{" }, { token: null }];
      for (const request of requests) {
        const answer = await app.post(request);
        assert.equal(answer.status, 401);
        assert.deepEqual(valuesOf(answer, "idempotent-replayed"), []);
      }
      assert.equal(app.runs(), 1);
    },
  },
  {
    name: "asks authorize on every attempt, replays included",
    group,
    async run(harness) {
      const says: { now: boolean | ReturnType<typeof reject> } = { now: true };
      const app = await serveApp(harness, { run: async () => ok({}), binding: { authorize: () => says.now } });
      const first = await app.post();
      says.now = false;
      const refused = await app.post();
      assert.equal(refused.status, 403);
      assert.deepEqual(valuesOf(refused, "content-type"), ["application/problem+json"]);
      says.now = reject(404, { code: "no_such_order" });
      const hidden = await app.post();
      assert.equal(hidden.status, 404);
      assert.equal((JSON.parse(hidden.body.toString()) as { code: string }).code, "no_such_order");
      says.now = true;
      assertReplay(first, await app.post());
      assert.equal(app.runs(), 1);
    },
  },
  {
    name: "keeps one key of other tenants, clients and operations apart",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}) });
      const requests = [{}, { token: "globex/app" }, { token: "acme/batch" }, { target: "/v1/others/7" }];
      for (const request of requests) assert.deepEqual(valuesOf(await app.post(request), "idempotent-replayed"), []);
      assert.equal(app.runs(), 4);
      for (const request of requests)
        assert.deepEqual(valuesOf(await app.post(request), "idempotent-replayed"), ["true"]);
      assert.equal(app.runs(), 4);
    },
  },
  {
    name: "compares the whole original path and the query, also behind routers of their own",
    group,
    async run(harness) {
      const app = await serveApp(harness, {
        run: async ({ input }) => ok({ params: input.params, query: input.query }),
        mounts: ["/v1", "/v2"],
      });
      const first = await app.post({ target: "/v1/orders/7?x=1&y=2" });
      assert.deepEqual(JSON.parse(first.body.toString()), { params: { id: "7" }, query: { x: "1", y: "2" } });
      const others = ["/v2/orders/7?x=1&y=2", "/v1/orders/8?x=1&y=2", "/v1/orders/7?x=1", "/v1/orders/7?x=1&y=3"];
      for (const target of others) {
        assert.equal((await app.post({ target })).status, 422, target);
      }
      assertReplay(first, await app.post({ target: "/v1/orders/7?y=2&x=1" }));
      assert.equal(app.runs(), 1);
    },
  },
  {
    name: "leaves a throw to the framework's error handling, stores nothing and keeps the key free",
    group,
    async run(harness) {
      const broken = { now: true };
      const app = await serveApp(harness, {
        run: async () => {
          if (broken.now) throw new Error("the business broke");
          return ok({});
        },
      });
      assert.equal((await app.post()).status, 500);
      assert.equal(await app.entry("key-1"), null);
      broken.now = false;
      assert.equal((await app.post()).status, 200);
      assert.equal(app.runs(), 2);
    },
  },
  {
    name: "replays a refusal of the operation, its own problem and status",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => reject(402, { code: "card_declined" }) });
      const first = await app.post();
      assert.equal(first.status, 402);
      assertReplay(first, await app.post());
    },
  },
  {
    name: "answers 503 with Retry-After while the store cannot be reached, and runs nothing",
    group,
    async run(harness) {
      const store = memoryStore();
      const down = () => Promise.reject(new StoreFailure("unavailable", "no connection"));
      const broken = { ...store, read: down, claim: down, transaction: down };
      const app = await serveApp(harness, { run: async () => ok({}), settings: { store: broken } });
      const refused = await app.post();
      assertProblem(refused, { status: 503, code: "idempotency_store_unavailable", retry: "same_key" });
      assert.match(valuesOf(refused, "retry-after").join(), /^[1-9]\d*$/);
      assert.equal(app.runs(), 0);
    },
  },
];
