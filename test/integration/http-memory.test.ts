import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type MemoryServer, measure, startMemoryServer } from "../../lab/support/capture-memory.ts";
import { createDatabase } from "../support/postgres.ts";

const MIB = 1_048_576;
const STREAM_BYTES = 10 * MIB;
const BLOCK_BYTES = 200 * 1_024;
const BLOCKS = 1_000;
const BUDGET = 32 * MIB;
let server: MemoryServer;

beforeAll(async () => {
  const { url } = await createDatabase();
  server = await startMemoryServer({
    url,
    maxRecordingBytes: BUDGET,
    streamBytes: STREAM_BYTES,
    blockBytes: BLOCK_BYTES,
    blocksAtOnce: BLOCKS,
  });
  // What a first request loads and compiles is none of what is measured.
  await measure(server, "/stream", 2, STREAM_BYTES);
});

afterAll(() => server.close());

// The account of the recording is exact; of the process the bounds are half of what holding the answers would take, so
// that no garbage which nobody collected yet can break them.
describe("the memory that recording takes", { timeout: 300_000 }, () => {
  it("is bounded for each long answer that is streamed", async () => {
    const count = 30;
    const measured = await measure(server, "/stream", count, STREAM_BYTES);
    expect(measured.wrong).toBe(0);
    expect(measured.peakHeld).toBeLessThanOrEqual(count * 262_144);
    expect(measured.grownBy).toBeLessThan((count * STREAM_BYTES) / 2);
    expect([measured.held, measured.openFiles]).toEqual([0, 0]);
  });

  it("stays within the budget, however many answers are there at one instant", async () => {
    const measured = await measure(server, "/block", BLOCKS, BLOCK_BYTES);
    expect(measured.wrong).toBe(0);
    expect(measured.peakHeld).toBeLessThanOrEqual(BUDGET);
    expect(measured.peakHeld).toBeGreaterThan(BUDGET - BLOCK_BYTES);
    // Recorded, stored and sent: without turns of storing it is more than three times all the answers.
    expect(measured.grownBy).toBeLessThan(2 * BLOCKS * BLOCK_BYTES);
    expect([measured.held, measured.openFiles]).toEqual([0, 0]);
  });
});
