import { Readable } from "node:stream";
import type { LongBody } from "../core/outcome.ts";

/** A long body as a stream of Node's, which lets go of the bytes when it ends, for whatever reason. */
export function readableOf(body: LongBody): Readable {
  const stream = Readable.from(body.chunks(), { objectMode: false });
  return stream.once("close", () => void body.release());
}

/**
 * The same as a web stream. Not by `Readable.toWeb`: that one counts chunks where it should count bytes, and would read all
 * of a body into memory for a slow client.
 */
export function webStreamOf(body: LongBody): ReadableStream<Uint8Array> {
  const chunks = body.chunks()[Symbol.asyncIterator]();
  const letGo = async () => {
    await chunks.return?.();
    await body.release();
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await chunks.next();
          if (next.done !== true) return controller.enqueue(next.value);
        } catch (error) {
          await letGo();
          throw error;
        }
        controller.close();
        await letGo();
      },
      cancel: letGo,
    },
    { highWaterMark: 0 },
  );
}
