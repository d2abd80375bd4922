import { pipeline, Readable, type Transform } from "node:stream";
import { promisify } from "node:util";
import { createDeflateRaw, createInflateRaw, deflateRaw, inflateRaw } from "node:zlib";
import { OncekeyError } from "../core/errors.ts";
import type { HeaderLine } from "../core/outcome.ts";

/** Below this a body is not worth the work. */
const LEAST_BYTES = 1_024;

/** Types whose bytes are compressed already; others are tried. */
const COMPRESSED_TYPES =
  /^(?:image\/(?!svg|bmp|x-icon|vnd\.microsoft)|video\/|audio\/(?!wav|x-wav)|font\/woff|application\/(?:zip|gzip|x-gzip|zstd|x-7z|x-rar|vnd\.rar|x-bzip|x-xz|pdf|vnd\.openxmlformats|vnd\.oasis|epub|java-archive))/i;

/** Whether compressing a body of that length and those headers may pay. */
export function mayCompress(headers: readonly HeaderLine[], length: number): boolean {
  if (length < LEAST_BYTES) return false;
  return !headers.some(([name, value]) => name === "content-type" && COMPRESSED_TYPES.test(value.trim()));
}

/** Whether it did pay: reading is slower, so an eighth must be saved. */
export function pays(length: number, compressedLength: number): boolean {
  return compressedLength <= length - length / 8;
}

/** The bytes compressed (raw DEFLATE, RFC 1951), off the main thread. */
export async function compressed(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await deflate(bytes));
}

/** The original of `length` bytes, and never more memory than that. Raises `oncekey_store_broken` for anything else. */
export async function decompressed(bytes: Uint8Array, length: number): Promise<Uint8Array> {
  const original = await inflate(bytes, { maxOutputLength: Math.max(1, length) }).catch(changed);
  if (original.length !== length) throw changed();
  return new Uint8Array(original);
}

/** Compresses as it passes. */
export function compressing(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return through(chunks, createDeflateRaw());
}

/** The reverse. What comes out may be longer than anybody wants: bound it. Raises `oncekey_store_broken`. */
export async function* decompressing(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* through(chunks, createInflateRaw());
  } catch (error) {
    if (!isOfZlib(error)) throw error;
    throw changed(error);
  }
}

const deflate = promisify(deflateRaw);
const inflate: (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer> = promisify(inflateRaw);

function through(chunks: AsyncIterable<Uint8Array>, transform: Transform): AsyncIterable<Uint8Array> {
  // Errors reach whoever reads; the callback is only there so that none is unhandled.
  return pipeline(Readable.from(chunks, { objectMode: false }), transform, () => {});
}

function isOfZlib(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" && code.startsWith("Z_");
}

function changed(cause?: unknown): never {
  throw new OncekeyError(
    "oncekey_store_broken",
    "A stored body cannot be decompressed: it was changed or cut. It was left as it is; restore it from a backup.",
    { cause },
  );
}
