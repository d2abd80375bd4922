import { randomBytes } from "node:crypto";
import { readdir, readlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { describe, expect, it } from "vitest";
import { bytesOf, isInMemory, type LongBody } from "../../src/core/outcome.ts";
import { holdBytes } from "../../src/engine/held-bytes.ts";
import { inChunks } from "../support/memory-bodies.ts";

/** Files of ours without a name that this process holds open. */
async function held(): Promise<number> {
  const numbers = await readdir("/proc/self/fd");
  const targets = await Promise.all(numbers.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
  return targets.filter((target) => /oncekey-[0-9a-f]{32} \(deleted\)/.test(target)).length;
}

const noise = (length: number) => new Uint8Array(randomBytes(length));

async function long(bytes = noise(200_000)): Promise<{ bytes: Uint8Array; body: LongBody }> {
  const body = await holdBytes(inChunks(bytes));
  if (isInMemory(body)) throw new Error("must be long");
  return { bytes, body };
}

describe("bytes that are held", () => {
  it("stay in memory while they are few, and lie in a file without a name when they are many", async () => {
    for (const length of [0, 1, 65_536]) {
      const bytes = noise(length);
      expect(await holdBytes(inChunks(bytes))).toEqual(bytes);
    }
    expect(await held()).toBe(0);
    const before = await readdir(tmpdir());
    const { bytes, body } = await long();
    expect(body.length).toBe(bytes.length);
    expect(await held()).toBe(1);
    expect(
      (await readdir(tmpdir())).filter((name) => /^oncekey-[0-9a-f]{32}$/.test(name) && !before.includes(name)),
    ).toEqual([]);
    expect(Buffer.compare(await bytesOf(body), bytes)).toBe(0);
    await body.release();
    expect(await held()).toBe(0);
  });

  it("are read any number of times, beside each other, by every holder, until the last one lets go", async () => {
    const { bytes, body } = await long();
    const other = body.share() as LongBody;
    await body.release();
    await body.release();
    const third = body.share() as LongBody;
    const reads = await Promise.all([other, third, other].map(bytesOf));
    for (const read of reads) expect(Buffer.compare(read, bytes)).toBe(0);
    await other.release();
    expect(await held()).toBe(1);
    await third.release();
    expect(await held()).toBe(0);
    expect([body.share(), third.share()]).toEqual([null, null]);
    await expect(bytesOf(third)).rejects.toThrow("let go of");
  });

  it("that are let go of while they are read are not read from a file that got the number meanwhile", async () => {
    const { bytes, body } = await long();
    const reader = body.chunks()[Symbol.asyncIterator]();
    const first = await reader.next();
    expect(Buffer.from(bytes.subarray(0, first.value.length)).equals(first.value)).toBe(true);
    const reading = reader.next();
    await body.release();
    const other = await long();
    const second = await reading;
    expect(Buffer.from(bytes.subarray(first.value.length)).indexOf(second.value)).toBe(0);
    await expect(reader.next()).rejects.toThrow("let go of");
    await other.body.release();
    expect(await held()).toBe(0);
  });

  it("are let go of when their source breaks", async () => {
    async function* breaking() {
      yield noise(100_000);
      throw new Error("the source broke");
    }
    await expect(holdBytes(breaking())).rejects.toThrow("the source broke");
    expect(await held()).toBe(0);
  });
});
