import { type FramedPart, framedDigest } from "./framing.ts";
import type { Scope } from "./scope.ts";

/** Version of the identity digest's pre-image. Frozen: another layout gets another byte. */
const IDENTITY_VERSION = 1;

/** How far one key reaches: a single operation (default), or every operation of the account (as Stripe's and Adyen's do). */
export type KeySpace = "operation" | "account";

/** What a key's reach may be narrowed or widened by. */
export interface KeyReach {
  /** Default `operation`. */
  readonly keySpace?: KeySpace | undefined;
  /** The region, zone or queue within which a dialect's keys count, as its requests name it. Default `null`: everywhere. */
  readonly partition?: string | null;
}

/** (tenant, client, operation, key): what must happen at most once. */
export interface Identity {
  /** SHA-256 over the length-prefixed parts: 32 bytes, the entry's primary key. */
  readonly id: Uint8Array;
  readonly scope: Scope;
  readonly operation: string;
  readonly key: string;
}

/** An entry's id from its hexadecimal digits. */
export function idBytes(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, "hex"));
}

/**
 * The identity of a key. Parts are length-prefixed, so no choice of tenant, client or key can imitate another one
 * (`a_b` + `c` against `a` + `b_c`). In the `account` key space the operation part is fixed and belongs to the fingerprint.
 */
export function identityOf(
  scope: Scope,
  operation: string,
  key: string,
  { keySpace = "operation", partition = null }: KeyReach = {},
): Identity {
  const parts: FramedPart[] = [scope.tenant, scope.client, keySpace === "account" ? null : operation, key];
  if (partition !== null) parts.push(partition);
  return { id: framedDigest(IDENTITY_VERSION, parts), scope, operation, key };
}
