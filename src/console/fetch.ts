import type { Answered, Asked } from "./exchange.ts";

/** A `Request` as the console reads it. */
export function webAsked(request: Request, place: Pick<Asked, "path" | "query">, signal: AbortSignal): Asked {
  return {
    ...place,
    method: request.method,
    native: request,
    secure: new URL(request.url).protocol === "https:",
    signal,
    // Hosts that make a Request from a socket do not always keep Host: its URL was made from it.
    header: (name) => request.headers.get(name) ?? (name === "host" ? new URL(request.url).host : null),
    readBody: (limitBytes) => readBody(request, limitBytes),
  };
}

async function readBody(request: Request, limitBytes: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    size += read.value.length;
    if (size > limitBytes) {
      reader?.cancel().catch(() => {});
      return null;
    }
    chunks.push(read.value);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

/** An answer as a `Response`; of a HEAD only its head. */
export function webResponse(
  method: string,
  { status, headers, body, stream }: Answered,
  gone: AbortController,
): Response {
  const lines = new Headers();
  for (const [name, value] of headers) lines.append(name, value);
  if (stream !== undefined) return new Response(streamBody(stream, gone), { status, headers: lines });
  const isBodyless = method === "HEAD" || status === 204;
  const sent = typeof body === "string" ? body : Uint8Array.from(body).buffer;
  return new Response(isBodyless ? null : sent, { status, headers: lines });
}

/** Text that a slow reader leaves lying, in chunks: then the stream is ended, and the page opens another. */
const MOST_WAITING = 64;

function streamBody(stream: NonNullable<Answered["stream"]>, gone: AbortController): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let isOpen = true;
        const end = () => {
          if (!isOpen) return;
          isOpen = false;
          controller.close();
          gone.abort();
        };
        gone.signal.addEventListener("abort", () => {
          isOpen = false;
        });
        const write = (text: string) => {
          if (!isOpen) return;
          controller.enqueue(encoder.encode(text));
          if ((controller.desiredSize ?? 0) <= 0) end();
        };
        stream({ write, end, signal: gone.signal });
      },
      cancel: () => gone.abort(),
    },
    { highWaterMark: MOST_WAITING },
  );
}
