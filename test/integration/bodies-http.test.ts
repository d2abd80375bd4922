import { createHash, randomBytes } from "node:crypto";
import { readdir, readlink } from "node:fs/promises";
import { createOncekey } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { memoryStore } from "oncekey/memory";
import { expect, it, vi } from "vitest";
import { gate } from "../support/gate.ts";
import { memoryBodies } from "../support/memory-bodies.ts";

process.removeAllListeners("warning");

const WAIT = { timeout: 30_000, interval: 20 };
const digest = (bytes: ArrayBuffer | Uint8Array) => createHash("sha256").update(new Uint8Array(bytes)).digest("hex");

/** Temporary files without a name that this process holds open. */
async function heldFiles(): Promise<number> {
  const numbers = await readdir("/proc/self/fd");
  const targets = await Promise.all(numbers.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
  return targets.filter((target) => target.includes("oncekey-")).length;
}

it("a long captured answer reaches 50 duplicates and 50 replays byte for byte, and clients that leave hold nothing", async () => {
  const bodyStore = memoryBodies();
  const encryptionKeys = [{ id: 1, key: new Uint8Array(32).fill(1) }];
  const once = createOncekey({ store: memoryStore(), bodyStore, encryptionKeys, waitMs: 30_000, onError: () => {} });
  const operation = once.capture({ name: "reports.create", version: 1 });
  await once.start();
  const bytes = new Uint8Array(randomBytes(3_000_000));
  const entered = gate();
  const finish = gate();
  let runs = 0;
  const app = idempotent(operation, { scope: () => ({ tenant: "acme", client: null }) }, async () => {
    runs++;
    entered.open();
    await finish.promise;
    return new Response(bytes, { status: 201, headers: { "content-type": "application/octet-stream" } });
  });
  const send = () =>
    app(new Request("http://localhost/reports", { method: "POST", headers: { "idempotency-key": "k" }, body: "{}" }));
  const first = send();
  await entered.promise;
  const racing = [first, ...Array.from({ length: 49 }, send)];
  finish.open();
  const answers = await Promise.all(racing);
  // The last ones leave without reading.
  for (const response of answers.splice(40)) await response.body?.cancel();
  for (const response of answers) {
    expect(response.status).toBe(201);
    expect(digest(await response.arrayBuffer())).toBe(digest(bytes));
  }
  const marks = answers.map(({ headers }) => headers.get("idempotent-replayed"));
  expect(marks.filter((mark) => mark === "true")).toHaveLength(39);
  await vi.waitUntil(async () => (await heldFiles()) === 0, WAIT);
  const replays = await Promise.all(Array.from({ length: 50 }, send));
  for (const response of replays.splice(25)) await response.body?.cancel();
  for (const response of replays) expect(digest(await response.arrayBuffer())).toBe(digest(bytes));
  await vi.waitUntil(async () => (await heldFiles()) === 0, WAIT);
  expect(runs).toBe(1);
  expect(bodyStore.objects.size).toBe(1);
});
