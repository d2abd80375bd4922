import { readdirSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { pipeline } from "node:stream/promises";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { bytesOf, isInMemory, type LongBody, type OutcomeBody } from "../../src/core/outcome.ts";
import { readableOf, webStreamOf } from "../../src/http/answer-body.ts";
import { recordingBudget, recordingLimits } from "../../src/http/recording-limits.ts";
import { createSpool, type Spool } from "../../src/http/spool.ts";
import { unfold } from "../../src/http/unfold.ts";

const KIB = 1_024;
const MIB = KIB * KIB;
const spools: Spool[] = [];

afterEach(() => {
  for (const spool of spools.splice(0)) spool.release();
});

function spoolWith(budgetBytes = MIB, maxAnswerBytes = 64 * MIB) {
  const budget = recordingBudget(budgetBytes);
  const limits = { budget, maxAnswerBytes };
  const spool = createSpool(limits);
  spools.push(spool);
  return { spool, budget, limits };
}

/** Bytes of which no two places look alike. */
function noise(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0, state = 1; at < length; at++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    bytes[at] = state >>> 16;
  }
  return bytes;
}

function inPieces(bytes: Uint8Array, size: number): Uint8Array[] {
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
}

const same = async (body: OutcomeBody, want: Uint8Array) => Buffer.compare(await bytesOf(body), want) === 0;

/** Files of ours that this process has open: they have no name any more, and still a number. */
function openFiles(): number {
  const targets = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return "";
    }
  });
  // The whole name: a copy of the project may lie in a folder that is called so as well.
  return targets.filter((target) => /\/oncekey-[0-9a-f]{32}( \(deleted\))?$/.test(target)).length;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe("a spool", () => {
  it("keeps a short answer in memory, whatever its pieces, and takes no more than it needs", async () => {
    const bytes = noise(200 * KIB);
    for (const size of [1, 3, 1_000, 16_384, 65_537, bytes.length]) {
      const { spool, budget } = spoolWith();
      expect(inPieces(bytes, size).every((piece) => spool.append(piece))).toBe(true);
      expect(budget.heldBytes).toBeLessThanOrEqual(bytes.length + 16_384);
      const body = await spool.end();
      expect(isInMemory(body)).toBe(true);
      expect(await same(body, bytes)).toBe(true);
      expect(budget.heldBytes).toBe(bytes.length);
      spool.release();
      expect(budget.heldBytes).toBe(0);
    }
  });

  it("copies: a handler may use its buffer again", async () => {
    const { spool } = spoolWith();
    const reused = Buffer.from("first");
    spool.append(reused);
    reused.fill(0);
    expect(Buffer.from(await bytesOf(await spool.end())).toString()).toBe("first");
  });

  it("keeps a long answer in a file, byte for byte, whether the writer waits or not", async () => {
    const bytes = noise(3 * MIB);
    for (const size of [777, 16_384, 65_536, 300_000, bytes.length]) {
      for (const waits of [true, false]) {
        const { spool, budget } = spoolWith();
        for (const piece of inPieces(bytes, size)) if (!spool.append(piece) && waits) await spool.drained();
        const body = await spool.end();
        expect(isInMemory(body)).toBe(false);
        expect(budget.heldBytes).toBe(0);
        expect(budget.peakBytes).toBeLessThanOrEqual(256 * KIB);
        expect(body.length).toBe(bytes.length);
        expect(await same(body, bytes)).toBe(true);
        spool.release();
      }
    }
  });

  it("asks for a pause while bytes wait for the file, and tells when none do", async () => {
    const { spool, budget } = spoolWith();
    spool.append(noise(256 * KIB));
    const answers = inPieces(noise(256 * KIB), 32 * KIB).map((piece) => spool.append(piece));
    expect(answers).toContain(false);
    expect(budget.heldBytes).toBeGreaterThan(0);
    await spool.drained();
    expect(budget.heldBytes).toBe(0);
    expect(spool.append(noise(10))).toBe(true);
    expect((await spool.end()).length).toBe(512 * KIB + 10);
  });

  it("loses no byte that comes in the instant in which the file has caught up", async () => {
    const bytes = noise(MIB);
    const { spool } = spoolWith();
    for (const piece of inPieces(bytes, 40_000)) {
      if (spool.append(piece)) continue;
      // One turn of the promise queue after another, so that each of them is met.
      for (let turn = 0; turn < 7; turn++) await Promise.resolve();
      await spool.drained();
    }
    expect(await same(await spool.end(), bytes)).toBe(true);
  });

  it("never holds more than the budget, however many answers are recorded at a time", async () => {
    const budget = recordingBudget(4 * MIB);
    const bytes = noise(200 * KIB);
    const all = Array.from({ length: 100 }, () => createSpool({ budget, maxAnswerBytes: MIB }));
    spools.push(...all);
    for (const spool of all) spool.append(bytes);
    const bodies = await Promise.all(all.map((spool) => spool.end()));
    expect(bodies.filter(isInMemory)).toHaveLength(20);
    expect(budget.peakBytes).toBe(20 * bytes.length);
    for (const body of bodies) expect(await same(body, bytes)).toBe(true);
    for (const spool of all) spool.release();
    expect(budget.heldBytes).toBe(0);
    await until(() => openFiles() === 0);
  });

  it("refuses the byte that is one too many, and what comes after it", () => {
    const { spool, budget } = spoolWith(MIB, 10);
    expect(spool.append(noise(10))).toBe(true);
    expect(() => spool.append(noise(1))).toThrowError(expect.objectContaining({ code: "oncekey_stream_refused" }));
    spool.release();
    expect(spool.append(noise(1))).toBe(true);
    expect(budget.heldBytes).toBe(0);
  });

  it("says so where there is no place for its file", async () => {
    const before = process.env.TMPDIR;
    process.env.TMPDIR = "/nowhere/at/all";
    try {
      const { spool, budget } = spoolWith();
      const refused = expect.objectContaining({ code: "oncekey_stream_refused" });
      expect(() => spool.append(noise(MIB))).toThrowError(refused);
      await expect(spool.end()).rejects.toEqual(refused);
      spool.release();
      expect(budget.heldBytes).toBe(0);
    } finally {
      if (before === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = before;
    }
  });

  it("leaves no name in the directory, and closes the file when the last holder lets go", async () => {
    const named = () => readdirSync(tmpdir()).filter((name) => name.startsWith("oncekey-") && name.length === 40);
    const before = named();
    const { spool } = spoolWith();
    spool.append(noise(MIB));
    expect(named()).toEqual(before);
    const body = (await spool.end()) as LongBody;
    const other = body.share() as LongBody;
    spool.release();
    await new Promise((resolve) => setImmediate(resolve));
    expect(openFiles()).toBe(1);
    expect(await same(other, noise(MIB))).toBe(true);
    await other.release();
    await until(() => openFiles() === 0);
    expect(other.share()).toBeNull();
  });

  it("may be released at any time, also while its file is written", async () => {
    const { spool, budget } = spoolWith();
    spool.append(noise(300 * KIB));
    for (const piece of inPieces(noise(200 * KIB), 50 * KIB)) spool.append(piece);
    spool.release();
    spool.release();
    expect(budget.heldBytes).toBe(0);
    await until(() => openFiles() === 0);
  });

  it("that is abandoned gives its room back and leaves the bytes to whoever stores them", async () => {
    const { spool, budget } = spoolWith();
    spool.append(noise(MIB));
    const body = await spool.end();
    spool.abandon();
    expect(budget.heldBytes).toBe(0);
    expect(await same(body, noise(MIB))).toBe(true);
    await (body as LongBody).release();
    await until(() => openFiles() === 0);
  });
});

describe("a long body", () => {
  async function longBody(bytes: Uint8Array): Promise<LongBody> {
    const { spool } = spoolWith();
    spool.append(bytes);
    return (await spool.end()) as LongBody;
  }

  it("is let go of by its streams when they end, fail or are cut", async () => {
    const bytes = noise(MIB);
    const whole: Buffer[] = [];
    await pipeline(readableOf(await longBody(bytes)), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) whole.push(chunk);
    });
    expect(Buffer.compare(Buffer.concat(whole), bytes)).toBe(0);
    expect(
      Buffer.compare(Buffer.from(await new Response(webStreamOf(await longBody(bytes))).arrayBuffer()), bytes),
    ).toBe(0);
    const half = readableOf(await longBody(bytes));
    half.once("data", () => half.destroy());
    const reader = webStreamOf(await longBody(bytes)).getReader();
    await reader.read();
    await reader.cancel();
    readableOf(await longBody(bytes)).destroy();
    await webStreamOf(await longBody(bytes)).cancel();
    await until(() => openFiles() === 0);
  });

  it("is read by a web stream no faster than its reader asks", async () => {
    const body = await longBody(noise(4 * MIB));
    let read = 0;
    const counted: LongBody = {
      ...body,
      async *chunks() {
        for await (const chunk of body.chunks()) {
          read += chunk.length;
          yield chunk;
        }
      },
    };
    const reader = webStreamOf(counted).getReader();
    await reader.read();
    await new Promise((resolve) => setImmediate(resolve));
    expect(read).toBeLessThanOrEqual(128 * KIB);
    await reader.cancel();
  });
});

describe("unfold", () => {
  const text = Buffer.from(
    inPieces(noise(40_000), 4)
      .map((bytes) => `once: ${bytes.join()}. `)
      .join(""),
  );
  const codings: Readonly<Record<string, Uint8Array>> = {
    gzip: gzipSync(text),
    "X-GZIP": gzipSync(text),
    deflate: deflateSync(text),
    br: brotliCompressSync(text),
  };

  it("undoes each coding into a spool", async () => {
    for (const [coding, coded] of Object.entries(codings)) {
      const { limits } = spoolWith();
      const unfolded = await unfold(coding, coded, limits);
      if (unfolded.kind !== "unfolded") throw new Error(`${coding}: ${unfolded.kind}`);
      expect(await same(unfolded.body, text)).toBe(true);
      unfolded.spool.release();
      expect(limits.budget.heldBytes).toBe(0);
    }
  });

  it("bounds what it unfolds to, and gives everything back where it fails", async () => {
    const bomb = gzipSync(Buffer.alloc(32 * MIB));
    const { limits, budget } = spoolWith(MIB, 16 * MIB);
    expect(await unfold("gzip", bomb, limits)).toEqual({ kind: "too_large" });
    expect(await unfold("gzip", gzipSync(noise(2 * MIB)), { ...limits, maxAnswerBytes: MIB })).toEqual({
      kind: "too_large",
    });
    expect(await unfold("gzip", Buffer.from("no gzip"), limits)).toEqual({ kind: "malformed" });
    expect(await unfold("gzip", gzipSync(text).subarray(0, 100), limits)).toEqual({ kind: "malformed" });
    for (const coding of ["zstd", "gzip, br", "constructor"]) {
      expect(await unfold(coding, Buffer.from("?"), limits)).toEqual({ kind: "unsupported" });
    }
    expect(budget.heldBytes).toBe(0);
    await until(() => openFiles() === 0);
  });
});

describe("recordingLimits", () => {
  it("are one budget for all bindings of an instance, and another one for another instance", () => {
    const settings = { maxAnswerBytes: 1, maxRecordingBytes: 2 };
    expect(recordingLimits(settings)).toBe(recordingLimits(settings));
    expect(recordingLimits({ ...settings }).budget).not.toBe(recordingLimits(settings).budget);
  });
});
