import { createHash } from "node:crypto";
import { BODY_TAG_LENGTH } from "./body-cipher.ts";
import { OncekeyError } from "./errors.ts";
import type { HeaderLine } from "./outcome.ts";

/** An outcome as a store keeps it: all but the status is bytes that only the engine reads (sealed, compressed, elsewhere). */
export interface StoredOutcome {
  readonly status: number;
  readonly content: Uint8Array;
  /** Where the body lies in the `BodyStore`; `null`: in `content`. A store only needs it to tell which bodies are in use. */
  readonly pointer: string | null;
}

/** Versions of the encodings below. Frozen: another layout gets another byte. */
const PLAIN_VERSION = 1;
const PACKED_VERSION = 2;

/** What an encoding of version 1 holds. */
export interface PlainContent {
  readonly headers: readonly HeaderLine[];
  readonly body: Uint8Array;
}

/** Headers and a body as it is, and how long it was before it was compressed; `null`: it was not. */
export interface InRowContent extends PlainContent {
  readonly length: number | null;
}

/** Headers, and what a body that lies in the `BodyStore` must turn out to be. Lengths in bytes. */
export interface ElsewhereContent {
  readonly headers: readonly HeaderLine[];
  readonly elsewhere: {
    /** Of the original bytes. */
    readonly length: number;
    /** SHA-256 of the original bytes. */
    readonly digest: Uint8Array;
    /** Of what was put. */
    readonly storedLength: number;
    readonly compressed: boolean;
    /** The key that it is sealed under, after it was compressed; `null`: it is not sealed. */
    readonly key: Uint8Array | null;
  };
}

/** What is read of stored content. */
export type StoredContent = InRowContent | ElsewhereContent;

/**
 * Headers and body in one value: version byte, length of the header block (32 bits, big endian), header lines as a JSON
 * list of pairs, body bytes as they are. (The status has a column of its own, so that operators can read it.)
 */
export function encodeContent({ headers, body }: PlainContent): Uint8Array {
  return joined(Uint8Array.of(PLAIN_VERSION), headers, body);
}

/** Bits of a packed content's form. */
const COMPRESSED = 1;
const ELSEWHERE = 2;
const SEALED = 4;
const FORMS: readonly number[] = [
  COMPRESSED,
  ELSEWHERE,
  ELSEWHERE + COMPRESSED,
  ELSEWHERE + SEALED,
  ELSEWHERE + COMPRESSED + SEALED,
];

const DIGEST_LENGTH = 32;
const KEY_LENGTH = 32;

/**
 * Version 2: version byte, form byte, then as in version 1 with another body. Compressed (1): the original's length (64
 * bits, big endian) and the compressed bytes. Elsewhere (2): both lengths, the digest and, where it is sealed (4), its key.
 */
export function encodePacked(content: StoredContent): Uint8Array {
  if ("elsewhere" in content) {
    const { length, digest, storedLength, compressed, key } = content.elsewhere;
    const form = ELSEWHERE | (compressed ? COMPRESSED : 0) | (key === null ? 0 : SEALED);
    const body = [lengthBytes(length), lengthBytes(storedLength), digest, key ?? new Uint8Array()];
    return joined(Uint8Array.of(PACKED_VERSION, form), content.headers, ...body);
  }
  const { headers, length, body } = content;
  if (length === null) return encodeContent({ headers, body });
  return joined(Uint8Array.of(PACKED_VERSION, COMPRESSED), headers, lengthBytes(length), body);
}

/**
 * The reverse of {@link encodeContent} and {@link encodePacked}. Raises `idempotency_version_unknown` for an encoding of a
 * newer release, `oncekey_store_broken` for bytes that no release wrote.
 */
export function decodeContent(stored: Uint8Array): StoredContent {
  const [version, form = 0] = stored;
  const isPacked = version === PACKED_VERSION;
  if (version !== PLAIN_VERSION && !(isPacked && FORMS.includes(form))) throw unknownEncoding(version);
  const { headers, rest } = split(stored, isPacked ? 2 : 1);
  if (!isPacked) return { headers, body: rest.slice(), length: null };
  if ((form & ELSEWHERE) === 0) return { headers, length: lengthAt(rest, 0), body: rest.slice(8) };
  return { headers, elsewhere: elsewhereOf(form, rest) };
}

/** What may be told of content without its body. */
export interface ContentSummary {
  readonly headers: readonly HeaderLine[];
  /** Of the original body. */
  readonly bodyBytes: number;
  /** Hex; `null`: the body is compressed, and would have to be unpacked first. */
  readonly bodySha256: string | null;
  readonly compressed: boolean;
  /** The body lies in the `BodyStore`. */
  readonly elsewhere: boolean;
}

/** What may be told of opened content. Raises as {@link decodeContent}. */
export function contentSummary(opened: Uint8Array): ContentSummary {
  const content = decodeContent(opened);
  const { headers } = content;
  if ("elsewhere" in content) {
    const { length, digest, compressed } = content.elsewhere;
    return { headers, bodyBytes: length, bodySha256: Buffer.from(digest).toString("hex"), compressed, elsewhere: true };
  }
  const { length, body } = content;
  const bodySha256 = length === null ? createHash("sha256").update(body).digest("hex") : null;
  return { headers, bodyBytes: length ?? body.length, bodySha256, compressed: length !== null, elsewhere: false };
}

function elsewhereOf(form: number, rest: Uint8Array): ElsewhereContent["elsewhere"] {
  const isSealed = (form & SEALED) !== 0;
  const keyAt = 16 + DIGEST_LENGTH;
  const storedLength = lengthAt(rest, 8);
  if (rest.length !== keyAt + (isSealed ? KEY_LENGTH : 0) || (isSealed && storedLength < BODY_TAG_LENGTH))
    throw broken();
  return {
    length: lengthAt(rest, 0),
    digest: rest.slice(16, keyAt),
    storedLength,
    compressed: (form & COMPRESSED) !== 0,
    key: isSealed ? rest.slice(keyAt) : null,
  };
}

function joined(head: Uint8Array, lines: readonly HeaderLine[], ...body: readonly Uint8Array[]): Uint8Array {
  const headers = new TextEncoder().encode(JSON.stringify(lines));
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, headers.length);
  return new Uint8Array(Buffer.concat([head, length, headers, ...body]));
}

function split(stored: Uint8Array, at: number): { headers: readonly HeaderLine[]; rest: Uint8Array } {
  if (stored.length < at + 4) throw broken();
  const end = at + 4 + new DataView(stored.buffer, stored.byteOffset, stored.byteLength).getUint32(at);
  if (stored.length < end) throw broken();
  const headers = parsed(stored.subarray(at + 4, end));
  if (!Array.isArray(headers) || !headers.every(isHeaderLine)) throw broken();
  return { headers, rest: stored.subarray(end) };
}

function parsed(json: Uint8Array): unknown {
  try {
    // Strictly: a damaged byte must not become another character of a header.
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(json));
  } catch {
    // Not handed on as the cause: V8 quotes the text in its message.
    throw broken();
  }
}

function isHeaderLine(line: unknown): line is HeaderLine {
  return Array.isArray(line) && line.length === 2 && line.every((part) => typeof part === "string");
}

function lengthBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length));
  return bytes;
}

function lengthAt(bytes: Uint8Array, at: number): number {
  if (bytes.length < at + 8) throw broken();
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(at));
  if (!Number.isSafeInteger(length)) throw broken();
  return length;
}

function unknownEncoding(version: number | undefined): OncekeyError {
  if (version === undefined) return broken();
  return new OncekeyError(
    "idempotency_version_unknown",
    `The stored outcome has an encoding (${version}) that this version cannot read. Nothing was changed; finish the rollout and retry.`,
  );
}

function broken(): OncekeyError {
  return new OncekeyError(
    "oncekey_store_broken",
    "A stored outcome cannot be decoded: it was changed or cut. It was left as it is; restore the row from a backup.",
  );
}
