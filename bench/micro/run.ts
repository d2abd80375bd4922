/**
 * The program behind `npm run bench:micro`. Counted is processor time. A ratio is the median of many rounds, with its
 * quartiles; the microseconds are of this machine, and stand there for orientation only.
 */
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { runCommand, UsageError, wholeNumber } from "../../lab/support/command.ts";
import { SIZES } from "./body.ts";
import { subjects } from "./index.ts";
import { interleaved, type Measured } from "./interleaved.ts";
import type { Subject } from "./subject.ts";
import { measureWaiting, type Waiting } from "./waiting.ts";

const say = (line: string) => void process.stdout.write(`${line}\n`);

const USAGE = "npm run bench:micro -- [--quick] [--rounds 40] [--only NAME,...] [--bytes 1024,...] [--json FILE]";
const QUICK_ROUNDS = 9;

/** One line of the result. */
interface Row extends Measured {
  readonly name: string;
  readonly bytes: number;
}

function chosen(only: string | undefined): readonly Subject[] {
  if (only === undefined) return subjects;
  const names = only.split(",");
  const stranger = names.find((name) => !subjects.some((subject) => subject.name === name));
  if (stranger === undefined) return subjects.filter(({ name }) => names.includes(name));
  throw new UsageError(`There is no subject ${stranger}; there are: ${subjects.map(({ name }) => name).join(", ")}.`);
}

const fixed = (value: number) => value.toFixed(value < 10 ? 2 : 1);

function rowText({ bytes, ratio, workUs, yardstickUs }: Row): string {
  const cells = [String(bytes), fixed(ratio.median), `${fixed(ratio.low)}–${fixed(ratio.high)}`, fixed(workUs)];
  return `| ${[...cells, fixed(yardstickUs), fixed((workUs * 1_024) / bytes)].join(" | ")} |`;
}

async function measureSubject(subject: Subject, rounds: number, sizes: readonly number[]): Promise<Row[]> {
  say(`\n${subject.name}: ${subject.what}\nagainst ${subject.against}\n`);
  say(
    "| body bytes | ratio | quartiles | µs | yardstick µs | µs per KiB |\n| ---: | ---: | ---: | ---: | ---: | ---: |",
  );
  const rows: Row[] = [];
  for (const bytes of subject.sizes ?? sizes) {
    const row = { name: subject.name, bytes, ...(await interleaved(await subject.pair(bytes), rounds)) };
    say(rowText(row));
    rows.push(row);
  }
  return rows;
}

const WAITERS = 10_000;
const WAITING_SIZES = [200, 1_024, 8_192, 65_536];

async function measureAllWaiting(): Promise<Waiting[]> {
  say(`\n${WAITERS} duplicates that wait for one running request: heap and buffers of each\n`);
  say("| body bytes | bytes per waiting duplicate |\n| ---: | ---: |");
  const all: Waiting[] = [];
  for (const bytes of WAITING_SIZES) {
    const waiting = await measureWaiting(bytes, WAITERS);
    say(`| ${bytes} | ${Math.round(waiting.bytesEach)} |`);
    all.push(waiting);
  }
  return all;
}

async function main(): Promise<number> {
  const option = { type: "string" } as const;
  const { values } = parseArgs({
    options: { quick: { type: "boolean" }, rounds: option, only: option, bytes: option, json: option },
  });
  const rounds = wholeNumber("--rounds", values.rounds ?? (values.quick === true ? QUICK_ROUNDS : 40));
  const sizes = values.bytes?.split(",").map((bytes) => wholeNumber("--bytes", bytes)) ?? SIZES;
  const rows: Row[] = [];
  for (const subject of chosen(values.only)) rows.push(...(await measureSubject(subject, rounds, sizes)));
  const waiting = values.only === undefined ? await measureAllWaiting() : [];
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify({ rows, waiting }, null, 2)}\n`);
  return 0;
}

await runCommand(USAGE, main);
