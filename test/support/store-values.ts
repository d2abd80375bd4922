import { randomBytes } from "node:crypto";

/** What a claim writes; see NewEntry of the store port. */
export interface EntryValues {
  readonly id: Uint8Array;
  readonly tenant: string;
  readonly client: string | null;
  readonly operation: string;
  readonly key: string;
  readonly runKind: "transaction" | "phases" | "capture";
  readonly operationVersion: number;
  readonly fingerprint: Uint8Array;
  readonly wireDigest: Uint8Array | null;
  readonly fence: Uint8Array;
  readonly seed: Uint8Array;
  readonly input: Uint8Array | null;
  readonly context: Uint8Array | null;
  readonly correlation: string | null;
}

const bytes = (length: number) => new Uint8Array(randomBytes(length));

/** An entry that no other test uses. */
export function newEntry(overrides: Partial<EntryValues> = {}): EntryValues {
  return {
    id: bytes(32),
    tenant: "acme",
    client: "app",
    operation: "invoices.create",
    key: randomBytes(16).toString("hex"),
    runKind: "phases",
    operationVersion: 1,
    fingerprint: bytes(35),
    wireDigest: null,
    fence: bytes(16),
    seed: bytes(16),
    input: null,
    context: null,
    correlation: null,
    ...overrides,
  };
}

/** An outcome of 201 with 200 bytes of body, as stores keep it. */
const outcome = {
  status: 201,
  content: new Uint8Array(Buffer.from(`\u0001${JSON.stringify({ id: "inv_1", note: "x".repeat(215) })}`)),
  pointer: null,
};

/** A success that is kept for an hour. */
export function completion(overrides: { retentionMs?: number; tombstoneMs?: number } = {}) {
  return { state: "succeeded" as const, outcome, retentionMs: 3_600_000, tombstoneMs: 0, ...overrides };
}

/** Limits that no test meets by accident. */
export const limits = { lockTimeoutMs: 10_000, idleTimeoutMs: 60_000 };

/** An outbox message that tells next to nothing. */
export function newMessage(overrides: Partial<MessageValues> = {}): MessageValues {
  return {
    id: randomBytes(32).toString("base64url"),
    topic: "invoice.created",
    payload: "{}",
    key: null,
    orderBy: null,
    delayMs: 0,
    tenant: "acme",
    client: null,
    entryId: null,
    context: null,
    correlation: null,
    ...overrides,
  };
}

/** See NewMessage of the store port. */
export interface MessageValues {
  readonly id: string;
  readonly topic: string;
  readonly payload: string;
  readonly key: string | null;
  readonly orderBy: string | null;
  readonly delayMs: number;
  readonly tenant: string;
  readonly client: string | null;
  readonly entryId: Uint8Array | null;
  readonly context: Uint8Array | null;
  readonly correlation: string | null;
}
