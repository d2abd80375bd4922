import type { RunKind } from "./entry.ts";
import { OncekeyError } from "./errors.ts";
import { headerAllowlist } from "./outcome.ts";
import type { ClaimCommit, StoreTraits } from "./store.ts";

/** The times that must fit together, in milliseconds. */
export interface PolicyTimes {
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly retentionMs: number;
  readonly clientRetryWindowMs: number;
  readonly tombstoneMs: number;
  /** In characters; what a stored key may be long. */
  readonly maxKeyLength: number;
  readonly maxBodyBytes: number;
  readonly maxAnswerBytes: number;
  readonly maxRecordingBytes: number;
  readonly maxWaiters: number;
  readonly maxWaitersPerKey: number;
}

/** What the policy asks of one operation. */
export interface PolicyOperation {
  readonly runKind: RunKind;
  readonly name: string;
  readonly version: number;
  readonly aliases: readonly string[];
  readonly maxDurationMs: number;
  readonly maxAttempts: number;
  readonly retentionMs: number;
  readonly waitMs: number;
  readonly replayHeaders: readonly string[];
  readonly claimCommit: ClaimCommit;
  /** The shortest time for which another side dedupes, in milliseconds; 0: no call rests on that; `undefined`: not said. */
  readonly dedupesForMs: number | undefined;
  readonly afterFailure: "replay" | "runAgain";
  readonly onStoreDown: "refuse" | "run";
}

const LONGEST_MS = 2 ** 31 - 1;
const MAX_KEY_LENGTH = 512;
const RETENTION_MAX_MS = 10 * 365 * 24 * 3_600_000;

/** Refuses times that would break a promise. Raises `oncekey_config_invalid`, naming the option and what to change. */
export function checkTimes(times: PolicyTimes): void {
  for (const name of ["leaseMs", "waitMs"] as const) requireDuration(name, times[name], LONGEST_MS);
  for (const name of ["retentionMs", "clientRetryWindowMs", "tombstoneMs"] as const) {
    requireDuration(name, times[name], RETENTION_MAX_MS);
  }
  const amounts = ["maxBodyBytes", "maxAnswerBytes", "maxRecordingBytes", "maxWaiters", "maxWaitersPerKey"] as const;
  for (const name of amounts) {
    if (!(times[name] >= 0)) refuse(`${name} must be a number from 0: anything else would mean no limit`);
  }
  if (!(times.maxKeyLength >= 1 && times.maxKeyLength <= MAX_KEY_LENGTH)) {
    refuse(`maxKeyLength must be from 1 to ${MAX_KEY_LENGTH}: longer keys cannot be stored`);
  }
  if (times.leaseMs < 100) refuse(`leaseMs is ${times.leaseMs}: a lease below 100 ms cannot be renewed in time`);
  checkRetention("", times.retentionMs, times.clientRetryWindowMs, times.waitMs);
}

/** Refuses an operation that would break a promise. Raises `oncekey_config_invalid`. */
export function checkOperation(operation: PolicyOperation, times: PolicyTimes, traits: StoreTraits): void {
  const of = `Operation ${JSON.stringify(operation.name)}: `;
  checkNames(operation, of);
  requireDuration(`${of}maxDurationMs`, operation.maxDurationMs, LONGEST_MS);
  requireDuration(`${of}retentionMs`, operation.retentionMs, RETENTION_MAX_MS);
  requireDuration(`${of}waitMs`, operation.waitMs, LONGEST_MS);
  if (operation.maxDurationMs < 1) refuse(`${of}maxDurationMs must be at least 1`);
  if (!Number.isInteger(operation.maxAttempts) || operation.maxAttempts < 1) {
    refuse(`${of}maxAttempts must be a whole number from 1`);
  }
  checkRetention(of, operation.retentionMs, times.clientRetryWindowMs, operation.waitMs);
  // A transaction that sleeps past its retention could insert an outcome that other code stored and purged meanwhile.
  if (operation.runKind === "transaction" && operation.retentionMs <= operation.maxDurationMs) {
    refuse(
      `${of}retentionMs (${operation.retentionMs}) must be longer than maxDurationMs (${operation.maxDurationMs})`,
    );
  }
  headerAllowlist(operation.replayHeaders);
  checkClaim(operation, of, times);
  checkRenewal(operation, of, traits);
}

function checkNames(operation: PolicyOperation, of: string): void {
  for (const name of [operation.name, ...operation.aliases]) {
    if (typeof name !== "string" || !/^[\x21-\x7e]{1,100}$/.test(name)) {
      refuse(`${of}names and aliases are 1 to 100 visible ASCII characters`);
    }
  }
  if (!Number.isInteger(operation.version) || operation.version < 1 || operation.version > LONGEST_MS) {
    refuse(`${of}version must be a positive integer`);
  }
}

function checkRetention(of: string, retentionMs: number, windowMs: number, waitMs: number): void {
  if (retentionMs < windowMs) {
    refuse(
      `${of}retentionMs (${retentionMs}) is shorter than clientRetryWindowMs (${windowMs}): a late retry would run again. Raise retentionMs, or lower clientRetryWindowMs to what your clients really do`,
    );
  }
  if (retentionMs < waitMs * 2) {
    refuse(
      `${of}retentionMs (${retentionMs}) must be at least twice waitMs (${waitMs}): a waiter must not outlive the outcome`,
    );
  }
}

/**
 * How much older than its entry a call may be, in milliseconds. Where a crash of the database can lose a claim, the first
 * one of the key may lie as far back as its client goes on retrying; the entry knows only the last one.
 */
export function unseenMs(
  commit: ClaimCommit,
  { clientRetryWindowMs }: Pick<PolicyTimes, "clientRetryWindowMs">,
): number {
  return commit === "asynchronous" ? clientRetryWindowMs : 0;
}

function checkClaim(operation: PolicyOperation, of: string, times: PolicyTimes): void {
  const { claimCommit, runKind, dedupesForMs, onStoreDown } = operation;
  if (claimCommit !== "synchronous" && claimCommit !== "asynchronous") {
    refuse(`${of}claimCommit is "synchronous" or "asynchronous"`);
  }
  if (claimCommit === "asynchronous" && runKind !== "phases") {
    refuse(`${of}claimCommit "asynchronous" is refused for ${runKind}: ${NO_LOST_CLAIM[runKind]}. Use "synchronous"`);
  }
  if (claimCommit === "asynchronous") checkLostClaim(operation, of, times);
  else if (dedupesForMs !== undefined) refuse(`${of}dedupesForMs belongs to claimCommit "asynchronous". Leave it out`);
  if (onStoreDown === "run" && runKind !== "capture") {
    refuse(`${of}onStoreDown "run" is only possible for capture: ${runKind} keeps its promise in the store`);
  }
}

const NO_LOST_CLAIM = {
  capture: "a claim lost in a database crash would run the handler twice",
  transaction: "it has no claim",
};

/** Refuses what is not safe where a claim may be lost: the next attempt is then the first one as far as anybody knows. */
function checkLostClaim(operation: PolicyOperation, of: string, times: PolicyTimes): void {
  const { claimCommit, dedupesForMs, maxDurationMs, afterFailure } = operation;
  if (dedupesForMs === undefined) {
    refuse(
      `${of}claimCommit "asynchronous" needs dedupesForMs: the shortest dedupes.forMs of its calls, or 0 where none of them dedupes`,
    );
  }
  requireDuration(`${of}dedupesForMs`, dedupesForMs, RETENTION_MAX_MS);
  const leastMs = unseenMs(claimCommit, times) + maxDurationMs;
  if (dedupesForMs !== 0 && dedupesForMs < leastMs) {
    refuse(
      `${of}dedupesForMs (${dedupesForMs}) is shorter than clientRetryWindowMs and maxDurationMs together (${leastMs}): after a lost claim a late retry would have a second effect. Use claimCommit "synchronous"`,
    );
  }
  // The run after a forgotten failure derives its keys from the failed entry, whose removal would outlive the lost claim.
  if (afterFailure === "runAgain") {
    refuse(
      `${of}claimCommit "asynchronous" is refused with afterFailure "runAgain": after a lost claim the calls of a retry would have other keys. Use "synchronous"`,
    );
  }
}

function checkRenewal(operation: PolicyOperation, of: string, traits: StoreTraits): void {
  if (operation.runKind === "transaction" || traits.renews !== "unknown") return;
  refuse(
    `${of}the driver does not tell the size of its pool, so a lease renewal may starve behind business queries. Give the store a second driver: postgresStore(driver, { control })`,
  );
}

function requireDuration(name: string, value: number, most: number): void {
  if (!Number.isInteger(value) || value < 0 || value > most) {
    refuse(`${name} must be a whole number of milliseconds from 0 to ${most}`);
  }
}

function refuse(what: string): never {
  throw new OncekeyError("oncekey_config_invalid", `${what}. Nothing was started.`);
}
