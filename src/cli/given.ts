import { type CommandLine, UsageError } from "./command-line.ts";

const UNITS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["min", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** The longest duration that may be given: a hundred years, in milliseconds. */
const LONGEST_MS = 36_500 * 86_400_000;

/** The duration that an option was given, in milliseconds: `500ms`, `90s`, `30min`, `24h`, `7d`. Raises {@link UsageError}. */
export function givenDuration({ values }: CommandLine, option: string): number | undefined {
  const given = values.get(option);
  if (given === undefined) return undefined;
  const [, digits = "", unit = ""] = /^(\d{1,15})(ms|s|min|h|d)$/.exec(given) ?? [];
  const ms = Number(digits) * (UNITS.get(unit) ?? Number.NaN);
  if (digits !== "" && ms <= LONGEST_MS) return ms;
  throw new UsageError(`--${option} must be a duration such as 90s, 30min, 24h or 7d.`);
}

/** The whole number that an option was given. Raises {@link UsageError} where it is none from 1 to `most`. */
export function givenCount({ values }: CommandLine, option: string, most: number): number | undefined {
  const given = values.get(option);
  if (given === undefined) return undefined;
  const count = /^\d{1,9}$/.test(given) ? Number(given) : 0;
  if (count >= 1 && count <= most) return count;
  throw new UsageError(`--${option} must be a whole number from 1 to ${most}.`);
}

/** The text that an option was given. Raises {@link UsageError} where it is longer than `most` characters. */
export function givenText({ values }: CommandLine, option: string, most: number): string | undefined {
  const given = values.get(option);
  if (given === undefined || (given.length <= most && given.isWellFormed() && !given.includes("\0"))) return given;
  throw new UsageError(`--${option} must be text of at most ${most} characters.`);
}
