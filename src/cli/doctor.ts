import { openClient } from "./client.ts";
import type { Command, Report } from "./command.ts";
import type { CommandLine } from "./command-line.ts";
import { databaseOptions, withDatabase } from "./database.ts";
import { databaseUrl } from "./database-url.ts";
import type { Given } from "./doctor/check.ts";
import { type Checked, examine, worstOf } from "./doctor/examine.ts";
import { viewOf } from "./doctor/view.ts";
import { doctorText } from "./doctor-text.ts";
import { givenCount, givenDuration } from "./given.ts";
import { withProgress } from "./progress.ts";

/** The default of the option `clientRetryWindowMs`. */
const CLIENT_WINDOW_MS = 12 * 3_600_000;

const LONG_TRANSACTION_MS = 10 * 60_000;

/** Measured: 13.5 µs of processor and 630 bytes of WAL for each that is purged. */
const MANY_PER_DAY = 10_000_000;

const MOST = 100_000;

/** `oncekey doctor`: looks for what breaks promises, and says how to mend it. */
export const doctorCommand: Command = {
  summary: "look for what is wrong, and say how to mend it",
  about: `Looks at schema, indexes, durability, isolation, pooler, connections, clocks, autovacuum, retention, purge, stuck
entries, messages, growth, and keys that seem to be made wrongly. Each finding says what was found, why it matters and
what to do. Only reads: every statement runs in a read-only transaction of at most 5 seconds, and of a large table only
a part is read, which the finding says. Shows no key, tenant or client, only digests of them and ids of entries.

Ends with 1 where a finding is an error, with --strict also where one is a warning.`,
  operands: [],
  options: {
    "client-window": { value: "DURATION", meaning: "how long your clients go on retrying; default: 12h" },
    pool: { value: "N", meaning: "connections in one process's pool" },
    processes: { value: "N", meaning: "processes with such a pool; default: 1" },
    concurrency: { value: "N", meaning: "requests at once in one process" },
    "long-transaction": { value: "DURATION", meaning: "one open for longer is a finding; default: 10min" },
    strict: { meaning: "warnings count as errors do" },
    ...databaseOptions,
  },
  examples: [
    "oncekey doctor",
    "oncekey doctor --client-window 72h --pool 10 --processes 8 --concurrency 20 --strict --json",
  ],
  async run(line) {
    const given = givenOf(line);
    return withDatabase(line, async ({ driver, schema }) => {
      const open = () => openClient(databaseUrl(line, process.env));
      const results = await withProgress((tell) => examine(viewOf({ driver, schema, given, open }), tell));
      return reported(schema, results, line.switches.has("strict"));
    });
  },
};

function givenOf(line: CommandLine): Given {
  return {
    clientWindowMs: givenDuration(line, "client-window") ?? CLIENT_WINDOW_MS,
    pool: givenCount(line, "pool", MOST) ?? null,
    processes: givenCount(line, "processes", MOST) ?? 1,
    concurrency: givenCount(line, "concurrency", MOST) ?? null,
    longTransactionMs: givenDuration(line, "long-transaction") ?? LONG_TRANSACTION_MS,
    manyPerDay: MANY_PER_DAY,
  };
}

function reported(schema: string, checks: readonly Checked[], isStrict: boolean): Report {
  const worst = worstOf(checks.flatMap(({ findings }) => findings.map(({ severity }) => severity)));
  const isWanting = worst === "error" || (isStrict && worst === "warning");
  return { exitCode: isWanting ? 1 : 0, data: { schema, worst, checks }, text: doctorText(checks) };
}
