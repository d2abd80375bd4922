import { connect, type Socket } from "node:net";

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  /** Header lines in order, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

/** A request, written byte by byte: what no HTTP client would let through can be sent. */
export interface RawRequest {
  readonly method?: string;
  readonly target: string;
  /** Header lines, each of them sent. Text is sent as Latin-1, as it stands. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: Uint8Array | string;
  /** Sends the body in chunks instead of naming its length. */
  readonly chunked?: boolean;
}

/** Sends one request to a port of this machine, on a connection of its own, and reads the answer to its end. */
export async function sendRaw(port: number, request: RawRequest): Promise<RawAnswer> {
  const socket = openRaw(port, request);
  const received: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) received.push(chunk);
  return parseAnswer(Buffer.concat(received));
}

/** Sends one request and leaves the connection to the caller, who may cut it. */
export function openRaw(port: number, request: RawRequest): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.write(requestBytes(request));
  return socket;
}

/** Sends a part of a request only, then hangs up; resolves when the connection is closed. */
export async function openUnfinished(
  port: number,
  request: RawRequest,
  part: "head" | "half of the body",
): Promise<void> {
  const bytes = requestBytes(request);
  const head = bytes.indexOf("\r\n\r\n") + 4;
  const end = part === "head" ? head : Math.floor((head + bytes.length) / 2);
  const socket = connect(port, "127.0.0.1");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write(bytes.subarray(0, end), () => socket.destroy());
  await closed;
}

function requestBytes({ method = "POST", target, headers = [], body = "", chunked = false }: RawRequest): Buffer {
  const bytes = Buffer.from(body);
  const framing: [string, string] = chunked
    ? ["transfer-encoding", "chunked"]
    : ["content-length", String(bytes.length)];
  const lines = [["host", "127.0.0.1"], ["connection", "close"], framing, ...headers] as const;
  const head = `${method} ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), chunked ? inChunks(bytes) : bytes]);
}

function inChunks(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 65_536) {
    const part = bytes.subarray(at, at + 65_536);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}

function parseAnswer(bytes: Buffer): RawAnswer {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) throw new Error(`The server closed the connection after ${bytes.length} bytes, before a whole head.`);
  const [first = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const status = Number(first.split(" ")[1]);
  const rest = bytes.subarray(end + 4);
  if (status === 100) return parseAnswer(rest);
  const chunked = headers.some(([name, value]) => name === "transfer-encoding" && /chunked/i.test(value));
  return { status, headers, body: chunked ? fromChunks(rest) : rest };
}

function fromChunks(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const line = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.subarray(at, line).toString("latin1"), 16);
    if (!(size > 0)) break;
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
  return Buffer.concat(parts);
}
