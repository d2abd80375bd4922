import { createHash } from "node:crypto";
import { frame } from "./framing.ts";

/** Version of the message id's pre-image. Frozen: another layout gets another byte. */
const MESSAGE_ID_VERSION = 1;

/** An outbox row: written in the transaction of the effect, delivered later by the relay. */
export interface NewMessage {
  /** Stable: the same send of the same entry has the same id on every attempt. */
  readonly id: string;
  readonly topic: string;
  /** JSON text, exact digits. */
  readonly payload: string;
  readonly key: string | null;
  /** Messages of one `orderBy` are delivered in the order of their sending. */
  readonly orderBy: string | null;
  readonly delayMs: number;
  readonly tenant: string;
  readonly client: string | null;
  /** The entry it was sent from; `null` where a delivery's handler sent it. */
  readonly entryId: Uint8Array | null;
  /** The context that the operation's request declared (value codec, sealed): ids, never secrets. */
  readonly context: Uint8Array | null;
  /** What ties it to the request's logs. */
  readonly correlation: string | null;
}

/**
 * The id of the n-th message that one entry sends from one place (its recovery point). The seed makes it differ after a
 * purge, when the same key runs as a new operation. 43 characters of base64url.
 */
export function messageId(entry: { id: Uint8Array; seed: Uint8Array }, recoveryPoint: string, index: number): string {
  const parts = [entry.id, entry.seed, recoveryPoint, String(index)];
  return createHash("sha256").update(frame(MESSAGE_ID_VERSION, parts)).digest("base64url");
}
