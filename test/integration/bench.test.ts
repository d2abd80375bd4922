import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import type { Summary } from "../../bench/figures.ts";
import { findPgbench } from "../../bench/pgbench.ts";
import { repositoryRoot } from "../../scripts/check.ts";

const folder = mkdtempSync(join(tmpdir(), "oncekey-bench-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The command as it is, in a form that measures nothing worth telling. */
async function bench(...flags: string[]): Promise<{ summary: Summary; printed: string }> {
  const json = join(folder, "figures.json");
  const tiny = ["--rounds", "1", "--slice-ms", "150", "--warm-up", "0", "--requests", "20", "--json", json];
  const command = ["--conditions=oncekey-source", "--import", "tsx", "bench/main.ts", ...tiny, ...flags];
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: repositoryRoot });
  return { summary: JSON.parse(readFileSync(json, "utf8")), printed: stdout };
}

describe("npm run bench", () => {
  it("writes medians of ratios and exact counters, in the form that is promised", { timeout: 240_000 }, async () => {
    const { summary, printed } = await bench("--only", "counters,transaction,replay,groups");
    expect(Object.keys(summary)).toEqual(["ratios", "counters", "peers"]);
    const { transactionVsPgbench, ...ratios } = summary.ratios;
    expect(ratios).toEqual({
      transactionVsHandwritten: expect.any(Number),
      transactionVsPlain: expect.any(Number),
      replayVsRead: expect.any(Number),
      groupClaimsGain: expect.any(Number),
    });
    expect(transactionVsPgbench).toEqual(findPgbench() === null ? null : expect.any(Number));
    const { transaction, replay } = summary.counters;
    expect({ ...transaction, walBytes: 0 }).toEqual({ walBytes: 0, deadTuples: 0, statements: 7 });
    expect(transaction.walBytes).toBeGreaterThan(254);
    expect(replay).toEqual({ statements: 1 });
    expect(summary.peers).toEqual([]);
    expect(printed).toMatch(/^plain: 3 statements, 2\d\d bytes of WAL in 3\.\d records, .*, 0\.00 dead tuples$/m);
    // The server's own work (what was written before is flushed) may fall into so short a slice: one in many reads.
    expect(printed).toMatch(/^read: 1 statements, 0 bytes of WAL in 0\.0 records, 0\.\d\d fsyncs, 0\.00 dead tuples$/m);
  });

  it("refuses a group that there is not, before anything is started", async () => {
    const refused = bench("--only", "everything");
    await expect(refused).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining("--only knows counters,") });
  });
});
