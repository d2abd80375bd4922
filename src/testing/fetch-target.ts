import type { SentRequest, Target } from "./app-target.ts";
import type { HttpAnswer } from "./seen-answer.ts";

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** A function that answers a `Request`, called directly. */
export function fetchTarget(handle: (request: Request) => Response | Promise<Response>): Target {
  const build = ({ method, path, headers, body }: SentRequest, signal?: AbortSignal) => {
    const lines = headers.map(([name, value]): [string, string] => [name, value]);
    return new Request(new URL(path, "http://app.test"), {
      method,
      headers: lines,
      // Bytes of our own are never in shared memory, which the type of a body leaves out.
      body: body as Uint8Array<ArrayBuffer> | null,
      signal: signal ?? null,
    });
  };
  const reading = new Set<Reader>();
  return {
    send: async (request) => readAnswer(await handle(build(request)), reading),
    async hangUp(request) {
      const abort = new AbortController();
      const state = { over: false };
      const end = () => {
        state.over = true;
      };
      // What it answers or raises from here on, nobody hears.
      const running = async () => handle(build(request, abort.signal));
      running().then(end, end);
      await new Promise<void>((resolve) => setImmediate(resolve));
      abort.abort(new Error("the client hung up"));
      return { isOver: () => state.over, raised: () => null };
    },
    // An answer without an end would be read for ever, and keep the process alive.
    async close() {
      for (const reader of reading) reader.cancel().catch(() => {});
    },
  };
}

/** Reads an answer to its end; whoever closes the target meanwhile can cancel that. */
async function readAnswer(response: Response, reading: Set<Reader>): Promise<HttpAnswer> {
  const { status } = response;
  const headers = [...response.headers];
  const reader = response.body?.getReader();
  if (reader === undefined) return { status, headers, body: new Uint8Array() };
  reading.add(reader);
  const chunks: Uint8Array[] = [];
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) chunks.push(part.value);
  } finally {
    reading.delete(reader);
  }
  return { status, headers, body: Buffer.concat(chunks) };
}
