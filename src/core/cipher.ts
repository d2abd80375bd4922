import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { OncekeyError } from "./errors.ts";
import { frame } from "./framing.ts";

/** A key for what is stored of requests. */
export interface EncryptionKey {
  /** Names the key in what it sealed; never used for another one. 1 to 255. */
  readonly id: number;
  /** 32 random bytes (AES-256). */
  readonly key: Uint8Array;
}

/** What is sealed: its place is bound to it, so that bytes moved to another row or column do not open. */
export type SealedPart = "input" | "context" | "message";

/** Seals and opens stored values; without keys both give the bytes as they are. */
export interface Cipher {
  seal(owner: Uint8Array, part: SealedPart, plain: Uint8Array): Uint8Array;
  /** Raises `oncekey_store_broken` for bytes that were changed or belong elsewhere, `oncekey_config_invalid` for a key that is not there. */
  open(owner: Uint8Array, part: SealedPart, stored: Uint8Array): Uint8Array;
}

/** First byte of sealed bytes; the value codec's versions stay below it. Frozen. */
const SEALED_VERSION = 0x81;
const KEY_LENGTH = 32;
const NONCE_LENGTH = 12;
const TAG_LENGTH = 16;
const HEAD_LENGTH = 2 + NONCE_LENGTH + TAG_LENGTH;

/**
 * AES-256-GCM under the first key; every key of the ring opens. Layout: version byte, key id, nonce (12 bytes), tag (16),
 * ciphertext; the owner's id and the part are associated data. Raises `oncekey_config_invalid` for a malformed ring.
 */
export function cipherOf(given: readonly EncryptionKey[]): Cipher {
  checkRing(given);
  // Copied: a caller that wipes its own bytes would have everything sealed under zeros.
  const ring = given.map(({ id, key }) => ({ id, key: Uint8Array.from(key) }));
  const [newest] = ring;
  return {
    seal: (owner, part, plain) => (newest === undefined ? plain : seal(newest, associated(owner, part), plain)),
    open(owner, part, stored) {
      if (stored[0] !== SEALED_VERSION) return stored;
      const key = ring.find(({ id }) => id === stored[1]);
      if (key === undefined) throw unknownKey(stored[1] ?? 0);
      return open(key, associated(owner, part), stored);
    },
  };
}

const associated = (owner: Uint8Array, part: SealedPart) => frame(SEALED_VERSION, [owner, part]);

function seal({ id, key }: EncryptionKey, about: Uint8Array, plain: Uint8Array): Uint8Array {
  const nonce = randomBytes(NONCE_LENGTH);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_LENGTH }).setAAD(about);
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return new Uint8Array(Buffer.concat([Uint8Array.of(SEALED_VERSION, id), nonce, cipher.getAuthTag(), sealed]));
}

function open({ key }: EncryptionKey, about: Uint8Array, stored: Uint8Array): Uint8Array {
  try {
    const nonce = stored.subarray(2, 2 + NONCE_LENGTH);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_LENGTH }).setAAD(about);
    decipher.setAuthTag(stored.subarray(2 + NONCE_LENGTH, HEAD_LENGTH));
    return new Uint8Array(Buffer.concat([decipher.update(stored.subarray(HEAD_LENGTH)), decipher.final()]));
  } catch (cause) {
    throw new OncekeyError(
      "oncekey_store_broken",
      "A stored value cannot be decrypted: it was changed, or belongs to another row. It was left as it is; restore the row from a backup.",
      { cause },
    );
  }
}

function checkRing(ring: readonly EncryptionKey[]): void {
  if (!Array.isArray(ring)) throw refused("it is a list of keys");
  const ids = (ring as readonly EncryptionKey[]).map(({ id }) => id);
  if (!ids.every((id) => Number.isInteger(id) && id >= 1 && id <= 255))
    throw refused("ids are whole numbers, 1 to 255");
  if (new Set(ids).size !== ids.length) throw refused("two keys have one id");
  const isKey = ({ key }: EncryptionKey) => key instanceof Uint8Array && key.length === KEY_LENGTH;
  if (!ring.every(isKey)) throw refused(`a key is ${KEY_LENGTH} bytes`);
}

function refused(why: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `encryptionKeys: ${why}. Nothing was started.`);
}

function unknownKey(id: number): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    `A stored value was encrypted under key ${id}, which is not in encryptionKeys. It was left as it is; put the key back into the ring.`,
  );
}
