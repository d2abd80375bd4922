import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CreateBucketCommand, S3 } from "@aws-sdk/client-s3";
import { startFauxqs } from "fauxqs";
import { fileBodyStore } from "oncekey/bodies/file";
import { s3BodyStore } from "oncekey/bodies/s3";
import { type BodyStoreHarness, bodyStoreSuite } from "oncekey/testing";
import { afterAll, describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { inChunks, memoryBodies } from "../support/memory-bodies.ts";

const credentials = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "hush-hush-secret" };

async function inDirectory(): Promise<BodyStoreHarness & { readonly directory: string }> {
  const directory = await mkdtemp(join(tmpdir(), "oncekey-bodies-"));
  return {
    directory,
    bodies: fileBodyStore({ directory }),
    async unreachable() {
      await rename(directory, `${directory}-away`);
      return fileBodyStore({ directory });
    },
    async close() {
      for (const path of [directory, `${directory}-away`]) await rm(path, { recursive: true, force: true });
    },
  };
}

let server: ReturnType<typeof startFauxqs> | undefined;
afterAll(async () => (await server)?.stop());

/** The SDK warns of every streamed request that fails, which these do on purpose. */
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

const clientOf = (port: number) =>
  new S3({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials,
    forcePathStyle: true,
    logger: SILENT,
    maxAttempts: 1,
  });

async function inBucket(): Promise<BodyStoreHarness> {
  server ??= startFauxqs({ port: 0, host: "127.0.0.1", logger: false });
  const client = clientOf((await server).port);
  const bucket = `suite-${randomUUID()}`;
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  const clients = [client];
  return {
    bodies: s3BodyStore({ client, bucket }),
    async unreachable() {
      const away = clientOf(await freePort());
      clients.push(away);
      return s3BodyStore({ client: away, bucket });
    },
    async close() {
      for (const one of clients) one.destroy();
    },
  };
}

async function inMemory(): Promise<BodyStoreHarness> {
  const bodies = memoryBodies();
  return {
    bodies,
    async unreachable() {
      bodies.failure = new Error("unreachable");
      return bodies;
    },
    close: async () => {},
  };
}

bodyStoreSuite({ describe, it }, "file system", inDirectory);
bodyStoreSuite({ describe, it }, "S3", inBucket);
bodyStoreSuite({ describe, it }, "memory, of these tests", inMemory, {
  limits: {
    "refuses pointers that are none, whatever they would reach": "its pointers are members of a map, and reach nothing",
  },
});

describe("the file system", () => {
  const pointer = `${"ab".repeat(32)}/${"cd".repeat(16)}`;

  it("lets nobody but the owner read, and keeps no half-written file under any name", async () => {
    const { directory, bodies, close } = await inDirectory();
    await bodies.put(pointer, inChunks(new Uint8Array(10)), 10);
    await expect(bodies.put(pointer.replace("cd", "ce"), inChunks(new Uint8Array(10)), 11)).rejects.toThrow();
    const made = await readdir(directory, { recursive: true, withFileTypes: true });
    const modes = await Promise.all(made.map(async (one) => (await stat(join(one.parentPath, one.name))).mode & 0o777));
    expect(made.map((one, index) => [one.name, modes[index]])).toEqual([
      ["ab", 0o700],
      [pointer.replace("/", "-"), 0o600],
    ]);
    await close();
  });

  it("removes what a process left that died while it wrote", async () => {
    const { directory, bodies, close } = await inDirectory();
    await mkdir(join(directory, "ab"));
    await writeFile(join(directory, "ab", `${pointer.replace("/", "-")}.part`), "half");
    expect(await bodies.get(pointer)).toBeNull();
    await bodies.remove(pointer);
    expect(await readdir(join(directory, "ab"))).toEqual([]);
    await close();
  });

  it("never makes its own directory, which may be a volume that is not mounted", async () => {
    const { directory, bodies, close } = await inDirectory();
    await rm(directory, { recursive: true });
    await expect(bodies.put(pointer, inChunks(new Uint8Array(10)), 10)).rejects.toMatchObject({ code: "ENOENT" });
    await expect(stat(directory)).rejects.toMatchObject({ code: "ENOENT" });
    await close();
  });
});
