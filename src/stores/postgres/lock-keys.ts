import { createHash } from "node:crypto";

/**
 * The keys of the two try-locks of lock.sql, as bigint text: (identity, fingerprint), then identity. Advisory locks are
 * numbers shared by the whole database: a collision can only refuse a request, never let one run twice.
 */
export function lockKeys(schema: string, id: Uint8Array, lockDigest: Uint8Array): [request: string, identity: string] {
  return [bigintOf([schema, "request"], id, lockDigest), identityLockKey(schema, id)];
}

/** The key of the second of them, which every run of the identity holds. */
export function identityLockKey(schema: string, id: Uint8Array): string {
  return bigintOf([schema, "identity"], id);
}

/** The key of the lock that senders of one order take, one after the other. */
export function orderLockKey(schema: string, tenant: string, orderBy: string): string {
  return bigintOf([schema, "order", tenant, orderBy]);
}

/** The key of the try-lock of a delivery or a producer, by its digest. */
export function arrivalLockKey(schema: string, digest: Uint8Array): string {
  return bigintOf([schema, "arrival"], digest);
}

/** The key of the lock that migrations of one schema take. */
export function migrationLockKey(schema: string): string {
  return bigintOf([schema, "migrate"]);
}

function bigintOf(domain: readonly string[], ...parts: readonly Uint8Array[]): string {
  const hash = createHash("sha256").update(`oncekey\0${domain.join("\0")}\0`);
  for (const part of parts) hash.update(part);
  return hash.digest().readBigInt64BE(0).toString();
}
