import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";

/** What a small body parser that comes after the binding makes of a request's stream: JSON, or nothing. */
export async function bodyText(req: IncomingMessage): Promise<unknown> {
  const body = await text(req);
  return body === "" ? undefined : JSON.parse(body);
}
