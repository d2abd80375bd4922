import fc from "fast-check";
import { type CommandLine, type OptionTable, parseCommandLine } from "../../src/cli/command-line.ts";
import { databaseUrl, secretsOf } from "../../src/cli/database-url.ts";
import { givenCount, givenDuration, givenText } from "../../src/cli/given.ts";
import { givenKeys } from "../../src/cli/keys.ts";
import { laterOutcomeOf, MARKER, must, outcomeOf } from "./finding.ts";
import { bytesOfAll, type FuzzTarget, numbered, propertyOf, repeated, type Verdict } from "./target.ts";

const REFUSES = ["UsageError"];
const OPTIONS: OptionTable = {
  tenant: { value: "TENANT", meaning: "a value" },
  database: { value: "URL", meaning: "a value" },
  "older-than": { value: "DURATION", meaning: "a value" },
  json: { meaning: "a switch" },
  help: { meaning: "a switch" },
};
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
const nothing = parseCommandLine(["--help"], OPTIONS, []);
const lineWith = (option: string, value: string): CommandLine => ({ ...nothing, values: new Map([[option, value]]) });
/** A NUL ends an argument, as on every system. */
const argsOf = (input: Uint8Array) => Buffer.from(input).toString().split("\0");
const lineOf = (input: Uint8Array) => parseCommandLine(argsOf(input), OPTIONS, ["id"], "further ids");

/** The command line, and what values of options and variables mean. */
export const commandLineTarget: FuzzTarget = {
  name: "command-line",
  about: "the command line, its values, database URLs and keys: usage errors that repeat nothing",
  seeds: bytesOfAll([
    "entry\0--json",
    "--tenant\0acme\0entry\0--older-than=30d",
    "-h",
    "--\0--json\0-x",
    "--__proto__=1\0a",
    "--tenant=-x\0a\0b\0c",
    `--database=postgres://u:${MARKER}@h/d\0a`,
    "--tenant\0--json",
  ]),
  words: [
    "\0",
    "--",
    "-",
    "=",
    "--json",
    "--tenant",
    "--tenant=",
    "--help",
    "-h",
    "--no-json",
    "://",
    "@",
    MARKER,
    "30d",
    "1:",
    "\0--\0",
  ],
  run: (input) => secretsOf(argsOf(input), {}),
  try: tryLine,
  properties: [
    propertyOf("what is given comes back, in any order", fc.property(givenLine(), tryGiven)),
    propertyOf(
      "durations and counts are what they say",
      fc.property(fc.nat({ max: 99_999 }), fc.constantFrom("ms", "s", "min", "h", "d", "", "m"), (amount, unit) => {
        const factor = UNITS[unit];
        const given = lineWith("x", `${amount}${unit}`);
        const duration = outcomeOf(REFUSES, () => givenDuration(given, "x"));
        const holds = factor !== undefined && amount * factor <= 36_500 * 86_400_000;
        must((duration.kind === "value") === holds, "a duration");
        if (duration.kind === "value") must(duration.value === amount * (factor ?? 0), "another duration");
        const count = outcomeOf(REFUSES, () => givenCount(given, "x", 1_000));
        must((count.kind === "value") === (unit === "" && amount >= 1 && amount <= 1_000), "a count");
      }),
    ),
  ],
  families: [
    repeated("arguments", "", "a\0"),
    repeated("dashes", "", "-"),
    repeated("one argument", "--tenant=", "a"),
    repeated("colons and slashes", "--database=", "://"),
    repeated("colons", "--database=x://a", ":"),
    repeated("at signs", "--database=x://a:", "@"),
    numbered("addresses", "", (at) => `x://a${at}\0`),
  ],
};

async function tryLine(input: Uint8Array): Promise<Verdict> {
  const args = argsOf(input);
  const text = Buffer.from(input).toString();
  secretsOf(args, { DATABASE_URL: text, PGPASSWORD: text });
  const outcome = outcomeOf(REFUSES, () => lineOf(input));
  const given = lineWith("x", text);
  outcomeOf(REFUSES, () => givenDuration(given, "x"));
  outcomeOf(REFUSES, () => givenCount(given, "x", 10));
  outcomeOf(REFUSES, () => givenText(given, "x", 10));
  outcomeOf(REFUSES, () => databaseUrl(lineWith("database", text), {}));
  await laterOutcomeOf(REFUSES, () => givenKeys(lineWith("y", ""), { ONCEKEY_ENCRYPTION_KEYS: text }));
  if (outcome.kind === "refused") return "refused";
  const { operands, values, switches } = outcome.value;
  // Whoever asks for help gets it, whatever else stands there.
  if (switches.has("help")) return "accepted";
  must(operands.length > 0, "no operand");
  must(
    [...values.values(), ...operands].every((one) => args.some((arg) => arg.endsWith(one))),
    "something not given",
  );
  must(
    [...values.keys(), ...switches].every((name) => Object.hasOwn(OPTIONS, name)),
    "an option that there is not",
  );
  return "accepted";
}

interface Given {
  readonly tenant: string | null;
  readonly isJson: boolean;
  readonly operands: readonly string[];
  readonly order: number;
}

function givenLine(): fc.Arbitrary<Given> {
  const word = fc.string({ unit: "grapheme", minLength: 1, maxLength: 5 }).filter((text) => !text.includes("\0"));
  return fc.record({
    tenant: fc.option(word),
    isJson: fc.boolean(),
    operands: fc.array(word, { minLength: 1, maxLength: 3 }),
    order: fc.nat({ max: 2 }),
  });
}

function tryGiven({ tenant, isJson, operands, order }: Given): void {
  const options = [...(tenant === null ? [] : [`--tenant=${tenant}`]), ...(isJson ? ["--json"] : [])];
  const isPlain = operands.every((operand) => !operand.startsWith("-"));
  const args = order === 0 && isPlain ? [...operands, ...options] : [...options, "--", ...operands];
  const line = parseCommandLine(args, OPTIONS, ["id"], "further ids");
  must(JSON.stringify(line.operands) === JSON.stringify(operands), "other operands");
  must((line.values.get("tenant") ?? null) === tenant && line.switches.has("json") === isJson, "other options");
}
