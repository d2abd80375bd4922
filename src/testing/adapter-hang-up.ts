import assert from "node:assert/strict";
import { ok } from "../index.ts";
import { type AdapterCase, type AdapterHarness, type AppOptions, hold, rawPost, serveApp } from "./adapter-harness.ts";
import { openRaw, openUnfinished } from "./raw-client.ts";

const group = "a client that hangs up";
const KINDS = ["transaction", "phases", "capture"] as const;

type Kind = (typeof KINDS)[number];
type OnPoint = (point: string) => void | Promise<void>;

function optionsOf(kind: Kind, onPoint: OnPoint): AppOptions {
  const settings = { onPoint };
  if (kind === "capture") return { settings, existing: { way: "json", text: async () => "done" } };
  return { settings, kind, run: async () => ok({ text: "done" }) };
}

/** All the stages of one request that runs: the points that the engine passes. */
async function stagesOf(harness: AdapterHarness, kind: Kind): Promise<string[]> {
  const stages: string[] = [];
  const app = await serveApp(
    harness,
    optionsOf(kind, (point) => void stages.push(point)),
  );
  assert.ok((await app.post()).status < 300);
  return stages;
}

async function hangsUpAt(harness: AdapterHarness, kind: Kind, stage: number): Promise<void> {
  const { held, letGo } = hold();
  let passed = -1;
  let reached = () => {};
  const there = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const app = await serveApp(
    harness,
    optionsOf(kind, async () => {
      passed++;
      if (passed !== stage) return;
      reached();
      await held;
    }),
  );
  const socket = openRaw(app.port, rawPost({}));
  await there;
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.destroy();
  await closed;
  letGo();
  const again = await app.post();
  assert.ok(again.status < 300, `${kind}, stage ${stage}: the retry got ${again.status} ${again.body}`);
  assert.equal(app.runs(), 1, `${kind}, stage ${stage}`);
  assert.notEqual((await app.entry("key-1"))?.completedAt ?? null, null, `${kind}, stage ${stage}`);
}

export const hangUpCases: readonly AdapterCase[] = [
  ...KINDS.map(
    (kind): AdapterCase => ({
      name: `leaves no key stuck and no effect unrecorded at any stage of a ${kind} operation`,
      group,
      async run(harness) {
        const stages = await stagesOf(harness, kind);
        assert.ok(stages.length > 1, "a request passes points");
        for (const stage of stages.keys()) await hangsUpAt(harness, kind, stage);
      },
    }),
  ),
  {
    name: "runs nothing of a request that never came to its end",
    group,
    async run(harness) {
      const app = await serveApp(harness, { run: async () => ok({}) });
      for (const part of ["head", "half of the body"] as const) {
        await openUnfinished(app.port, rawPost({ body: JSON.stringify({ text: "x".repeat(1_000) }) }), part);
      }
      assert.equal((await app.post()).status, 200);
      assert.equal(app.runs(), 1);
    },
  },
];
