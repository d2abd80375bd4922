import { decodeValue, encodeValue } from "../core/codec.ts";
import type { StoredEntry } from "../core/entry.ts";
import type { EngineContext } from "./context.ts";
import type { OperationRequest } from "./request.ts";

/** The encoded input as a claim stores it, sealed for its entry. */
export function sealInput({ cipher }: EngineContext, { identity }: OperationRequest, encoded: Uint8Array): Uint8Array {
  return cipher.seal(identity.id, "input", encoded);
}

/** The context that the request declares as a claim stores it, sealed for its entry; `null` where there is none. */
export function sealContext({ cipher }: EngineContext, { identity, context }: OperationRequest): Uint8Array | null {
  return context == null ? null : cipher.seal(identity.id, "context", encodeValue(context));
}

/** The input that was stored with the claim. Raises where its key is not in the ring, or this release cannot decode it. */
export function openInput({ cipher }: EngineContext, { id, input }: StoredEntry): unknown {
  return input === null ? undefined : decodeValue(cipher.open(id, "input", input));
}

/** The context that was stored with the claim, `null` where there is none. Raises as {@link openInput}. */
export function openContext({ cipher }: EngineContext, { id, context }: StoredEntry): unknown {
  return context === null ? null : decodeValue(cipher.open(id, "context", context));
}
