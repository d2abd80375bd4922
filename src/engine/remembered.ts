import { decodeValue, encodeValue } from "../core/codec.ts";
import { authorship, isAuthorship, type KnownDelivery } from "../core/delivery.ts";
import { sameDigest } from "../core/fingerprint.ts";
import type { ConsumeResult } from "./arrival.ts";
import type { ConsumeRules } from "./consume-rules.ts";
import type { EngineContext } from "./context.ts";
import { openDelivery } from "./stored-values.ts";

/** What a duplicate of a remembered delivery gives. Raises what opening its value raises. */
export function remembered<Value>(
  context: EngineContext,
  { digest, receivedAt, value }: KnownDelivery,
  { onDuplicate }: ConsumeRules,
  { possibleResend }: { readonly possibleResend: boolean },
): ConsumeResult<Value> {
  if (onDuplicate === "reject") return { kind: possibleResend ? "duplicate" : "rejected", receivedAt };
  if (onDuplicate === "acknowledge" || value === null || isAuthorship(value)) return { kind: "duplicate", receivedAt };
  return { kind: "replayed", value: decodeValue(openDelivery(context, digest, value)) as Value, receivedAt };
}

/** What a handler gave, and what of it is kept; still to be sealed for each delivery. */
export interface Kept<Value> {
  readonly value: Value;
  readonly bytes: Uint8Array | null;
}

const AUTHOR_LENGTH = 16;

/** Keeps a handler's value as duplicates are to see it; only for `replay` must it be one that the codec keeps. */
export function keptValue<Value>(
  { settings }: EngineContext,
  { onDuplicate }: ConsumeRules,
  value: Value,
): Kept<Value> {
  switch (onDuplicate) {
    case "acknowledge":
      return { value, bytes: null };
    case "reject":
      return { value, bytes: authorship(settings.random.bytes(AUTHOR_LENGTH)) };
    case "replay": {
      const bytes = encodeValue(value);
      // The first consumer sees what the later ones will.
      return { value: decodeValue(bytes) as Value, bytes };
    }
  }
}

/** Whether a remembered delivery is provably the one whose COMMIT went unanswered. */
export function isOurs({ value }: KnownDelivery, { bytes }: Kept<unknown>): boolean {
  return bytes !== null && isAuthorship(bytes) && value !== null && sameDigest(value, bytes);
}
