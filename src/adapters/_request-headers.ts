import type { IncomingMessage } from "node:http";
import { nodeHeaderLines } from "./_node.ts";
import { webHeaderLines } from "./_web.ts";

/** The headers of the HTTP request that a call came in, with an object that is the same for all calls of that request. */
export interface RequestHeaders {
  readonly request: object;
  /** Path and query, where the context tells. */
  readonly url: string | null;
  lines(name: string): readonly string[];
}

interface HeaderHolder {
  readonly headers: object & { get?: unknown };
  readonly rawHeaders?: unknown;
  readonly url?: unknown;
}

/**
 * Finds the request in a framework's context: at `req` or `request` (Node's or the Fetch standard's), or as `headers` of
 * the context itself; `null` where there is none.
 */
export function requestHeaders(context: unknown): RequestHeaders | null {
  const { req, request } = (context ?? {}) as { readonly req?: unknown; readonly request?: unknown };
  const holder = [req, request, context].find(holdsHeaders);
  if (holder === undefined) return null;
  const { headers, url } = holder;
  return { request: headers, url: typeof url === "string" ? url : null, lines: (name) => linesOf(holder, name) };
}

function holdsHeaders(candidate: unknown): candidate is HeaderHolder {
  const { headers } = (candidate ?? {}) as { readonly headers?: unknown };
  return typeof headers === "object" && headers !== null;
}

function linesOf(holder: HeaderHolder, name: string): readonly string[] {
  if (Array.isArray(holder.rawHeaders)) return nodeHeaderLines(holder as unknown as IncomingMessage, name);
  const { headers } = holder;
  if (typeof headers.get === "function") return webHeaderLines(headers as Headers, name);
  // Hosts of functions hand the names over as the client wrote them: one that is not found would go unprotected.
  const fields = Object.entries(headers as Readonly<Record<string, string | readonly string[] | undefined>>);
  return fields.flatMap(([given, value]) => (given.toLowerCase() === name ? (value ?? []) : []));
}
