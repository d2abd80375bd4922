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
export type SealedPart =
  /** Of an entry, owned by its id. */
  | ("outcome" | "record")
  /** Of an entry, owned by its id and its row's tenant (see {@link ownerOf}), as whom a resume acts. */
  | ("input" | "context")
  /** Of a message, owned by its id and its row's tenant, to whom it goes: its declared context, its payload. */
  | ("message" | "payload")
  /** Of a remembered delivery, owned by its digest: what its handler gave. */
  | "delivery";

/** Seals and opens stored values; without keys both give the bytes as they are. */
export interface Cipher {
  /** Whether there are keys. */
  readonly seals: boolean;
  seal(owner: Uint8Array, part: SealedPart, plain: Uint8Array): Uint8Array;
  /**
   * Raises `oncekey_store_broken` for bytes that were changed, belong elsewhere or were sealed under another key of that id,
   * `oncekey_config_invalid` for a key that is not there.
   */
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
    seals: newest !== undefined,
    seal: (owner, part, plain) => (newest === undefined ? plain : seal(newest, associated(owner, part), plain)),
    open(owner, part, stored) {
      if (stored[0] !== SEALED_VERSION) return stored;
      const key = ring.find(({ id }) => id === stored[1]);
      if (key === undefined) throw unknownKey(stored[1] ?? 0);
      return open(key, associated(owner, part), stored);
    },
  };
}

/** Id of the key that a stored value is sealed under; `null`: it is not sealed. */
export function sealedUnder(stored: Uint8Array): number | null {
  return stored[0] === SEALED_VERSION ? (stored[1] ?? null) : null;
}

/** Sealed text begins so; JSON never does. Frozen. */
const SEALED_TEXT = "sealed:";

/** Version of the owner's form below. Frozen. */
const OWNER_VERSION = 1;

/** The owner of what is used together with the tenant that its row names: a row given to another tenant does not open. */
export function ownerOf(id: Uint8Array | string, tenant: string): Uint8Array {
  return frame(OWNER_VERSION, [id, tenant]);
}

/** Whose payload it is. */
export interface PayloadOwner {
  readonly id: string;
  readonly tenant: string;
}

/** The payload of a message as its text column keeps it: JSON as it is, or sealed for the message (base64url). */
export function sealPayload(cipher: Cipher, { id, tenant }: PayloadOwner, json: string): string {
  const plain = new TextEncoder().encode(json);
  const sealed = cipher.seal(ownerOf(id, tenant), "payload", plain);
  return sealed === plain ? json : SEALED_TEXT + Buffer.from(sealed).toString("base64url");
}

/** The same as {@link sealedUnder} of a stored payload. */
export function payloadSealedUnder(stored: string): number | null {
  return stored.startsWith(SEALED_TEXT) ? sealedUnder(sealedBytes(stored)) : null;
}

/** The JSON of a stored payload. Raises as {@link Cipher.open}. */
export function openPayload(cipher: Cipher, { id, tenant }: PayloadOwner, stored: string): string {
  if (!stored.startsWith(SEALED_TEXT)) return stored;
  const sealed = sealedBytes(stored);
  if (sealed[0] !== SEALED_VERSION) throw changed(null);
  return new TextDecoder().decode(cipher.open(ownerOf(id, tenant), "payload", sealed));
}

const sealedBytes = (stored: string) => new Uint8Array(Buffer.from(stored.slice(SEALED_TEXT.length), "base64url"));

const associated = (owner: Uint8Array, part: SealedPart) => frame(SEALED_VERSION, [owner, part]);

function seal({ id, key }: EncryptionKey, about: Uint8Array, plain: Uint8Array): Uint8Array {
  const nonce = randomBytes(NONCE_LENGTH);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_LENGTH }).setAAD(about);
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return new Uint8Array(Buffer.concat([Uint8Array.of(SEALED_VERSION, id), nonce, cipher.getAuthTag(), sealed]));
}

function open({ id, key }: EncryptionKey, about: Uint8Array, stored: Uint8Array): Uint8Array {
  try {
    const nonce = stored.subarray(2, 2 + NONCE_LENGTH);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_LENGTH }).setAAD(about);
    decipher.setAuthTag(stored.subarray(2 + NONCE_LENGTH, HEAD_LENGTH));
    return new Uint8Array(Buffer.concat([decipher.update(stored.subarray(HEAD_LENGTH)), decipher.final()]));
  } catch (cause) {
    throw changed(id, cause);
  }
}

function changed(id: number | null, cause?: unknown): OncekeyError {
  const otherKey = id === null ? "" : `, or key ${id} is not the one that it was encrypted under`;
  return new OncekeyError(
    "oncekey_store_broken",
    `A stored value cannot be decrypted: it was changed, or belongs to another row${otherKey}. It was left as it is; give the right key, or restore the row from a backup.`,
    { cause },
  );
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
