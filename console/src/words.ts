const counted = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const dated = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const timed = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** A whole number with its thousands set apart. */
export const count = (value: number): string => counted.format(value);

/** A count that may be a lower bound. */
export const bounded = ({ count: value, more }: { readonly count: number; readonly more: boolean }): string =>
  more ? `${count(value)}+` : count(value);

/** A figure of a chart: three digits that matter. */
export const figure = (value: number | null): string => (value === null ? "–" : precise.format(value));

/** Local time; the day only where it is not today. */
export function localTime(iso: string): string {
  const at = new Date(iso);
  return at.toDateString() === new Date().toDateString() ? timed.format(at) : dated.format(at);
}

const STEPS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

/** A length of time in one unit, rounded down: `3 min`. */
function duration(ms: number): string {
  for (const [step, unit] of STEPS) if (ms >= step) return `${Math.floor(ms / step)} ${unit}`;
  return `${Math.max(0, Math.round(ms))} ms`;
}

/** How long ago it was, or in how much it will be. `nowMs`: since 1970. */
export function apart(iso: string, nowMs: number): string {
  const ms = nowMs - Date.parse(iso);
  if (Math.abs(ms) < 1_000) return "now";
  return ms > 0 ? `${duration(ms)} ago` : `in ${duration(-ms)}`;
}

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** A size in decimal units: `1.52 MB`. */
export function bytes(value: number): string {
  if (value === 0) return "0";
  const place = value < 1_000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(value) / 3));
  return `${precise.format(value / 1_000 ** place)} ${UNITS[place]}`;
}

/** The beginning of an id, by which people tell entries apart. */
export const shortId = (id: string): string => id.slice(0, 12);

const STATE_WORDS: Readonly<Record<string, string>> = {
  in_progress: "in progress",
  needs_recovery: "needs recovery",
};

/** A word of the database's as people write it. */
export const plainWord = (word: string): string => STATE_WORDS[word] ?? word.replaceAll("_", " ");

/** What a person is told of a failure. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
