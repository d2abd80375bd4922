/**
 * Drops a partition of outcomes that is past, while claims flow and a transaction that has read it stays open for a while.
 *
 *   npm run lab:partition-drop -- [--outcomes 100000]
 *
 * Prints how long the drop took and the longest wait for a lock. Ends with "N passed, N failed".
 */

import { parseArgs } from "node:util";
import { fromPg } from "oncekey/drivers/pg";
import { changeLayout, maintainLayout, migrate, storeLayout } from "oncekey/postgres";
import pg from "pg";
import { startTestServer } from "../test/support/postgres-server.ts";
import type { Check } from "./support/check.ts";
import { runCommand, wholeNumber } from "./support/command.ts";
import { report } from "./support/report.ts";
import { OPERATION } from "./support/sweep-rows.ts";
import { flow, type LockWaits, type Traffic, watchLocks } from "./support/sweep-traffic.ts";

const CLAIMERS = 8;
const WARM_CLAIMS = 500;
const LONG_MS = 2_000;
const DECLARED_DROP_MS = 1_000;
const DECLARED_STALL_MS = 60;
const ALONE = "no other transaction";
const PAST = "outcome_past";

const inMs = (ms: number) => `${ms.toFixed(1)} ms`;

/** A partition of ends long past, noted as the store would have it. Not finished as they began: those the guard would lock, one by one. */
async function fill(pool: pg.Pool, outcomes: number): Promise<void> {
  await pool.query(
    `CREATE TABLE oncekey.${PAST} PARTITION OF oncekey.outcome FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')`,
  );
  await pool.query(`INSERT INTO oncekey.outcome_partition VALUES ('2020-01-01', '2020-01-02', '${PAST}')`);
  await pool.query(
    `INSERT INTO oncekey.outcome (id, fence, seed, fingerprint, run_kind, tenant, operation, key, operation_version,
       created_at, completed_at, expires_at, state, status, outcome)
     SELECT sha256(('past' || n)::bytea), uuid_send(gen_random_uuid()), uuid_send(gen_random_uuid()), '\\x01', 'phases',
       'acme', '${OPERATION}', 'past' || n, 1, '2019-12-30', '2019-12-31', '2020-01-01 12:00', 'succeeded', 201,
       decode(repeat(md5(n::text), 12), 'hex')
     FROM generate_series(1, ${outcomes}) AS n`,
  );
}

/** Drops what is past beside the traffic, and measures. */
async function dropped(pool: pg.Pool, work: () => Promise<unknown>) {
  const traffic: Traffic = { claims: 0, reused: 0, claimsMs: [], errors: [] };
  const waits: LockWaits = { longestMs: 0, seen: 0 };
  const stop = new AbortController();
  const running = [
    ...Array.from({ length: CLAIMERS }, () => flow(pool, 1_000, traffic, stop.signal)),
    watchLocks(pool, waits, stop.signal),
  ];
  // Traffic that has opened its connections and found its pace.
  while (traffic.claims < WARM_CLAIMS && traffic.errors.length === 0) await new Promise((r) => setTimeout(r, 10));
  traffic.claims = 0;
  traffic.claimsMs.length = 0;
  waits.longestMs = 0;
  waits.seen = 0;
  const began = performance.now();
  await work();
  const tookMs = performance.now() - began;
  stop.abort();
  await Promise.all(running);
  return { traffic, waits, tookMs };
}

/** Opens a transaction that reads all partitions; what it gives ends that later. */
async function longReader(url: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("BEGIN");
  await client.query("SELECT count(*) FROM oncekey.outcome");
  return async () => {
    await new Promise((resolve) => setTimeout(resolve, LONG_MS));
    await client.query("COMMIT");
    await client.end();
  };
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { outcomes: { type: "string", default: "100000" } } });
  const outcomes = wholeNumber("--outcomes", values.outcomes, 1_000);
  const checks: Check[] = [];
  const figures: (readonly [string, string | number])[] = [];
  const check = (name: string, passed: boolean, found: unknown) =>
    void checks.push({ name, passed, found: passed ? "" : JSON.stringify(found) });
  const server = await startTestServer();
  const pool = new pg.Pool({ connectionString: server.url, max: CLAIMERS + 6 });
  const driver = fromPg(pool);
  try {
    await migrate(driver);
    await changeLayout(driver, "partitioned");
    await fill(pool, outcomes);
    const began = performance.now();
    await maintainLayout(driver);
    figures.push([`dropping ${outcomes} outcomes without traffic`, inMs(performance.now() - began)]);
    for (const behind of [ALONE, "a transaction of 2 s that has read it"]) {
      await fill(pool, outcomes);
      const end = behind === ALONE ? async () => {} : await longReader(server.url);
      const { traffic, waits, tookMs } = await dropped(pool, () => Promise.all([maintainLayout(driver), end()]));
      figures.push(
        [`dropping ${outcomes} outcomes behind ${behind}`, inMs(tookMs)],
        ["claims beside it", traffic.claims],
        ["longest claim, waits for a processor included", inMs(Math.max(0, ...traffic.claimsMs))],
        [
          "lock waits seen, a detach that waits for others left out · longest",
          `${waits.seen} · ${inMs(waits.longestMs)}`,
        ],
      );
      const { partitions } = await storeLayout(driver);
      check(`it is gone (${behind})`, !partitions.some(({ name }) => name === PAST), partitions);
      check(`no claim failed (${behind})`, traffic.errors.length === 0, String(traffic.errors[0]));
      check(`no lock wait over ${DECLARED_STALL_MS} ms (${behind})`, waits.longestMs <= DECLARED_STALL_MS, waits);
      if (behind === ALONE) check(`it takes less than ${DECLARED_DROP_MS} ms`, tookMs < DECLARED_DROP_MS, tookMs);
    }
  } finally {
    await pool.end();
    await server.close();
  }
  const command = `npm run lab:partition-drop -- --outcomes ${outcomes}`;
  return report({ campaign: "partition-drop", command, figures }, checks, { write: false });
}

await runCommand("npm run lab:partition-drop -- [--outcomes 100000]", main);
