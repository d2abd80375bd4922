import { type Pair, parsePairs } from "../core/body/form.ts";

/** A request target, taken apart. */
export interface Target {
  readonly path: string;
  /** The query's pairs, decoded, in their order. */
  readonly pairs: readonly Pair[];
}

/**
 * Path and query of a request target; the absolute form that proxies send (RFC 9112 §3.2.2) loses scheme and host. Raises
 * `idempotency_request_invalid` for a malformed query.
 */
export function splitTarget(target: string): Target {
  // A path alone, as nearly always, has neither.
  const origin =
    target.startsWith("/") && !target.includes("#")
      ? target
      : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "").replace(/#.*$/s, "");
  const at = origin.indexOf("?");
  const path = at < 0 ? origin : origin.slice(0, at);
  return { path: path === "" ? "/" : path, pairs: at < 0 ? [] : parsePairs(origin.slice(at + 1)) };
}
