import { OncekeyError } from "../core/errors.ts";
import type { Exchange } from "./exchange.ts";
import { firstSentRule, type Profile } from "./profile.ts";

// RFC 9110 §5.6.7. The two obsolete forms name no time zone, or a year of two digits: not for an instant that decides.
const IMF_FIXDATE = /^[ \t]*((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT)[ \t]*$/;

/**
 * When the client says it first sent this request, in milliseconds since 1970 (Repeatable Requests 1.0,
 * `Repeatability-First-Sent`); `undefined`: it says nothing and need not. Raises `idempotency_request_invalid`.
 */
export function firstSentAtMs(profile: Profile, exchange: Exchange, hasKey: boolean): number | undefined {
  const firstSent = firstSentRule(profile);
  const lines = exchange.headerLines(firstSent.header);
  // Where the dialect has both or none, one alone is a client that believes itself protected.
  const expected = firstSent.required ? hasKey || lines.length > 0 : hasKey && lines.length > 0;
  if (!expected) return undefined;
  if (!hasKey) throw keyless(firstSent.header);
  const [line = "", ...others] = lines;
  const date = others.length === 0 ? (IMF_FIXDATE.exec(line)?.[1] ?? "") : "";
  const atMs = Date.parse(date);
  // A day that the calendar lacks (31 Feb) is moved on by some parsers: only what reads back as itself is a date.
  if (!Number.isNaN(atMs) && new Date(atMs).toUTCString() === date) return atMs;
  throw new OncekeyError(
    "idempotency_request_invalid",
    `The header ${firstSent.header} must name the instant of the first attempt, once, as an HTTP date (Sun, 06 Nov 1994 08:49:37 GMT). Nothing was run or stored. Send the same instant with every attempt.`,
  );
}

function keyless(header: string): OncekeyError {
  return new OncekeyError(
    "idempotency_key_missing",
    `The header ${header} came without the key it belongs to. Nothing was run or stored. Send both with every attempt, or none.`,
  );
}
