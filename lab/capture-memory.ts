/**
 * Measures what recording takes of a process's memory: long streamed answers, and many answers at one instant.
 *
 *   node --conditions oncekey-source --import tsx lab/capture-memory.ts
 *
 * The server is a process of its own over an embedded PostgreSQL, with a body store in the file system; the figures are
 * for random bytes, which do not compress. "grown" is heap and buffers at the most, over what they were before.
 */
import { fromPg } from "oncekey/drivers/pg";
import { migrate } from "oncekey/postgres";
import pg from "pg";
import { startTestServer } from "../test/support/postgres-server.ts";
import { type Measured, measure, startMemoryServer } from "./support/capture-memory.ts";

const MIB = 1_048_576;
const STREAM_BYTES = 10 * MIB;
const BLOCK_BYTES = 200 * 1_024;
const BLOCKS = 1_000;
const BUDGET = 64 * MIB;

const mib = (bytes: number) => `${(bytes / MIB).toFixed(1)} MiB`;

function print(what: string, count: number, measured: Measured): void {
  const { wrong, grownBy, rssGrownBy, peakHeld, held, openFiles } = measured;
  const each = `${(grownBy / count / 1_024).toFixed(0)} KiB each`;
  process.stdout.write(
    `${what}: grown by ${mib(grownBy)} (${each}), RSS by ${mib(rssGrownBy)}; recording held at most ${mib(peakHeld)} of ${mib(BUDGET)}, afterwards ${held} bytes and ${openFiles} files; ${wrong} wrong answers\n`,
  );
  if (wrong > 0 || held > 0 || openFiles > 0 || peakHeld > BUDGET) process.exitCode = 1;
}

async function main(): Promise<void> {
  const postgres = await startTestServer();
  const pool = new pg.Pool({ connectionString: postgres.url });
  try {
    await migrate(fromPg(pool));
    const server = await startMemoryServer({
      url: postgres.url,
      maxRecordingBytes: BUDGET,
      streamBytes: STREAM_BYTES,
      blockBytes: BLOCK_BYTES,
      blocksAtOnce: BLOCKS,
    });
    await measure(server, "/stream", 2, STREAM_BYTES);
    for (const count of [1, 10, 50]) {
      print(`${count} × 10 MiB streamed`, count, await measure(server, "/stream", count, STREAM_BYTES));
    }
    print(`${BLOCKS} × 200 KiB at one instant`, BLOCKS, await measure(server, "/block", BLOCKS, BLOCK_BYTES));
    await server.close();
  } finally {
    await pool.end();
    await postgres.close();
  }
}

await main();
