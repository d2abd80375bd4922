import { OncekeyError } from "../core/errors.ts";
import type { BodyRead } from "../http/exchange.ts";
import { readWebBody } from "./_web.ts";

/** What is used of a request of the Fetch interface, so that a framework's own class fits. */
export interface WebRequest {
  readonly url: string;
  readonly method: string;
  readonly bodyUsed: boolean;
  readonly headers: { get(name: string): string | null };
  clone(): unknown;
}

/**
 * Reads a copy of the body, so that the framework's own request object goes on to an existing handler unread. Raises
 * `oncekey_body_consumed` where somebody read it before.
 */
export async function readUnread(request: WebRequest, limitBytes: number): Promise<BodyRead> {
  if (request.bodyUsed) {
    throw new OncekeyError(
      "oncekey_body_consumed",
      "The request body was read before Oncekey, so the request cannot be compared. Nothing was run or stored. Bind the route itself, or read a clone.",
    );
  }
  // Before the copy: a copied stream that is given up half-way is kept in memory for the other reader.
  if (Number(request.headers.get("content-length") ?? 0) > limitBytes) return { kind: "too_large" };
  return readWebBody(request.clone() as Request, limitBytes);
}
