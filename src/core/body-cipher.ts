import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { OncekeyError } from "./errors.ts";
import { frame } from "./framing.ts";

/** Version of the sealed form of bodies that lie outside of the database. Frozen: another layout gets another byte. */
const BODY_VERSION = 1;
const KEY_LENGTH = 32;
const NONCE_LENGTH = 12;

/** What sealing adds to a body: the tag, at its end. */
export const BODY_TAG_LENGTH = 16;

/** A key for one body and no other; it lies in its entry's outcome, which is sealed under the ring. */
export function newBodyKey(): Uint8Array {
  return new Uint8Array(randomBytes(KEY_LENGTH));
}

/**
 * Seals a body as it passes: AES-256-GCM under a key of its own, the entry's id as associated data, the tag after the
 * ciphertext. Under a key that is used once the nonce may be zeros.
 */
export async function* sealBody(
  key: Uint8Array,
  entryId: Uint8Array,
  plain: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const cipher = createCipheriv("aes-256-gcm", key, nonce(), options).setAAD(associated(entryId));
  for await (const chunk of plain) yield cipher.update(chunk);
  cipher.final();
  yield cipher.getAuthTag();
}

/**
 * Opens a sealed body of `length` bytes (with its tag) as it passes. What comes out is proven only when all of it has:
 * raises `oncekey_store_broken` in the end where it was changed, cut or belongs to another entry.
 */
export async function* openBody(
  key: Uint8Array,
  entryId: Uint8Array,
  sealed: AsyncIterable<Uint8Array>,
  length: number,
): AsyncGenerator<Uint8Array> {
  const decipher = createDecipheriv("aes-256-gcm", key, nonce(), options).setAAD(associated(entryId));
  const tag: Uint8Array[] = [];
  let left = length - BODY_TAG_LENGTH;
  for await (const chunk of sealed) {
    const plain = chunk.subarray(0, left);
    left -= plain.length;
    if (plain.length > 0) yield decipher.update(plain);
    if (plain.length < chunk.length) tag.push(chunk.subarray(plain.length));
  }
  try {
    decipher.setAuthTag(Buffer.concat(tag)).final();
  } catch (cause) {
    throw new OncekeyError(
      "oncekey_store_broken",
      "A stored body cannot be decrypted: it was changed, or belongs to another entry. It was left as it is; restore it from a backup.",
      { cause },
    );
  }
}

const options = { authTagLength: BODY_TAG_LENGTH };
const nonce = () => new Uint8Array(NONCE_LENGTH);
const associated = (entryId: Uint8Array) => frame(BODY_VERSION, [entryId, "body"]);
