import { hex, toBase64 } from "./bytes.ts";

/**
 * A random UUID (RFC 9562) in lower case: version 4, or 7, which begins with the milliseconds of `nowMs`. From
 * `getRandomValues`, which pages without TLS have too (`randomUUID` they have not).
 */
export function newKey(version: 4 | 7, nowMs = 0): string {
  const random = hex(crypto.getRandomValues(new Uint8Array(16)));
  // 48 bits of an instant are twelve digits; the others stay random.
  const digits = version === 7 ? nowMs.toString(16).padStart(12, "0").slice(-12) + random.slice(12) : random;
  const variant = "89ab"[Number(`0x${random[16]}`) % 4];
  return digits.replace(/(.{8})(.{4}).(.{3}).(.{3})/, `$1-$2-${version}$3-${variant}$4-`);
}

/** What makes a key unusable, whatever it stands for; `null`: nothing. What servers of ours take, and most others. */
export function keyFault(key: string): string | null {
  if (!/^[!#-+\--[\]-~]{1,255}$/.test(key)) return "must be 1 to 255 visible ASCII";
  // Versions 3 and 5 are digests of a name (RFC 9562 §5.3, §5.5).
  return /^.{8}-.{4}-[35].{3}-[89ab].{3}-.{12}$/i.test(key) ? DERIVED : null;
}

/** Why a key made from the request is none. */
export const DERIVED = "is made from the request";

/**
 * Whether a key is nothing but the request: its body, alone or after its address, or a digest of that (SHA-1, SHA-256,
 * SHA-512; hexadecimal with or without dashes, or base64; whole or cut short). Such a key makes two equal orders one.
 * Digests are seen only where the platform computes them: not on pages without TLS.
 */
export async function isDerived(key: string, url: string, body: Uint8Array<ArrayBuffer>): Promise<boolean> {
  const plain = letters(key);
  for (const head of ["", url]) {
    const bytes = await new Blob([head, body]).arrayBuffer();
    if (new TextDecoder().decode(bytes) === key) return true;
    for (const bits of crypto.subtle ? [1, 256, 512] : []) {
      const digest = new Uint8Array(await crypto.subtle.digest(`SHA-${bits}`, bytes));
      // 64 bits are no coincidence.
      const begins = [hex(digest), toBase64(digest)].some((text) => letters(text).startsWith(plain));
      if (plain.length > 15 && begins) return true;
    }
  }
  return false;
}

/** What all spellings of a digest share: both alphabets of base64, dashes or none. */
const letters = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, "");
