import assert from "node:assert/strict";
import { ok } from "../index.ts";
import { type AdapterCase, assertProblem, assertReplay, serveApp } from "./adapter-harness.ts";

const group = "keys";

const MALFORMED: Readonly<Record<string, readonly string[]>> = {
  empty: [""],
  "an empty quoted string": ['""'],
  spaces: ["   "],
  "quoted spaces": ['"   "'],
  "256 characters": ["k".repeat(256)],
  "raw UTF-8 bytes": [Buffer.from("ключ").toString("latin1")],
  "an emoji": [Buffer.from("\u{1f600}").toString("latin1")],
  "a tab inside": ["a\tb"],
  "a space inside": ["a b"],
  "two lines": ["a", "b"],
  "two equal lines": ["a", "a"],
  "a comma": ["a,b"],
  "a comma inside quotes": ['"a,b"'],
  "a parameter": ['"a";x=1'],
  "an unfinished quote": ['"a'],
};

export const keyCases: readonly AdapterCase[] = [
  {
    name: "refuses a missing key, and every malformed one, before anything is stored",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}) });
      const missing = await app.post({ keys: [] });
      assertProblem(missing, { status: 400, code: "idempotency_key_missing", retry: "new_key" });
      for (const [name, keys] of Object.entries(MALFORMED)) {
        const refused = await app.post({ keys });
        assert.equal(refused.status, 400, name);
        assertProblem(refused, { status: 400, code: "idempotency_key_invalid", retry: "new_key" });
        for (const key of keys) assert.equal(await app.entry(key), null, name);
      }
      assert.equal(app.runs(), 0);
    },
  },
  {
    name: "never runs an operation for a key with a NUL byte",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}) });
      const refused = await app.post({ keys: ["a\0b"] });
      assert.equal(refused.status, 400);
      assert.equal(app.runs(), 0);
    },
  },
  {
    name: "takes the quoted and the bare form for one key",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}) });
      assertReplay(await app.post({ keys: ['"k-1"'] }), await app.post({ keys: ["k-1"] }));
      assert.notEqual(await app.entry("k-1"), null);
      await app.post({ keys: ["K-1"] });
      assert.equal(app.runs(), 2, "the value is case-sensitive");
    },
  },
  {
    name: "runs each request without a key where none is required, and never an empty key unprotected",
    group,
    async run(harness) {
      for (const app of [
        await serveApp(harness, { run: async () => ok({}), binding: { requireKey: false } }),
        await serveApp(harness, {
          existing: { way: "json", text: async () => "x" },
          binding: { requireKey: false },
        }),
      ]) {
        const answers = [await app.post({ keys: [] }), await app.post({ keys: [] })];
        assert.equal(app.runs(), 2);
        for (const { status } of answers) assert.ok(status === 200 || status === 201);
        assert.equal((await app.post({ keys: [" "] })).status, 400);
        assert.equal(app.runs(), 2);
      }
    },
  },
];
