import { connect } from "node:net";

type Line = readonly [name: string, value: string];

/** An answer as it came over the wire, framing undone. */
export interface WireAnswer {
  readonly status: number;
  readonly reason: string;
  /** Header lines in order, names in lower case. */
  readonly headers: readonly Line[];
  readonly body: Buffer;
  readonly trailers: readonly Line[];
  /** Statuses of informational answers before it. */
  readonly early: readonly number[];
}

/** Sends a POST on a connection of its own and reads all that comes back. */
export async function post(port: number, path: string, headers: readonly Line[] = []): Promise<WireAnswer> {
  const socket = connect(port, "127.0.0.1");
  const lines = [["host", "127.0.0.1"], ["connection", "close"], ["content-length", "2"], ...headers];
  const type = "content-type: application/json\r\n";
  socket.write(
    `POST ${path} HTTP/1.1\r\n${type}${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n{}`,
  );
  const received: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) received.push(chunk);
  return parsed(Buffer.concat(received), []);
}

function parsed(bytes: Buffer, early: readonly number[]): WireAnswer {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) throw new Error(`No whole head among the ${bytes.length} bytes that came.`);
  const [first = "", ...rest] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const [, code = "", reason = ""] = /^HTTP\/1\.[01] (\d{3}) ?(.*)$/.exec(first) ?? [];
  const status = Number(code);
  const after = bytes.subarray(end + 4);
  if (status < 200) return parsed(after, [...early, status]);
  const headers = rest.map(line);
  const chunked = headers.some(([name, value]) => name === "transfer-encoding" && value === "chunked");
  if (chunked) return { status, reason, headers, early, ...unchunked(after) };
  const length = headers.find(([name]) => name === "content-length")?.[1];
  const bodyless = status === 204 || status === 304;
  if (!bodyless && length !== undefined && Number(length) !== after.length) {
    throw new Error(`Content-Length is ${length}, and ${after.length} bytes came.`);
  }
  return { status, reason, headers, body: after, trailers: [], early };
}

function line(text: string): Line {
  const colon = text.indexOf(":");
  return [text.slice(0, colon).toLowerCase(), text.slice(colon + 1).trim()];
}

function unchunked(bytes: Buffer): Pick<WireAnswer, "body" | "trailers"> {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const end = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.subarray(at, end).toString("latin1"), 16);
    if (end < 0 || Number.isNaN(size)) throw new Error("The chunked body has no end.");
    if (size > 0) {
      parts.push(bytes.subarray(end + 2, end + 2 + size));
      at = end + 2 + size + 2;
      continue;
    }
    const tail = bytes
      .subarray(end + 2)
      .toString("latin1")
      .split("\r\n");
    return { body: Buffer.concat(parts), trailers: tail.filter((text) => text !== "").map(line) };
  }
}
