import assert from "node:assert/strict";
import { noContent, type OperationResponse, ok, respond } from "../index.ts";
import {
  type AdapterCase,
  assertProblem,
  assertReplay,
  hold,
  newKey,
  serveApp,
  until,
  valuesOf,
} from "./adapter-harness.ts";

const group = "replay";
const BINARY = Uint8Array.from({ length: 512 }, (_, at) => at % 256);

const ANSWERS: Readonly<Record<string, () => OperationResponse>> = {
  json: () => ok({ text: "Санкт \u{1f600}", amount: 9007199254740993n }),
  text: () => respond(200, '<p>"x"</p>', { "content-type": "text/html; charset=utf-8" }),
  binary: () => respond(201, BINARY, { "content-type": "application/octet-stream" }),
  untyped: () => respond(200, BINARY),
  empty: () => respond(200, null, { "content-type": "text/plain" }),
  none: () => noContent(),
  notModified: () => respond(304, null, { etag: '"1"' }),
};

export const replayCases: readonly AdapterCase[] = [
  {
    name: "replays JSON, text, binary, untyped, empty and bodyless answers byte for byte",
    group,
    async run(harness) {
      const app = await serveApp(harness, {
        run: async ({ input }) => (ANSWERS[(input.body as { as: string }).as] as () => OperationResponse)(),
      });
      for (const as of Object.keys(ANSWERS)) {
        const request = { keys: [newKey()], body: JSON.stringify({ as }) };
        const first = await app.post(request);
        const again = await app.post(request);
        assertReplay(first, again);
        const want = (ANSWERS[as] as () => OperationResponse)();
        assert.equal(first.status, want.status, as);
        assert.equal(Buffer.compare(first.body, want.body), 0, as);
        for (const answer of [first, again]) {
          const bodyless = want.status === 204 || want.status === 304;
          const types = want.headers.filter(([name]) => name === "content-type").map(([, value]) => value);
          if (types.length === 0 && !bodyless && harness.untypedAs !== undefined) types.push(harness.untypedAs);
          assert.deepEqual(valuesOf(answer, "content-type"), types, as);
          assert.deepEqual(valuesOf(answer, "content-length"), bodyless ? [] : [String(want.body.length)], as);
        }
      }
      assert.equal(app.runs(), Object.keys(ANSWERS).length);
    },
  },
  {
    name: "replays allowed headers, keeps the others and both cookies to the caller that ran the operation",
    group,
    async run(harness) {
      const headers = {
        location: "/v1/orders/9",
        etag: '"v1"',
        link: ["</a>; rel=next", "</b>; rel=prev"],
        "x-allowed": "yes",
        "x-private": "no",
        "set-cookie": ["a=1; Path=/", "b=2; Path=/"],
      };
      const app = await serveApp(harness, {
        run: async () => ok({}, headers),
        definition: { replayHeaders: ["X-Allowed"] },
      });
      const first = await app.post();
      const again = await app.post();
      assertReplay(first, again);
      assert.deepEqual(valuesOf(first, "set-cookie"), ["a=1; Path=/", "b=2; Path=/"]);
      assert.deepEqual(valuesOf(first, "x-private"), ["no"]);
      assert.deepEqual(valuesOf(again, "set-cookie"), []);
      assert.deepEqual(valuesOf(again, "x-private"), []);
      for (const answer of [first, again]) {
        assert.deepEqual(valuesOf(answer, "location"), ["/v1/orders/9"]);
        assert.deepEqual(valuesOf(answer, "etag"), ['"v1"']);
        assert.deepEqual(valuesOf(answer, "x-allowed"), ["yes"]);
        assert.equal(valuesOf(answer, "link").join(", "), "</a>; rel=next, </b>; rel=prev");
      }
    },
  },
  {
    name: "marks replays only, whatever client and handler say",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}, { "idempotent-replayed": "true" }) });
      const headers = [["Idempotent-Replayed", "true"]] as const;
      assertReplay(await app.post({ headers }), await app.post({ headers }));
      assert.equal(app.runs(), 1);
    },
  },
  ...(["transaction", "phases", "capture"] as const).map(
    (kind): AdapterCase => ({
      name: `runs a ${kind} operation once for 50 concurrent requests and gives all of them one answer`,
      group,
      async run(harness) {
        const business = async () => {
          await new Promise((resolve) => setTimeout(resolve, 50));
          return newKey();
        };
        const app = await serveApp(
          harness,
          kind === "capture"
            ? { existing: { way: "json", text: business } }
            : { kind, run: async () => ok({ text: await business() }) },
        );
        const answers = await Promise.all(Array.from({ length: 50 }, () => app.post()));
        assert.equal(app.runs(), 1);
        assert.equal(new Set(answers.map(({ status, body }) => `${status} ${body}`)).size, 1);
        assert.equal(answers.filter((answer) => valuesOf(answer, "idempotent-replayed").length === 0).length, 1);
      },
    }),
  ),
  {
    name: "refuses another payload under a key at once, while the first request runs and after it",
    group,
    async run(harness) {
      const { held, letGo } = hold();
      const app = await serveApp(harness, { run: () => held.then(() => ok({ done: true })) });
      const first = app.post();
      await until(() => app.runs() === 1);
      const other = { body: '{"amount":2}' };
      const want = { status: 422, code: "idempotency_payload_mismatch", retry: "new_key" } as const;
      const during = await app.post(other);
      letGo();
      const answer = await first;
      const after = await app.post(other);
      for (const refused of [during, after]) {
        const { state } = JSON.parse(refused.body.toString()) as { state: string };
        assertProblem(refused, { ...want, state });
      }
      assertReplay(answer, await app.post());
      assert.equal(app.runs(), 1);
    },
  },
  {
    name: "answers 409 with Retry-After where the first request outlasts the wait",
    group,
    async run(harness) {
      const { held, letGo } = hold();
      const app = await serveApp(harness, { run: () => held.then(() => ok({})), settings: { waitMs: 30 } });
      const first = app.post();
      await until(() => app.runs() === 1);
      const waited = await app.post();
      letGo();
      assertProblem(waited, {
        status: 409,
        code: "idempotency_in_progress",
        retry: "same_key",
        state: "in_progress",
      });
      assert.match(valuesOf(waited, "retry-after").join(), /^[1-9]\d*$/);
      assertReplay(await first, await app.post());
    },
  },
  {
    name: "publishes the retention in seconds where asked to",
    group,
    async run(harness) {
      const settings = { publishRetention: true, retentionMs: 90_000_000 };
      const app = await serveApp(harness, { run: async () => ok({}), settings });
      const answers = [await app.post(), await app.post(), await app.post({ keys: [] })];
      for (const answer of answers) assert.deepEqual(valuesOf(answer, "idempotency-retention"), ["90000"]);
    },
  },
];
