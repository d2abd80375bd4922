import assert from "node:assert/strict";
import {
  type AdapterCase,
  assertProblem,
  assertReplay,
  hold,
  newKey,
  rawPost,
  serveApp,
  until,
  valuesOf,
} from "./adapter-harness.ts";
import { openRaw } from "./raw-client.ts";

const group = "capture";
const UNKNOWN = {
  status: 409,
  code: "idempotency_outcome_unknown",
  retry: "same_key",
  state: "needs_recovery",
} as const;

export const captureCases: readonly AdapterCase[] = [
  {
    name: "replays an existing handler in whatever way it answers",
    group,
    async run(harness) {
      for (const way of ["json", "text", ...harness.ways]) {
        const app = await serveApp(harness, { existing: { way, text: async () => `Санкт ${newKey()}` } });
        const first = await app.post();
        const again = await app.post();
        assert.ok(first.status < 400, `${way} answered ${first.status}: ${first.body}`);
        assert.equal(app.runs(), 1, `${way} ran ${app.runs()} times`);
        assert.equal(Buffer.compare(again.body, first.body), 0, `${way} was replayed with other bytes`);
        assertReplay(first, again);
        for (const name of first.body.length > 0 ? ["content-type", "location"] : ["location"]) {
          assert.deepEqual(valuesOf(again, name), valuesOf(first, name), `${way}: ${name}`);
        }
        assert.deepEqual(valuesOf(again, "content-encoding"), [], way);
        assert.deepEqual(valuesOf(again, "set-cookie"), [], way);
      }
    },
  },
  {
    name: "hands the body over to an existing handler",
    group,
    async run(harness) {
      const seen: unknown[] = [];
      const text = async (body: unknown) => {
        seen.push(body);
        return "ok";
      };
      const app = await serveApp(harness, { existing: { way: "json", text } });
      assert.equal((await app.post({ keys: [newKey()], body: '{"a":{"b":[1.5,"x"]}}' })).status, 201);
      assert.deepEqual(seen, [{ a: { b: [1.5, "x"] } }]);
    },
  },
  {
    name: "refuses numbers that an existing handler would see changed, unless the route allows them",
    group,
    async run(harness) {
      const request = { body: '{"a":9007199254740993}' };
      const existing = { way: "json", text: async () => "ok" };
      const strict = await serveApp(harness, { existing });
      assertProblem(await strict.post(request), {
        status: 400,
        code: "idempotency_request_invalid",
        retry: "same_key",
      });
      assert.equal(strict.runs(), 0);
      const lax = await serveApp(harness, { existing, binding: { allowUnsafeNumbers: true } });
      assert.equal((await lax.post(request)).status, 201);
    },
  },
  {
    name: "frees the key where a handler answers that it did not begin",
    group,
    async run(harness) {
      const app = await serveApp(harness, { existing: { way: "429", text: async () => "slow down" } });
      for (const attempt of [1, 2]) {
        const refused = await app.post();
        assert.equal(refused.status, 429);
        assert.deepEqual(valuesOf(refused, "idempotent-replayed"), []);
        assert.equal(app.runs(), attempt);
      }
      assert.equal(await app.entry("key-1"), null);
    },
  },
  ...(["500", "throw"] as const).map(
    (way): AdapterCase => ({
      name: `answers 500 once and "unknown" afterwards where a handler ends by ${way === "500" ? "a 500" : "a throw"}`,
      group,
      async run(harness) {
        const app = await serveApp(harness, { existing: { way, text: async () => "broken" } });
        assert.equal((await app.post()).status, 500);
        const again = await app.post();
        assertProblem(again, UNKNOWN);
        assert.match(valuesOf(again, "retry-after").join(), /^[1-9]\d*$/);
        assert.equal((await app.entry("key-1"))?.state, "needs_recovery");
        assert.equal(app.runs(), 1);
      },
    }),
  ),
  {
    name: "refuses an event stream at its first byte and stores no half answer",
    group,
    async run(harness) {
      const app = await serveApp(harness, { existing: { way: "eventStream", text: async () => "tick" } });
      const refused = await app.post();
      assert.equal(refused.status, 500);
      assert.ok(!refused.body.toString().includes("tick"));
      assertProblem(await app.post(), UNKNOWN);
      assert.equal((await app.entry("key-1"))?.outcome ?? null, null);
      assert.equal(app.runs(), 1);
    },
  },
  {
    name: "runs on when the client goes away, and stores the answer",
    group,
    async run(harness) {
      for (const way of ["json", "text", ...harness.ways]) {
        const { held, letGo } = hold();
        const app = await serveApp(harness, { existing: { way, text: () => held.then(() => "stored") } });
        const socket = openRaw(app.port, rawPost({}));
        await until(() => app.runs() === 1);
        const closed = new Promise((resolve) => socket.once("close", resolve));
        socket.destroy();
        await closed;
        letGo();
        await until(async () => (await app.entry("key-1"))?.completedAt != null);
        const again = await app.post();
        assert.deepEqual(valuesOf(again, "idempotent-replayed"), ["true"], way);
        assert.equal(app.runs(), 1, way);
      }
    },
  },
];
