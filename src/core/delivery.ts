import { createHash } from "node:crypto";
import { OncekeyError } from "./errors.ts";
import { frame } from "./framing.ts";
import type { SequenceNumber } from "./sequence.ts";
import { HIGHEST_SEQUENCE, type NumberedSpan } from "./sequence-batch.ts";

/** Version of the digests' pre-images. Frozen: another layout gets another byte. */
const DIGEST_VERSION = 1;

/** One arrival of a queue message or webhook: whose it is, where it came from, and which one it is there. */
export interface Delivery {
  readonly tenant: string;
  /** The queue, topic or webhook endpoint: ids are unique within it. 1 to 255 characters. */
  readonly source: string;
  /** The message or event id that the other side gave it, the same on every redelivery. 1 to 512 characters. */
  readonly id: string;
  /** Ids are unique only within this span (such as a FIX session day). Default: for as long as the id is remembered. */
  readonly period?: string;
}

/** SHA-256 over the length-prefixed parts: the inbox row's primary key. */
export function deliveryDigest({ tenant, source, id, period }: Delivery): Uint8Array {
  return digest(["delivery", tenant, source, period ?? null, id]);
}

/**
 * An id made from the content, as SQS FIFO does it: SHA-256 of the body in hex. Equal bodies are then one delivery. Raises
 * `oncekey_delivery_invalid` for text with a lone surrogate, whose id would be that of other bodies too.
 */
export function contentId(body: Uint8Array | string): string {
  if (typeof body === "string" && !body.isWellFormed()) throw deliveryInvalid("its text holds a lone surrogate");
  return createHash("sha256").update(body).digest("hex");
}

/** Who numbers its messages, and where. */
export interface Producer {
  readonly tenant: string;
  readonly source: string;
  readonly producer: string;
}

/** The primary key of a producer's row. */
export function producerDigest({ tenant, source, producer }: Producer): Uint8Array {
  return digest(["producer", tenant, source, null, producer]);
}

/** Whose state is guarded against older updates. */
export interface Subject {
  readonly tenant: string;
  readonly source: string;
  readonly subject: string;
}

/** The primary key of a subject's row. */
export function subjectDigest({ tenant, source, subject }: Subject): Uint8Array {
  return digest(["subject", tenant, source, null, subject]);
}

// The first part keeps the three apart, and five parts (an identity has four) keep them from requests: all name locks.
function digest(parts: readonly (string | null)[]): Uint8Array {
  return createHash("sha256").update(frame(DIGEST_VERSION, parts)).digest();
}

/** A delivery whose effect is about to be committed. */
export interface NewDelivery {
  readonly digest: Uint8Array;
  readonly delivery: Delivery;
  /** What the handler gave (value codec), where duplicates are to get it; a mark of {@link authorship}; or nothing. */
  readonly value: Uint8Array | null;
  /** How long it is remembered, in milliseconds from now. */
  readonly keepMs: number;
}

/** A delivery that was accepted before and is still remembered. */
export interface KnownDelivery {
  readonly digest: Uint8Array;
  readonly value: Uint8Array | null;
  readonly receivedAt: Date;
}

const MAX_PART_LENGTH = 255;
const MAX_ID_LENGTH = 512;
const MAX_NUMBER = 2n ** 63n - 1n;
// Far more than any batch has, and few enough that the remembered batches of a producer never go round all numbers.
const MAX_BATCH_COUNT = 100_000_000n;

/** The parts that identify a delivery, checked. Raises `oncekey_delivery_invalid`. */
export function checkDelivery({ tenant, source, id, period }: Delivery): Delivery {
  checkPart("tenant", tenant, MAX_PART_LENGTH);
  checkPart("source", source, MAX_PART_LENGTH);
  checkPart("id", id, MAX_ID_LENGTH);
  if (period === undefined) return { tenant, source, id };
  checkPart("period", period, MAX_PART_LENGTH);
  return { tenant, source, id, period };
}

/** A numbered batch's producer, numbers and length, checked. Raises `oncekey_delivery_invalid`. */
export function checkNumberedBatch(batch: Producer & NumberedSpan): Producer & NumberedSpan {
  const { tenant, source, producer, epoch } = checkNumbered({ ...batch, sequence: batch.first });
  const { first, count } = batch;
  if (first > HIGHEST_SEQUENCE) throw deliveryInvalid("the numbers of a batch are at most 2^31 - 1");
  if (typeof count !== "bigint" || count < 1n || count > MAX_BATCH_COUNT) {
    throw deliveryInvalid(`count is a bigint from 1 to ${MAX_BATCH_COUNT}`);
  }
  return { tenant, source, producer, epoch, first, count };
}

/** A numbered message's producer and number, checked. Raises `oncekey_delivery_invalid`. */
export function checkNumbered(message: Producer & SequenceNumber): Producer & SequenceNumber {
  const { tenant, source, producer, epoch, sequence } = message;
  checkPart("tenant", tenant, MAX_PART_LENGTH);
  checkPart("source", source, MAX_PART_LENGTH);
  checkPart("producer", producer, MAX_PART_LENGTH);
  for (const number of [epoch, sequence]) {
    if (typeof number === "bigint" && number >= 0n && number <= MAX_NUMBER) continue;
    throw deliveryInvalid("epoch and sequence are bigints from 0 to 2^63 - 1");
  }
  return { tenant, source, producer, epoch, sequence };
}

/**
 * A subject and the version it moves to, as the store keeps it: dates count by their milliseconds. Raises
 * `oncekey_delivery_invalid`.
 */
export function checkSubject(subject: Subject, version: Date | bigint | number): { subject: Subject; version: bigint } {
  checkPart("subject", subject.subject, MAX_PART_LENGTH);
  const number = version instanceof Date ? version.getTime() : version;
  const whole = typeof number === "bigint" || Number.isSafeInteger(number) ? BigInt(number) : null;
  if (whole !== null && whole >= -MAX_NUMBER && whole <= MAX_NUMBER) return { subject, version: whole };
  throw deliveryInvalid("a version is a valid date, or a whole number that a bigint column holds");
}

function checkPart(name: string, part: unknown, most: number): void {
  if (typeof part !== "string" || part === "" || part.length > most) {
    throw deliveryInvalid(`${name} must be text of 1 to ${most} characters`);
  }
  if (!part.isWellFormed() || part.includes("\0")) {
    throw deliveryInvalid(`${name} must be well-formed text without NUL`);
  }
}

/** `oncekey_delivery_invalid`, for a reason that shows no value. */
export function deliveryInvalid(why: string): OncekeyError {
  return new OncekeyError(
    "oncekey_delivery_invalid",
    `The delivery cannot be taken in: ${why}. Nothing was run or remembered. Correct the consumer; redelivery alone changes nothing.`,
  );
}

/** First byte of a mark of authorship; the value codec's versions begin at 1. Frozen. */
const AUTHORSHIP = 0;

/**
 * What is kept as a delivery's value where no duplicate ever gets one: bytes that tell a consumer whose COMMIT went
 * unanswered that the row is its own, so that it does not reject what it has done itself.
 */
export function authorship(random: Uint8Array): Uint8Array {
  return Uint8Array.of(AUTHORSHIP, ...random);
}

/** Whether a delivery's value is a mark of {@link authorship} and nothing that a handler gave. */
export function isAuthorship(value: Uint8Array): boolean {
  return value[0] === AUTHORSHIP;
}
