import { Readable } from "node:stream";
import { type BodyStore, checkPointer } from "../core/body-store.ts";
import { closable } from "./closable.ts";

/** What names an object. */
export interface S3Object {
  Bucket: string;
  Key: string;
}

/** What is sent to S3. */
export interface S3PutInput extends S3Object {
  Body: Readable | Uint8Array;
  ContentLength: number;
  ContentType: string;
}

/** What is used of the AWS SDK (version 3): its `S3` class as it is, for S3 or anything that speaks its protocol. */
export interface S3Client {
  putObject(input: S3PutInput, options?: { abortSignal: AbortSignal }): Promise<unknown>;
  getObject(input: S3Object, options?: { abortSignal: AbortSignal }): Promise<{ readonly Body?: unknown }>;
  deleteObject(input: S3Object): Promise<unknown>;
}

/** Where bodies lie in S3. */
export interface S3BodyStoreOptions {
  /** The application's own client; see {@link S3Client} for what of it is used. */
  readonly client: S3Client;
  /** An existing bucket, without a lifecycle rule that deletes what is younger than the retention. */
  readonly bucket: string;
  /** What the keys of objects begin with. Default `oncekey/`. */
  readonly prefix?: string;
}

/**
 * Keeps bodies as objects of a bucket. Needs the rights to put, get and delete objects below the prefix, and to list the
 * bucket: without that one S3 answers 403 for what is missing, and retries hear "unavailable" instead of "gone".
 */
export function s3BodyStore({ client, bucket, prefix = "oncekey/" }: S3BodyStoreOptions): BodyStore {
  const objectOf = (pointer: string): S3Object => ({ Bucket: bucket, Key: prefix + checkPointer(pointer) });
  return {
    name: "s3",
    async put(pointer, content, length) {
      const input = { ...objectOf(pointer), ContentLength: length, ContentType: "application/octet-stream" };
      const exact = exactly(content, length);
      if (length > RETRYABLE_BYTES) return putStream(client, input, exact);
      await client.putObject({ ...input, Body: await collected(exact) });
    },
    async get(pointer) {
      try {
        const left = new AbortController();
        const { Body } = await client.getObject(objectOf(pointer), { abortSignal: left.signal });
        // To end its stream is not enough: the SDK may have put others in front of the connection.
        return closable(chunksOf(Body), () => left.abort());
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    },
    async remove(pointer) {
      await client.deleteObject(objectOf(pointer));
    },
  };
}

/** The SDK can send again what it holds in memory, and nothing that streams. */
const RETRYABLE_BYTES = 1_048_576;

async function collected(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

async function putStream(
  client: S3Client,
  input: Omit<S3PutInput, "Body">,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  const broken = new AbortController();
  const over = new AbortController();
  const body = Readable.from(quietly(content, broken, over.signal), { objectMode: false });
  try {
    await client.putObject({ ...input, Body: body }, { abortSignal: broken.signal });
  } finally {
    over.abort();
    body.destroy();
    broken.signal.throwIfAborted();
  }
}

/**
 * Nobody listens to the errors of the streams that the SDK puts behind a body: one would hang the request and end the
 * process. So a source that breaks ends the request instead, and its stream just stays where it is until `over`.
 */
async function* quietly(
  content: AsyncIterable<Uint8Array>,
  broken: AbortController,
  over: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* content;
  } catch (error) {
    broken.abort(error);
    await new Promise((resolve) => over.addEventListener("abort", resolve, { once: true }));
  }
}

/** A server that is told a length waits for the rest of a shorter body, and may take the beginning of a longer one. */
async function* exactly(content: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let left = length;
  for await (const chunk of content) {
    left -= chunk.length;
    if (left < 0) break;
    yield chunk;
  }
  if (left !== 0) throw new Error(`A body of ${length} bytes came with ${left < 0 ? "more" : "fewer"}.`);
}

function chunksOf(body: unknown): AsyncIterable<Uint8Array> {
  if (typeof (body as Partial<AsyncIterable<Uint8Array>> | undefined)?.[Symbol.asyncIterator] === "function") {
    return body as AsyncIterable<Uint8Array>;
  }
  throw new Error("The S3 client answered an object whose body is no stream.");
}

function isMissing(error: unknown): boolean {
  const { name, $metadata } = (error ?? {}) as { name?: unknown; $metadata?: { httpStatusCode?: unknown } };
  return name === "NoSuchKey" || (name === "NotFound" && $metadata?.httpStatusCode === 404);
}
