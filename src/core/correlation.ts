const USABLE = /^[\x21-\x7e]{1,255}$/;

/**
 * What ties work to its caller's logs, where it can travel on in a header: 1 to 255 visible ASCII characters. Anything
 * else is `null`: it comes from outside, and no work is refused for the sake of logs.
 */
export function usableCorrelation(given: unknown): string | null {
  return typeof given === "string" && USABLE.test(given) ? given : null;
}

// W3C Trace Context, §3.2.2. Lower case only; all zeros mean "no id"; version ff is forbidden.
const TRACE_PARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * The `traceparent` of a request (W3C Trace Context), or `null` where the header is absent, repeated or malformed. One of
 * a later version is read by its known fields and told on as version 00 (§3.2.4).
 */
export function traceParent(lines: readonly string[]): string | null {
  const [line, ...others] = lines;
  if (line === undefined || others.length > 0) return null;
  const match = TRACE_PARENT.exec(line.trim());
  if (match === null) return null;
  const [, version, trace, parent, flags, more] = match;
  if (version === "00") return more === undefined ? line.trim() : null;
  const sampled = Number.parseInt(flags as string, 16) & 1;
  return `00-${trace}-${parent}-0${sampled}`;
}

const REQUEST_ID = /^[\x21-\x7e]{1,200}$/;

/** An `X-Request-Id` of 1 to 200 visible ASCII characters, or `null`. */
export function requestId(lines: readonly string[]): string | null {
  const [line, ...others] = lines;
  if (line === undefined || others.length > 0) return null;
  const id = line.trim();
  return REQUEST_ID.test(id) ? id : null;
}
