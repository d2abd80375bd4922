import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { OncekeyError } from "../core/errors.ts";
import { isInMemory, type OutcomeBody } from "../core/outcome.ts";
import { codingNames, type Decoded } from "./coding.ts";
import type { RecordingLimits } from "./recording-limits.ts";
import { createSpool, type Spool } from "./spool.ts";

/** What undoing the content coding of a recorded answer gave. */
export type Unfolded =
  | { readonly kind: "unfolded"; readonly body: OutcomeBody; readonly spool: Spool }
  | Exclude<Decoded, { readonly kind: "bytes" }>;

const decoders: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/**
 * Undoes one content coding of an answer, by its chunks into a spool, so that neither form has to lie in memory as a whole.
 * Bounded by the longest answer only: unlike a request it is the application's own, and may be as dull as it likes. Raises
 * `oncekey_stream_refused` where the spool cannot be written.
 */
export async function unfold(coding: string, body: OutcomeBody, limits: RecordingLimits): Promise<Unfolded> {
  const names = codingNames(coding);
  const [name = ""] = names;
  const decoder = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
  if (decoder === undefined || names.length > 1) return { kind: "unsupported" };
  const spool = createSpool(limits);
  let over = false;
  try {
    await pipeline(isInMemory(body) ? [body] : body.chunks(), decoder(), async (chunks: AsyncIterable<Uint8Array>) => {
      for await (const chunk of chunks) {
        over = spool.length + chunk.length > limits.maxAnswerBytes;
        if (!spool.append(chunk)) await spool.drained();
      }
    });
    return { kind: "unfolded", body: await spool.end(), spool };
  } catch (error) {
    spool.release();
    if (over) return { kind: "too_large" };
    if (error instanceof OncekeyError) throw error;
    return { kind: "malformed" };
  }
}
