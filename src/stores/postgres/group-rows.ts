import type { Completion } from "../../core/completion.ts";
import type { NewEntry } from "../../core/entry.ts";

/** A claim as a member of a group. */
export interface ClaimMember {
  readonly entry: NewEntry;
  readonly leaseMs: number;
}

/** A completion as a member of a group. */
export interface CompleteMember {
  readonly id: Uint8Array;
  readonly fence: Uint8Array;
  readonly completion: Completion;
}

/** Bytes in the text that a group's members travel as. */
export const hex = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");

const hexOrNull = (bytes: Uint8Array | null) => (bytes === null ? null : hex(bytes));

/** The parameter of claim_group.sql: text, since arrays do not pass every driver, and the statement must not vary. */
export function claimRows(members: readonly ClaimMember[]): string {
  return JSON.stringify(
    members.map(({ entry, leaseMs }, place) => ({
      place,
      id_hex: hex(entry.id),
      tenant: entry.tenant,
      client: entry.client,
      operation: entry.operation,
      key: entry.key,
      run_kind: entry.runKind,
      operation_version: entry.operationVersion,
      fingerprint_hex: hex(entry.fingerprint),
      wire_digest_hex: hexOrNull(entry.wireDigest),
      fence_hex: hex(entry.fence),
      seed_hex: hex(entry.seed),
      input_hex: hexOrNull(entry.input),
      context_hex: hexOrNull(entry.context),
      correlation: entry.correlation,
      lease_ms: leaseMs,
    })),
  );
}

/** The parameter of complete_group.sql. */
export function completionRows(members: readonly CompleteMember[]): string {
  return JSON.stringify(
    members.map(({ id, fence, completion: { state, outcome, retentionMs, tombstoneMs } }, place) => ({
      place,
      id_hex: hex(id),
      fence_hex: hex(fence),
      given_state: state,
      given_status: outcome.status,
      content_hex: hexOrNull(outcome.content),
      given_pointer: outcome.pointer,
      retention_ms: retentionMs,
      tombstone_ms: tombstoneMs,
    })),
  );
}

/** Names of the members, digests and numbers of a row. */
const ROW_BYTES = 1_024;

/** JSON writes a character as six bytes at the most (`\u0001`). */
const TEXT_BYTES = 6;

/** What a claim takes in the parameter, at the most. */
export function claimWeight({ entry }: ClaimMember): number {
  const { tenant, client, operation, key, correlation, fingerprint, wireDigest, input, context } = entry;
  const texts = [tenant, client, operation, key, correlation];
  return ROW_BYTES + TEXT_BYTES * lengthOf(texts) + 2 * lengthOf([fingerprint, wireDigest, input, context]);
}

/** What a completion takes in the parameter, at the most. */
export function completionWeight({ completion: { outcome } }: CompleteMember): number {
  return ROW_BYTES + TEXT_BYTES * lengthOf([outcome.pointer]) + 2 * lengthOf([outcome.content]);
}

const lengthOf = (parts: readonly ({ readonly length: number } | null)[]): number =>
  parts.reduce((sum, part) => sum + (part?.length ?? 0), 0);
