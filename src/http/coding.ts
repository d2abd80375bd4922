import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";

/** What undoing a content coding gave. */
export type Decoded =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  /** A coding that is not read here, or several on top of each other. */
  | { readonly kind: "unsupported" }
  | { readonly kind: "too_large" }
  | { readonly kind: "malformed" };

type Decoder = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>;

// RFC 9110 §8.4.1: "deflate" is the zlib format, "x-gzip" is gzip.
const decoders: Readonly<Record<string, Decoder>> = {
  gzip: promisify(gunzip) as Decoder,
  "x-gzip": promisify(gunzip) as Decoder,
  deflate: promisify(inflate) as Decoder,
  br: promisify(brotliDecompress) as Decoder,
};

/** Longest output per byte of input, beyond a size where the ratio of honest text levels off. */
const MAX_RATIO = 250;
const RATIO_FREE_BYTES = 65_536;

/**
 * Undoes one content coding (gzip, deflate, br; `identity` and absence do nothing), never giving more than `limitBytes`
 * or 250 times the input: the size of what is sent says nothing of the memory it would take.
 */
export async function decodeContent(coding: string | null, bytes: Uint8Array, limitBytes: number): Promise<Decoded> {
  const names = codingNames(coding);
  const [name] = names;
  if (name === undefined) return bytes.length > limitBytes ? { kind: "too_large" } : { kind: "bytes", bytes };
  const decode = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
  if (decode === undefined || names.length > 1) return { kind: "unsupported" };
  const ratioBytes = Math.max(bytes.length * MAX_RATIO, RATIO_FREE_BYTES);
  try {
    // zlib itself stops at the bound. One byte more tells "exactly the limit" from "over it".
    const decoded = await decode(bytes, { maxOutputLength: Math.min(limitBytes, ratioBytes) + 1 });
    return decoded.length > Math.min(limitBytes, ratioBytes)
      ? { kind: "too_large" }
      : { kind: "bytes", bytes: decoded };
  } catch (error) {
    return { kind: (error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE" ? "too_large" : "malformed" };
  }
}

/** The codings in effect, in lower case, without `identity`. */
export function codingNames(coding: string | null): string[] {
  const names = (coding ?? "").split(",").map((name) => name.trim().toLowerCase());
  return names.filter((name) => name !== "" && name !== "identity");
}
