import { createHash, randomBytes } from "node:crypto";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { OPERATION } from "./sweep-rows.ts";

/** What the traffic saw. */
export interface Traffic {
  claims: number;
  /** Claims of keys whose entry was expired and perhaps being purged at that moment. */
  reused: number;
  /** How long each claim took, the deletion of an expired entry included. */
  readonly claimsMs: number[];
  readonly errors: unknown[];
}

/** The longest wait for a lock that anybody was seen in, in milliseconds, and how often somebody was. */
export interface LockWaits {
  longestMs: number;
  seen: number;
}

const LEASE_MS = 30_000;
const digest = (text: string) => new Uint8Array(createHash("sha256").update(text).digest());
const random = (length: number) => new Uint8Array(randomBytes(length));

function entryOf(key: string) {
  return {
    id: digest(key),
    ...{ tenant: "acme", client: null, operation: OPERATION, key, runKind: "phases" as const, operationVersion: 1 },
    ...{ fingerprint: random(35), wireDigest: null, fence: random(16), seed: random(16) },
    ...{ input: null, context: null, correlation: null },
  };
}

const completion = {
  state: "succeeded" as const,
  outcome: { status: 201, content: new Uint8Array(207), pointer: null },
  retentionMs: 86_400_000,
  tombstoneMs: 0,
};

/** Claims and completes until told to stop: new keys, and keys of the expired rows that are being purged. */
export async function flow(pool: pg.Pool, expired: number, seen: Traffic, signal: AbortSignal): Promise<void> {
  const store = postgresStore(fromPg(pool));
  for (let turn = 0; !signal.aborted; turn += 1) {
    const reuses = turn % 2 === 1;
    const key = reuses ? `expired${1 + Math.floor(Math.random() * expired)}` : randomBytes(16).toString("hex");
    const entry = entryOf(key);
    const began = performance.now();
    try {
      if (reuses) await store.forgetExpired(entry.id);
      const claimed = await store.claim(entry, LEASE_MS);
      seen.claimsMs.push(performance.now() - began);
      // Another one of the flow had this key first.
      if (claimed === null) continue;
      seen.claims += 1;
      if (reuses) seen.reused += 1;
      await store.complete(entry.id, entry.fence, completion);
    } catch (error) {
      seen.errors.push(error);
    }
  }
}

/** Looks at who waits for a lock, over and over. A detach that waits for others to end (virtualxid) holds up nobody. */
export async function watchLocks(pool: pg.Pool, waits: LockWaits, signal: AbortSignal): Promise<void> {
  const sql = `SELECT (max(extract(epoch FROM clock_timestamp() - waitstart)) * 1000)::float8 AS ms
    FROM pg_locks WHERE NOT granted AND locktype <> 'virtualxid'`;
  while (!signal.aborted) {
    const { rows } = await pool.query<{ ms: number | null }>(sql);
    const ms = rows[0]?.ms ?? null;
    if (ms !== null) {
      waits.seen += 1;
      waits.longestMs = Math.max(waits.longestMs, ms);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
