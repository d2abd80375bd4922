import fc from "fast-check";
import { firstSentAtMs } from "../../src/http/first-sent.ts";
import { ietf } from "../../src/http/profiles/ietf.ts";
import { MARKER, must, outcomeOf } from "./finding.ts";
import { exchangeOf } from "./made-exchange.ts";
import { trimmed } from "./reference-header.ts";
import { bytesOfAll, type FuzzTarget, numbered, propertyOf, repeated, type Verdict } from "./target.ts";

const REFUSES = ["idempotency_request_invalid", "idempotency_key_missing"];
const linesOf = (input: Uint8Array) => Buffer.from(input).toString("latin1").split("\n");
const read = (lines: readonly string[]) => firstSentAtMs(ietf, exchangeOf({ "idempotency-first-sent": lines }), true);

/** The instant of the first attempt, as clients send it. */
export const firstSentTarget: FuzzTarget = {
  name: "first-sent",
  about: "instants of first attempts, against a calendar counted in days",
  seeds: bytesOfAll([
    "Sun, 06 Nov 1994 08:49:37 GMT",
    " Thu, 29 Feb 2024 23:59:59 GMT\t",
    "Fri, 31 Feb 2025 00:00:00 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "Mon, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:00:00 GMT",
    "1784563200",
    `${MARKER}\n${MARKER}`,
  ]),
  words: [
    "Sun",
    "Mon",
    ", ",
    "29 Feb ",
    "31 Dec ",
    "00",
    "24",
    "60",
    ":",
    " GMT",
    " UTC",
    "+0000",
    "\n",
    "\xa0",
    "0000",
    "9999",
    MARKER,
  ],
  run: (input) => read(linesOf(input)),
  try: tryInstant,
  properties: [
    propertyOf(
      "every instant of four-digit years comes back",
      fc.property(fc.integer({ min: -30_610_224_000, max: 253_402_300_799 }), (seconds) => {
        must(read([new Date(seconds * 1_000).toUTCString()]) === seconds * 1_000, "another instant");
      }),
    ),
  ],
  families: [
    repeated("blanks", "", " ", "x"),
    repeated("digits", "Sun, 06 Nov ", "1", " 08:49:37 GMT"),
    numbered("lines", "", () => "Sun, 06 Nov 1994 08:49:37 GMT\n"),
  ],
};

function tryInstant(input: Uint8Array): Verdict {
  const lines = linesOf(input);
  const [line = "", ...others] = lines;
  const expected = others.length === 0 ? referenceInstant(trimmed(line)) : undefined;
  const outcome = outcomeOf(REFUSES, () => read(lines));
  must((outcome.kind === "value") === (expected !== undefined), `the instant was ${outcome.kind}`);
  if (outcome.kind === "refused") return "refused";
  must(outcome.value === expected, "another instant");
  return "accepted";
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const isLeap = (year: number) => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
const lengthOf = (year: number, month: number) =>
  month === 1 ? 28 + Number(isLeap(year)) : 31 - Number([3, 5, 8, 10].includes(month));

/** IMF-fixdate (RFC 9110 §5.6.7) in milliseconds since 1970; `undefined`: there is no such instant. */
function referenceInstant(text: string): number | undefined {
  const match = /^(...), (\d\d) (...) (\d\d\d\d) (\d\d):(\d\d):(\d\d) GMT$/.exec(text);
  if (match === null) return undefined;
  const [day = 0, year = 0, hour = 0, minute = 0, second = 0] = [2, 4, 5, 6, 7].map((at) => Number(match[at]));
  const month = MONTHS.indexOf(match[3] ?? "");
  if (month === -1 || day < 1 || day > lengthOf(year, month) || hour > 23 || minute > 59 || second > 59)
    return undefined;
  const days = daysBefore(year) - daysBefore(1970) + monthsBefore(year, month) + day - 1;
  // 1 January 1970 was a Thursday. The years 0 to 99 are written as if the century had been left out.
  const weekday = DAYS[(((days + 4) % 7) + 7) % 7];
  if (weekday !== match[1] || year < 100) return undefined;
  return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000;
}

function daysBefore(year: number): number {
  const before = year - 1;
  return 365 * year + Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400);
}

function monthsBefore(year: number, month: number): number {
  return Array.from({ length: month }, (_, at) => lengthOf(year, at)).reduce((sum, days) => sum + days, 0);
}
