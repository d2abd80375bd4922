import fc from "fast-check";
import { memoryStorage } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { answerOf } from "../../src/client/answer.ts";
import { httpDate, pauseMs, retryAfterMs } from "../../src/client/pauses.ts";
import { settingsOf } from "../../src/client/settings.ts";
import { NOON } from "../support/client-desk.ts";

const answer = (headers: Record<string, string>) => answerOf(503, Object.entries(headers), new Uint8Array());
const asked = (value: string, date?: string) =>
  retryAfterMs(answer({ "retry-after": value, ...(date === undefined ? {} : { date }) }), NOON);
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe("Retry-After", () => {
  it("is read in seconds", () => {
    fc.assert(
      fc.property(fc.nat(), (seconds) => {
        expect(asked(String(seconds))).toBe(seconds * 1_000);
      }),
    );
  });

  it("is read in the three forms of a date", () => {
    const forms = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"];
    expect(forms.map(httpDate)).toEqual(Array(3).fill(Date.UTC(1994, 10, 6, 8, 49, 37)));
  });

  it("as a date is held against the answer's own Date, and else against the local clock", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e9 }), fc.integer({ min: 0, max: 1e6 }), (epochS, seconds) => {
        const date = new Date(epochS * 1_000).toUTCString();
        const then = new Date((epochS + seconds) * 1_000).toUTCString();
        expect(asked(then, epochS === 0 ? undefined : date)).toBe(
          epochS === 0 ? Math.max(0, seconds * 1_000 - NOON) : seconds * 1_000,
        );
      }),
    );
  });

  it("in the past asks for no pause", () => {
    expect(asked("Sat, 31 Jan 2026 11:00:00 GMT")).toBe(0);
  });

  const nonsense = [
    "",
    "NaN",
    "-1",
    "1.5",
    "1e3",
    "Infinity",
    "soon",
    "5, 10",
    "0x10",
    "2026-01-31",
    "tomorrow 10:00:00",
  ];
  it.each(nonsense)("that makes no sense is ignored: %j", (value) => {
    expect(asked(value)).toBeNull();
  });

  it("is a number of milliseconds that is not negative, or null, whatever it holds", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (value, date) => {
        const ms = asked(value, date);
        expect(ms === null || ms >= 0).toBe(true);
      }),
    );
  });
});

describe("a pause", () => {
  const bounds = fc.record({
    minPauseMs: fc.integer({ min: 1, max: 5_000 }),
    maxPauseMs: fc.integer({ min: 1, max: 1e6 }),
  });

  it("lies anywhere below a bound that doubles up to maxPauseMs (full jitter)", () => {
    fc.assert(
      fc.property(bounds, random, fc.integer({ min: 0, max: 5_000 }), (limits, unit, retries) => {
        const settings = settingsOf({ storage: memoryStorage(), random: () => unit, ...limits });
        const bound = Math.min(limits.maxPauseMs, limits.minPauseMs * 2 ** retries);
        expect(pauseMs(retries, null, settings)).toBe(unit * bound);
      }),
    );
  });

  it("obeys Retry-After, plus at most minPauseMs, and never exceeds maxPauseMs", () => {
    fc.assert(
      fc.property(bounds, random, fc.bigInt({ min: 0n, max: 10n ** 30n }), (limits, unit, seconds) => {
        const settings = settingsOf({ storage: memoryStorage(), random: () => unit, ...limits });
        const ms = pauseMs(0, answer({ "retry-after": String(seconds) }), settings);
        const askedMs = Number(seconds) * 1_000;
        expect(ms).toBeLessThanOrEqual(limits.maxPauseMs);
        expect(ms).toBeGreaterThanOrEqual(Math.min(askedMs, limits.maxPauseMs));
        expect(ms).toBeLessThanOrEqual(askedMs + limits.minPauseMs);
      }),
    );
  });
});
