/**
 * The benchmark: contenders that work in turn, and what their rates are to each other.
 *
 *   npm run bench -- [--quick] [--only NAME,…] [--rounds N] [--json FILE] [--write] [--cpu-prof DIRECTORY]
 *
 * Nothing here passes or fails: ratios are medians with quartiles, counters are exact. docs/benchmarks.md says how to read
 * them.
 */
import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { runCommand, UsageError, wholeNumber } from "../lab/support/command.ts";
import { say } from "../lab/support/report.ts";
import { repositoryRoot } from "../scripts/check.ts";
import { type BenchChoices, GROUPS, measureAll } from "./bench.ts";
import { FIGURES, type Figures, summaryOf } from "./figures.ts";

const USAGE = `
npm run bench -- [--quick] [--only NAME,…] [--rounds N] [--slice-ms N] [--json FILE] [--write] [--cpu-prof DIRECTORY]

  --quick      the targets and the peers that are installed, under two minutes
  --only       some groups only: ${GROUPS.join(", ")}
  --rounds     how often each contender works (default 9, quick 5)
  --slice-ms   how long each time (default 3000, quick 600)
  --warm-up    requests in front of that (default 4000, quick 2500)
  --requests   how many the counters are read over (default 200)
  --json       writes the medians to a file
  --write      keeps the figures and writes the tables of docs/benchmarks.md
  --cpu-prof   leaves a processor profile of each measured process in a directory`;

interface Options extends BenchChoices {
  readonly json: string | null;
  readonly write: boolean;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      rounds: { type: "string" },
      "slice-ms": { type: "string" },
      "warm-up": { type: "string" },
      requests: { type: "string", default: "200" },
      json: { type: "string" },
      write: { type: "boolean", default: false },
      "cpu-prof": { type: "string" },
    },
  });
  const { quick, only, json, write } = values;
  const profile = values["cpu-prof"];
  return {
    quick,
    only: only === undefined ? null : groupsOf(only),
    pace: {
      rounds: wholeNumber("--rounds", values.rounds ?? (quick ? 5 : 9)),
      sliceMs: wholeNumber("--slice-ms", values["slice-ms"] ?? (quick ? 600 : 3_000), 10),
      warmUpRequests: wholeNumber("--warm-up", values["warm-up"] ?? (quick ? 2_500 : 4_000), 0),
      warmUpMs: quick ? 3_000 : 30_000,
    },
    countedRequests: wholeNumber("--requests", values.requests),
    profileDirectory: profile === undefined ? null : resolve(profile),
    json: json === undefined ? null : resolve(json),
    write,
  };
}

function groupsOf(only: string): string[] {
  const names = only.split(",");
  const stranger = names.find((name) => !GROUPS.includes(name));
  if (stranger === undefined) return names;
  throw new UsageError(`--only knows ${GROUPS.join(", ")}.`);
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options.profileDirectory !== null) await mkdir(options.profileDirectory, { recursive: true });
  const measured = await measureAll(options, say);
  const figures: Figures = { ...measured, command: commandOf(process.argv.slice(2)) };
  const summary = summaryOf(figures);
  say(JSON.stringify(summary.ratios));
  if (options.json !== null) await writeFile(options.json, `${JSON.stringify(summary, null, 2)}\n`);
  if (options.write) await keep(figures);
  return 0;
}

/** The command, without the places of files: they are of one machine, and change nothing. */
function commandOf(given: readonly string[]): string {
  const isPlace = (name: string | undefined) => name === "--json" || name === "--cpu-prof";
  const told = given.filter(
    (name, at) => !isPlace(name) && !isPlace(given[at - 1]) && !/^--(json|cpu-prof)=/.test(name),
  );
  return ["npm run bench", ...(told.length === 0 ? [] : ["--", ...told])].join(" ");
}

async function keep(figures: Figures): Promise<void> {
  await writeFile(join(repositoryRoot, FIGURES), `${JSON.stringify(figures, null, 2)}\n`);
  const child = spawn(process.execPath, ["--import", "tsx", "scripts/docs-tables.ts"], {
    cwd: repositoryRoot,
    stdio: "inherit",
  });
  const code = await new Promise((done) => child.once("exit", done));
  if (code !== 0) throw new Error("The figures were kept; the tables of docs/benchmarks.md could not be written.");
}

await runCommand(USAGE, main);
