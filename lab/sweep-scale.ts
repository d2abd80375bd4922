/**
 * The sweep and the purge at scale: what they read, how long they take, and whether traffic waits for them.
 *
 *   npm run lab:sweep-scale -- [--entries 1000000] [--purge 1000000] [--proof]
 *
 * A hundred lapsed entries are taken up among `--entries` finished ones; then `--purge` expired ones are deleted in
 * batches while claims flow, also of the very keys that are being deleted. Ends with "N passed, N failed".
 */

import { parseArgs } from "node:util";
import { fromPg } from "oncekey/drivers/pg";
import { type Driver, migrate, postgresStore } from "oncekey/postgres";
import pg from "pg";
import { startTestServer } from "../test/support/postgres-server.ts";
import type { Check } from "./support/check.ts";
import { runCommand, wholeNumber } from "./support/command.ts";
import { report, say } from "./support/report.ts";
import { finishedRows, lapsedRows, OPERATION, UNRESOLVED, unresolvedRows } from "./support/sweep-rows.ts";
import { flow, type LockWaits, type Traffic, watchLocks } from "./support/sweep-traffic.ts";

interface Campaign {
  readonly pool: pg.Pool;
  readonly entries: number;
  readonly purge: number;
  check(what: string, holds: boolean, found: unknown): void;
  /** What was tried and measured, for the end. */
  readonly figures: (readonly [string, string | number])[];
}

const LAPSED = 100;
const CLAIMERS = 8;
const BATCH = 500;
const ROWS_AT_ONCE = 100_000;
/** A claim gives up on a lock after this long (a quarter of its lease, 2 s at most): the bound that the purge must not meet. */
const DECLARED_WAIT_MS = 2_000;
const TARGET = { operation: OPERATION, runKind: "phases" as const, operationVersion: 1 };

const inMs = (ms: number) => `${ms.toFixed(1)} ms`;

function readOptions(): { entries: number; purge: number; proof: boolean } {
  const option = { type: "string", default: "1000000" } as const;
  const { values } = parseArgs({ options: { entries: option, purge: option, proof: { type: "boolean" } } });
  return {
    entries: wholeNumber("--entries", values.entries, 1_000),
    purge: wholeNumber("--purge", values.purge, 1_000),
    proof: values.proof === true,
  };
}

async function fill(pool: pg.Pool, prefix: string, count: number, expiresAt: string): Promise<void> {
  for (let from = 1; from <= count; from += ROWS_AT_ONCE) {
    await pool.query(finishedRows(prefix, from, Math.min(count, from + ROWS_AT_ONCE - 1), expiresAt));
  }
}

interface Node {
  readonly Plans?: readonly Node[];
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Relation Name"?: string;
}

/** Each node of a plan, in one line. */
function planLines(node: Node, depth = 0): string[] {
  const on = node["Index Name"] ?? node["Relation Name"];
  const line = `${"  ".repeat(depth)}${node["Node Type"]}${on === undefined ? "" : ` on ${on}`}`;
  return [line, ...(node.Plans ?? []).flatMap((child) => planLines(child, depth + 1))];
}

/** How the server carried a statement out. */
interface Execution {
  readonly lines: readonly string[];
  /** On the server, planning left out. */
  readonly timeMs: number;
  /** Pages of 8 kB that it touched: what no busy machine changes. */
  readonly pages: number;
}

/** The store on one client, with how the server carried each statement out: once in a transaction that is rolled back. */
function measured(client: pg.PoolClient): { driver: Driver<unknown>; executions: Execution[] } {
  const executions: Execution[] = [];
  const driver: Driver<unknown> = {
    name: "measured",
    connections: 1,
    abandons: false,
    async run(sql, parameters) {
      const values = [...parameters];
      await client.query("BEGIN");
      const { rows } = await client.query({ text: `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`, values });
      await client.query("ROLLBACK");
      const told = rows[0]["QUERY PLAN"][0];
      const pages = told.Plan["Shared Hit Blocks"] + told.Plan["Shared Read Blocks"];
      executions.push({ lines: planLines(told.Plan), timeMs: told["Execution Time"], pages });
      return (await client.query({ text: sql, values })).rows;
    },
    transaction: () => Promise.reject(new Error("not used")),
  };
  return { driver, executions };
}

async function sweep({ pool, entries, check, figures }: Campaign): Promise<void> {
  await fill(pool, "finished", entries, "now() + interval '1 day'");
  await pool.query(lapsedRows(LAPSED));
  await pool.query("ANALYZE oncekey.entry");
  const client = await pool.connect();
  try {
    const { driver, executions } = measured(client);
    const store = postgresStore(driver);
    const taken = await store.takeDue(TARGET, LAPSED, 60_000);
    const none = await store.takeDue(TARGET, LAPSED, 60_000);
    const plan = executions[0]?.lines ?? [];
    const cost = (execution?: Execution) => `${inMs(execution?.timeMs ?? 0)}, ${execution?.pages} pages`;
    figures.push([`taking ${taken.length} lapsed among ${entries} finished`, cost(executions[0])]);
    figures.push(["taking none, right after", cost(executions[1])]);
    say(plan.map((line) => `  ${line}`).join("\n"));
    check("all lapsed entries are taken", taken.length === LAPSED && none.length === 0, taken.length);
    const fences = new Set(taken.map(({ fence }) => Buffer.from(fence).toString("hex")));
    check("each under a fence of its own", fences.size === LAPSED, fences.size);
    const uses = (index: string) => plan.some((line) => line.trim() === `Index Scan on ${index}`);
    check("the sweep reads entry_lease and entry_sweep", uses("entry_lease") && uses("entry_sweep"), plan);
    const pages = executions.map((execution) => execution.pages);
    check(
      "it touches pages by the number of lapsed entries, not of finished ones",
      (pages[0] ?? 0) < LAPSED * 50,
      pages,
    );
    check("a sweep that finds nothing touches next to none", (pages[1] ?? 0) < 50, pages);
    check("the sweep scans no table whole", !plan.some((line) => line.includes("Seq Scan on entry")), plan);
  } finally {
    client.release();
  }
}

interface Purged {
  count: number;
  batches: number;
  largest: number;
  longestMs: number;
}

async function purgeAll(pool: pg.Pool): Promise<Purged> {
  const store = postgresStore(fromPg(pool));
  const purged: Purged = { count: 0, batches: 0, largest: 0, longestMs: 0 };
  for (;;) {
    const began = performance.now();
    const count = await store.purge(BATCH);
    if (count === 0) return purged;
    purged.count += count;
    purged.batches += 1;
    purged.largest = Math.max(purged.largest, count);
    purged.longestMs = Math.max(purged.longestMs, performance.now() - began);
  }
}

async function purge(campaign: Campaign): Promise<void> {
  const { pool, purge: expired, figures } = campaign;
  await fill(pool, "expired", expired, "now() - random() * interval '1 day'");
  await pool.query(unresolvedRows());
  await pool.query("ANALYZE oncekey.entry");
  const traffic: Traffic = { claims: 0, reused: 0, claimsMs: [], errors: [] };
  const waits: LockWaits = { longestMs: 0, seen: 0 };
  const stop = new AbortController();
  const running = [
    ...Array.from({ length: CLAIMERS }, () => flow(pool, expired, traffic, stop.signal)),
    watchLocks(pool, waits, stop.signal),
  ];
  const began = performance.now();
  const purged = await purgeAll(pool);
  const tookMs = performance.now() - began;
  stop.abort();
  await Promise.all(running);
  figures.push(
    [`purging ${purged.count} of ${expired} expired, in ${purged.batches} batches of ${BATCH}`, inMs(tookMs)],
    ["longest batch", inMs(purged.longestMs)],
    ["claims beside it", traffic.claims],
    ["of them of expired keys", traffic.reused],
  );
  const claimsMs = traffic.claimsMs.sort((a, b) => a - b);
  const at = (share: number) => inMs(claimsMs[Math.floor((claimsMs.length - 1) * share)] ?? 0);
  figures.push(
    [
      "claims, median · 99th of a hundred · longest, waits for a processor included",
      `${at(0.5)} · ${at(0.99)} · ${at(1)}`,
    ],
    ["lock waits seen", waits.seen],
    ["longest of them", inMs(waits.longestMs)],
  );
  await checkPurge(campaign, purged, traffic, waits);
}

async function checkPurge({ pool, check }: Campaign, purged: Purged, traffic: Traffic, waits: LockWaits) {
  const count = async (where: string) =>
    Number((await pool.query(`SELECT count(*) AS n FROM oncekey.entry WHERE ${where}`)).rows[0].n);
  check("claims flowed all along", traffic.claims > purged.batches && traffic.reused > 0, traffic.claims);
  check("no claim failed", traffic.errors.length === 0, traffic.errors[0]);
  check("batches were bounded", purged.largest <= BATCH, purged.largest);
  check(`no lock wait over ${DECLARED_WAIT_MS} ms`, waits.longestMs < DECLARED_WAIT_MS, waits);
  const left = await count("expires_at <= now()");
  check("nothing expired is left", left === 0, left);
  const unresolved = await count("state = 'needs_recovery'");
  check("what is unresolved is untouched", unresolved === UNRESOLVED, unresolved);
  const kept = await count("state = 'succeeded' AND created_at > now() - interval '1 day'");
  check("what the traffic stored is there", kept === traffic.claims, { kept, claims: traffic.claims });
}

async function main(): Promise<number> {
  const options = readOptions();
  const checks: Check[] = [];
  const figures: Campaign["figures"] = [];
  const check = (name: string, passed: boolean, found: unknown) => {
    checks.push({ name, passed, found: passed ? "" : JSON.stringify(found) });
  };
  // Autovacuum as it is, since it belongs to the picture; the disk is left out of it.
  const server = await startTestServer({ settings: { max_wal_size: "4GB" } });
  const pool = new pg.Pool({ connectionString: server.url, max: CLAIMERS + 4 });
  try {
    await migrate(fromPg(pool));
    const campaign: Campaign = { pool, ...options, check, figures };
    await sweep(campaign);
    await purge(campaign);
  } finally {
    await pool.end();
    await server.close();
  }
  const command = `npm run lab:sweep-scale -- --entries ${options.entries} --purge ${options.purge}`;
  return report({ campaign: "sweep-scale", command, figures }, checks, { write: options.proof });
}

await runCommand("npm run lab:sweep-scale -- [--entries 1000000] [--purge 1000000] [--proof]", main);
