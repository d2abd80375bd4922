import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readlink, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3 } from "@aws-sdk/client-s3";
import { type BodyStore, createOncekey, respond } from "oncekey";
import { fileBodyStore } from "oncekey/bodies/file";
import { s3BodyStore } from "oncekey/bodies/s3";
import { memoryStore } from "oncekey/memory";
import { createSweeper } from "oncekey/sweeper";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import { inChunks, memoryBodies } from "../support/memory-bodies.ts";

const POINTER = `${"ab".repeat(32)}/${"cd".repeat(16)}`;
/** Compresses by half: what is left is still longer than what stays in memory. */
const text = new TextEncoder().encode(randomBytes(400_000).toString("hex"));

/** What this process has open, by the end of its name. */
async function open(ending: RegExp): Promise<number> {
  const names = await readdir("/proc/self/fd");
  const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => "")));
  return targets.filter((target) => ending.test(target)).length;
}
const namelessFiles = () => open(/oncekey-[0-9a-f]{32} \(deleted\)$/);

/** An instance whose operation answers more than fits into a row. */
async function world(bodyStore: BodyStore, retentionMs = 86_400_000) {
  const time = fakeClock();
  const told: unknown[] = [];
  const once = createOncekey({
    store: memoryStore({ clock: time.now }),
    clock: time.clock,
    onError: (error) => told.push(error),
    bodyStore,
    retentionMs,
  });
  const report = once.transaction({ name: "reports.create", version: 1, run: async () => respond(201, text) });
  await once.start();
  const scope = { tenant: "acme", client: null };
  return {
    time,
    told,
    sweeper: createSweeper(once),
    run: (key = "k") => time.advanceUntil(once.run(report, { scope, key, input: {} })),
  };
}

describe("a body store that hangs", () => {
  it("while it removes holds up neither a round of the sweeper nor its end", async () => {
    const bodyStore = memoryBodies();
    const { time, told, sweeper, run } = await world(bodyStore);
    for (const key of ["a", "b", "c"]) await run(key);
    await time.advance(3 * 86_400_000);
    let asked = 0;
    bodyStore.remove = () => {
      asked++;
      return new Promise(() => {});
    };
    const { purged } = await time.advanceUntil(sweeper.runOnce());
    await time.advance(600_000);
    // One that hangs is not asked for the next one: each would take as long.
    const before = asked;
    expect(await time.advanceUntil(sweeper.runOnce())).toMatchObject({ removedBodies: 0 });
    expect({ purged, asked: asked - before }).toEqual({ purged: 3, asked: 1 });
    expect(told.length).toBeGreaterThan(0);

    await time.advance(600_000);
    const stop = new AbortController();
    const running = sweeper.run(stop.signal);
    const seen = asked;
    await vi.waitFor(async () => {
      await time.advance(1);
      expect(asked).toBeGreaterThan(seen);
    });
    const toldBefore = told.length;
    stop.abort();
    await time.advanceUntil(running, 10, 1_000);
    expect(told).toHaveLength(toldBefore);

    bodyStore.remove = memoryBodies().remove;
    await time.advance(1_200_000);
    expect(await time.advanceUntil(sweeper.runOnce())).toMatchObject({ removedBodies: 3 });
  });

  it("while it takes a body is left with nothing of it open", async () => {
    const bodyStore = memoryBodies();
    const { run } = await world(bodyStore);
    const before = await namelessFiles();
    let held = 0;
    bodyStore.put = async () => {
      held = (await namelessFiles()) - before;
      return new Promise(() => {});
    };
    expect(await run()).toMatchObject({ kind: "store_unavailable" });
    expect(held).toBe(1);
    await vi.waitFor(async () => expect(await namelessFiles()).toBe(before));
  });

  it("and then gives a body that nobody waits for any more has it closed", async () => {
    const bodyStore = memoryBodies();
    const { run } = await world(bodyStore);
    expect(await run()).toMatchObject({ kind: "completed" });
    let give: (chunks: AsyncIterable<Uint8Array>) => void = () => {};
    bodyStore.get = () => new Promise((resolve) => (give = resolve));
    expect(await run()).toMatchObject({ kind: "store_unavailable" });
    let closed = 0;
    give({
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => {}),
        return: async () => {
          closed++;
          return { done: true, value: undefined };
        },
      }),
    });
    await vi.waitFor(() => expect(closed).toBe(1));
  });
});

describe("a body that nobody reads to its end", () => {
  it("closes its file, also where nobody began", async () => {
    const directory = await mkdtemp(join(tmpdir(), "oncekey-test-"));
    const bodies = fileBodyStore({ directory });
    await bodies.put(POINTER, inChunks(text), text.length);
    const files = () => open(new RegExp(`${POINTER.replace("/", "-")}$`));
    for (const reads of [0, 1]) {
      const chunks = (await bodies.get(POINTER)) as AsyncIterable<Uint8Array>;
      const iterator = chunks[Symbol.asyncIterator]();
      for (let read = 0; read < reads; read++) expect((await iterator.next()).done).toBe(false);
      expect(await files()).toBe(1);
      await iterator.return?.();
      expect(await files()).toBe(0);
      expect((await iterator.next()).done).toBe(true);
    }
    await rm(directory, { recursive: true });
  });

  it("ends its connection to S3, also where that hangs", async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-length": "1000000" });
      response.write("the beginning");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const connections = () => new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
    const client = new S3({
      endpoint: `http://127.0.0.1:${port}`,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId: "a", secretAccessKey: "s" },
    });
    const bodies = s3BodyStore({ client, bucket: "b" });
    for (const reads of [0, 1, 2]) {
      const chunks = (await bodies.get(POINTER)) as AsyncIterable<Uint8Array>;
      const iterator = chunks[Symbol.asyncIterator]();
      const pending = Array.from({ length: reads }, () => iterator.next().catch(() => {}));
      await pending[0];
      expect(await connections()).toBe(1);
      await iterator.return?.();
      await vi.waitFor(async () => expect(await connections()).toBe(0));
    }
    client.destroy();
    server.close();
  });
});
