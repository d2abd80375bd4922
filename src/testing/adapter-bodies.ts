import assert from "node:assert/strict";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { ok, stringifyJson } from "../index.ts";
import {
  type AdapterCase,
  type App,
  assertProblem,
  assertReplay,
  newKey,
  type Post,
  serveApp,
} from "./adapter-harness.ts";

const group = "bodies";

type Row = readonly [name: string, request: Partial<Post>];

const INVALID: readonly Row[] = [
  ["malformed JSON", { body: '{"a":1,}' }],
  ["trailing bytes", { body: '{"a":1}{' }],
  ["duplicate members", { body: '{"a":1,"a":2}' }],
  ["depth 10,000", { body: "[".repeat(10_000) + "]".repeat(10_000) }],
  ["an absurd exponent", { body: '{"a":1e999999999}' }],
  ["a lone surrogate", { body: '{"a":"\\ud800"}' }],
  ["U+0000", { body: '{"a":"\\u0000"}' }],
  ["invalid UTF-8", { body: Uint8Array.from([0x22, 0xff, 0x22]) }],
  ["gzip that is none", { headers: [["Content-Encoding", "gzip"]], body: "no gzip" }],
  ["a cut gzip", { headers: [["Content-Encoding", "gzip"]], body: gzipSync('{"amount":1}').subarray(0, 20) }],
  ["a malformed form", { type: "application/x-www-form-urlencoded", body: "a=%zz" }],
  ["a malformed path", { target: "/v1/orders/7?x=%zz" }],
];

const UNSUPPORTED: readonly Row[] = [
  ["an unknown coding", { headers: [["Content-Encoding", "compress"]] }],
  ["two codings", { headers: [["Content-Encoding", "gzip, gzip"]], body: gzipSync(gzipSync('{"a":1}')) }],
  ["another charset", { type: "application/json; charset=utf-16" }],
  ["another type", { type: "text/csv" }],
  ["no type", { type: null }],
];

const BOMB = gzipSync(new Uint8Array(5_000_000));

const TOO_LARGE: readonly Row[] = [
  ["a body of 2 MB", { body: `"${"x".repeat(2_000_000)}"` }],
  ["the same in chunks", { body: `"${"x".repeat(2_000_000)}"`, chunked: true }],
  ["a small body that unfolds", { headers: [["Content-Encoding", "gzip"]], body: BOMB }],
];

async function refusesAll(app: App, rows: readonly Row[], want: Parameters<typeof assertProblem>[1]): Promise<void> {
  for (const [name, request] of rows) {
    const key = newKey();
    const refused = await app.post({ ...request, keys: [key] });
    assert.equal(refused.status, want.status, `${name}: ${refused.body}`);
    assertProblem(refused, want);
    assert.equal(await app.entry(key), null, name);
    assert.equal(app.runs(), 0, name);
  }
}

export const bodyCases: readonly AdapterCase[] = [
  {
    name: "refuses bodies that cannot be read in one way only, and keeps the key free",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}) });
      await refusesAll(app, INVALID, { status: 400, code: "idempotency_request_invalid", retry: "same_key" });
      const key = newKey();
      assert.equal((await app.post({ keys: [key], body: "{" })).status, 400);
      assert.equal((await app.post({ keys: [key] })).status, 200);
    },
  },
  {
    name: "refuses unknown codings, charsets and media types with 415",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}) });
      await refusesAll(app, UNSUPPORTED, { status: 415, code: "idempotency_request_unsupported", retry: "same_key" });
    },
  },
  {
    name: "refuses bodies over the limit with 413, before and after decoding",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}) });
      await refusesAll(app, TOO_LARGE, { status: 413, code: "idempotency_request_too_large", retry: "same_key" });
    },
  },
  {
    name: "takes a coded body for what it decodes to",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async ({ input }) => ok(input.body) });
      const first = await app.post();
      const codings = { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync };
      for (const [coding, encode] of Object.entries(codings)) {
        assertReplay(first, await app.post({ headers: [["Content-Encoding", coding]], body: encode('{"amount":1}') }));
      }
      assert.equal(app.runs(), 1);
    },
  },
  {
    name: "compares JSON by value and hands numbers over without loss",
    group,
    async run(harness) {
      const types: string[] = [];
      const app = await serveApp(harness, {
        run: async ({ input }) => {
          types.push(typeof (input.body as { a: unknown }).a);
          return ok(input.body);
        },
      });
      const first = await app.post({ body: '{"a":9007199254740993,"b":1}' });
      assertReplay(
        first,
        await app.post({ body: ' {"b":1.0, "a":9007199254740993}\n', type: "Application/JSON; charset=UTF-8" }),
      );
      assert.equal(first.body.toString(), stringifyJson({ a: 9007199254740993n, b: 1 }));
      assert.equal((await app.post({ body: '{"a":9007199254740992,"b":1}' })).status, 422);
      assert.deepEqual(types, ["bigint"]);
    },
  },
  {
    name: "reads form bodies, and tells no body from an empty value",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async ({ input }) => ok({ body: input.body ?? "none" }) });
      const form = { type: "application/x-www-form-urlencoded", body: "a=1&m%5Bx%5D=2", keys: [newKey()] };
      const first = await app.post(form);
      assert.deepEqual(JSON.parse(first.body.toString()), { body: { a: "1", m: { x: "2" } } });
      assertReplay(first, await app.post({ ...form, body: "a=1&m[x]=2" }));
      const keys = [newKey()];
      const none = await app.post({ keys, body: "", type: null });
      assert.deepEqual(JSON.parse(none.body.toString()), { body: "none" });
      for (const body of ["{}", "null", "[]", '""']) assert.equal((await app.post({ keys, body })).status, 422, body);
      assertReplay(none, await app.post({ keys, body: "" }));
    },
  },
];
