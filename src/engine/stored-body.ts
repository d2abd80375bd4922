import { createHash } from "node:crypto";
import { BODY_TAG_LENGTH, newBodyKey, openBody, sealBody } from "../core/body-cipher.ts";
import { type BodyStore, checkPointer, newPointer } from "../core/body-store.ts";
import { OncekeyError } from "../core/errors.ts";
import { type AnyOutcome, isInMemory, letGo, type OutcomeBody } from "../core/outcome.ts";
import { StoreFailure } from "../core/store.ts";
import type { ElsewhereContent } from "../core/stored-outcome.ts";
import { compressing, decompressing, mayCompress, pays } from "./compress.ts";
import { type EngineContext, maxDurationOf } from "./context.ts";
import { holdBytes } from "./held-bytes.ts";
import type { Operation } from "./operation.ts";
import { untilAborted } from "./until-aborted.ts";

/** The body store could not take a body; nothing of the outcome was stored. */
export class BodyNotStored extends StoreFailure {
  constructor(cause: unknown) {
    super("unavailable", "The body store did not take the body of an outcome.", { cause });
  }
}

/** Where a body was put, and what it must turn out to be. */
export interface PutBody {
  readonly pointer: string;
  readonly content: ElsewhereContent;
}

const DAY_MS = 86_400_000;

/**
 * Puts the body of an outcome into the body store, compressed where it pays and sealed where there are keys. It is noted
 * before, so that it is found again if the outcome never commits. Raises {@link BodyNotStored}, and the store's failures.
 */
export async function putBody(
  context: EngineContext,
  bodyStore: BodyStore,
  operation: Operation,
  id: Uint8Array,
  outcome: AnyOutcome,
): Promise<PutBody> {
  const pointer = newPointer(id, context.settings.random.bytes(16));
  const maxDurationMs = maxDurationOf(operation);
  // An attempt that can still store its outcome by then would have to be older than its time and a day.
  await context.store.bodies.note(pointer, id, maxDurationMs + DAY_MS);
  await context.point("put_body:before");
  const content = await inTime(context, maxDurationMs, (late) =>
    putContent(context, bodyStore, { id, pointer, outcome, late }),
  ).catch((cause: unknown) => {
    const failure = new BodyNotStored(cause);
    context.settings.onError(failure, { operation: operation.name, at: `put into the body store (${bodyStore.name})` });
    throw failure;
  });
  await context.point("put_body:after");
  return { pointer, content };
}

/** What is put; `late` aborts once it takes too long. */
interface Putting {
  readonly id: Uint8Array;
  readonly pointer: string;
  readonly outcome: AnyOutcome;
  readonly late: AbortSignal;
}

async function putContent(
  { cipher, settings }: EngineContext,
  bodyStore: BodyStore,
  { id, pointer, outcome: { headers, body }, late }: Putting,
): Promise<ElsewhereContent> {
  const original = () => measured(chunksOf(body), body.length, () => late.throwIfAborted());
  const packed = settings.compressBodies && mayCompress(headers, body.length) ? await pack(original()) : null;
  const letPackedGo = async () => {
    if (packed !== null) await letGo(packed.body);
  };
  // A put that hangs never comes to its end.
  late.addEventListener("abort", () => void letPackedGo().catch(() => {}), { once: true });
  try {
    late.throwIfAborted();
    const key = cipher.seals ? newBodyKey() : null;
    const plain = packed === null ? original() : { chunks: chunksOf(packed.body), digest: packed.digest };
    const storedLength = (packed?.body ?? body).length + (key === null ? 0 : BODY_TAG_LENGTH);
    await bodyStore.put(pointer, key === null ? plain.chunks : sealBody(key, id, plain.chunks), storedLength);
    const { length } = body;
    return { headers, elsewhere: { length, digest: plain.digest(), storedLength, compressed: packed !== null, key } };
  } finally {
    await letPackedGo();
  }
}

/** The body compressed; `null`: it does not pay. */
async function pack(original: Measured): Promise<{ body: OutcomeBody; digest: () => Uint8Array } | null> {
  const body = await holdBytes(compressing(original.chunks));
  if (pays(original.length, body.length)) return { body, digest: original.digest };
  await letGo(body);
  return null;
}

/** The body that content points at, proven whole and unchanged before its first byte is given; `null`: it is gone. */
export async function getBody(
  context: EngineContext,
  bodyStore: BodyStore,
  id: Uint8Array,
  pointer: string,
  { elsewhere }: ElsewhereContent,
): Promise<OutcomeBody | null> {
  try {
    const found = await foundInTime(context, bodyStore.get(checkPointer(pointer)));
    if (found === null) return null;
    const { length, storedLength, digest, compressed, key } = elsewhere;
    const stored = measured(eachPatiently(context, found), storedLength).chunks;
    const opened = key === null ? stored : openBody(key, id, stored, storedLength);
    const original = measured(compressed ? decompressing(opened) : opened, length);
    const held = await holdBytes(original.chunks);
    if (Buffer.compare(original.digest(), digest) === 0) return held;
    await letGo(held);
    throw changed();
  } catch (error) {
    if (error instanceof OncekeyError) throw error;
    throw new StoreFailure("unavailable", "The body store could not be read.", { cause: error });
  }
}

/** Removes a body. Raises what went wrong; {@link TookTooLong} where the body store hangs; the signal's reason. */
export async function removeBody(
  context: EngineContext,
  bodyStore: BodyStore,
  pointer: string,
  signal?: AbortSignal,
): Promise<void> {
  const removing = patiently(context, bodyStore.remove(checkPointer(pointer)));
  await (signal === undefined ? removing : untilAborted(removing, signal));
}

const CHUNK_BYTES = 65_536;

async function* chunksOf(body: OutcomeBody): AsyncGenerator<Uint8Array> {
  if (!isInMemory(body)) return yield* body.chunks();
  for (let at = 0; at < body.length; at += CHUNK_BYTES) yield body.subarray(at, at + CHUNK_BYTES);
}

/** Chunks whose length and, once they are all read, digest are known. */
interface Measured {
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly length: number;
  digest(): Uint8Array;
}

/** The same chunks, which must be `length` bytes in all: raises `oncekey_store_broken` as soon as they are not. */
function measured(chunks: AsyncIterable<Uint8Array>, length: number, check = () => {}): Measured {
  const hash = createHash("sha256");
  async function* passing(): AsyncGenerator<Uint8Array> {
    let left = length;
    for await (const chunk of chunks) {
      check();
      left -= chunk.length;
      if (left < 0) throw changed();
      hash.update(chunk);
      yield chunk;
    }
    if (left !== 0) throw changed();
  }
  return { chunks: passing(), length, digest: () => new Uint8Array(hash.digest()) };
}

/** The body store gave no answer in time; what it was asked for may still happen. */
export class TookTooLong extends Error {
  constructor() {
    super("it took too long");
  }
}

async function inTime<T>({ settings }: EngineContext, ms: number, run: (late: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const cancel = settings.clock.after(ms, () => late.abort(new TookTooLong()));
  try {
    // The work cannot be stopped, but its source can dry up.
    return await untilAborted(run(late.signal), late.signal);
  } finally {
    cancel();
  }
}

/** A body store that answers nothing for so long is taken for unreachable. */
const PATIENCE_MS = 30_000;

function patiently<T>(context: EngineContext, work: Promise<T>): Promise<T> {
  return inTime(context, PATIENCE_MS, () => work);
}

type Chunks = AsyncIterable<Uint8Array>;

/** A body that comes when nobody waits for it any more is left again: it may hold a file or a connection. */
async function foundInTime(context: EngineContext, asked: Promise<Chunks | null>): Promise<Chunks | null> {
  try {
    return await patiently(context, asked);
  } catch (error) {
    if (error instanceof TookTooLong) {
      asked.then((found) => found?.[Symbol.asyncIterator]().return?.()).catch(() => {});
    }
    throw error;
  }
}

async function* eachPatiently(context: EngineContext, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await patiently(context, iterator.next());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not awaited: one that hangs would hang here as well.
    void iterator.return?.()?.catch(() => {});
  }
}

function changed(): OncekeyError {
  return new OncekeyError(
    "oncekey_store_broken",
    "A stored body is not the one that its entry describes: it was changed or cut. It was left as it is; restore it from a backup.",
  );
}
