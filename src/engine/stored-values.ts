import { ownerOf } from "../core/cipher.ts";
import { decodeValue, encodeValue } from "../core/codec.ts";
import { isAuthorship } from "../core/delivery.ts";
import type { StoredEntry } from "../core/entry.ts";
import type { EngineContext } from "./context.ts";
import type { OperationRequest } from "./request.ts";

/** The encoded input as a claim stores it, sealed for its entry. */
export function sealInput({ cipher }: EngineContext, { identity }: OperationRequest, encoded: Uint8Array): Uint8Array {
  return cipher.seal(ownerOf(identity.id, identity.scope.tenant), "input", encoded);
}

/** The context that the request declares as a claim stores it, sealed for its entry; `null` where there is none. */
export function sealContext({ cipher }: EngineContext, { identity, context }: OperationRequest): Uint8Array | null {
  return context == null
    ? null
    : cipher.seal(ownerOf(identity.id, identity.scope.tenant), "context", encodeValue(context));
}

/** The input that was stored with the claim. Raises where its key is not in the ring, or this release cannot decode it. */
export function openInput({ cipher }: EngineContext, { id, tenant, input }: StoredEntry): unknown {
  return input === null ? undefined : decodeValue(cipher.open(ownerOf(id, tenant), "input", input));
}

/** The context that was stored with the claim, `null` where there is none. Raises as {@link openInput}. */
export function openContext({ cipher }: EngineContext, { id, tenant, context }: StoredEntry): unknown {
  return context === null ? null : decodeValue(cipher.open(ownerOf(id, tenant), "context", context));
}

/** The encoded value of a phase or call as its record keeps it, sealed for its entry. */
export function sealRecord({ cipher }: EngineContext, id: Uint8Array, encoded: Uint8Array): Uint8Array {
  return cipher.seal(id, "record", encoded);
}

/** The encoded value of a record. Raises as {@link openInput}. */
export function openRecord({ cipher }: EngineContext, id: Uint8Array, stored: Uint8Array): Uint8Array {
  return cipher.open(id, "record", stored);
}

/** What is remembered of a delivery's handler, sealed for the delivery. A mark of authorship tells nothing and stays. */
export function sealDelivery(
  { cipher }: EngineContext,
  digest: Uint8Array,
  value: Uint8Array | null,
): Uint8Array | null {
  return value === null || isAuthorship(value) ? value : cipher.seal(digest, "delivery", value);
}

/** The reverse. Raises as {@link openInput}. */
export function openDelivery({ cipher }: EngineContext, digest: Uint8Array, stored: Uint8Array): Uint8Array {
  return cipher.open(digest, "delivery", stored);
}
