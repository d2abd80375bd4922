import { connect } from "node:net";

/** An answer to a request that was written byte by byte. */
export interface WireAnswer {
  readonly status: number;
  readonly contentType: string | undefined;
  readonly text: string;
}

/**
 * POSTs JSON with header lines that no HTTP client would send: text goes out as UTF-8, bytes as they are. The connection
 * is closed after the answer.
 */
export async function postRaw(url: string, lines: readonly (string | Buffer)[], body: unknown): Promise<WireAnswer> {
  const { port, pathname } = new URL(url);
  const bytes = Buffer.from(JSON.stringify(body));
  const framing = ["host: 127.0.0.1", "connection: close", `content-length: ${bytes.length}`];
  const standard = ["authorization: Bearer sk_test_acme", "content-type: application/json"];
  const head = [`POST ${pathname} HTTP/1.1`, ...framing, ...standard, ...lines, ""];
  const crlf = Buffer.from("\r\n");
  const socket = connect(Number(port), "127.0.0.1");
  socket.write(Buffer.concat([...head.flatMap((line) => [Buffer.from(line as string), crlf]), bytes]));
  const received: Buffer[] = [];
  for await (const chunk of socket) received.push(chunk as Buffer);
  const text = Buffer.concat(received).toString("utf8");
  return {
    status: Number(text.split(" ")[1]),
    contentType: /^content-type: (.*)\r$/im.exec(text)?.[1],
    text: text.slice(text.indexOf("\r\n\r\n") + 4),
  };
}
