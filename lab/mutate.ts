/**
 * Mutation testing: changes the sources in thousands of small ways, one at a time, and counts how many of them some unit
 * test notices. Needs no server.
 *
 *   npm run mutate -- [--area core|engine] [--files glob,glob] [--jobs 1] [--static] [--proof]
 *
 * Prints the score of each file and every survivor that nobody has explained (lab/mutation/explained.ts). Results are kept
 * in `.data/mutation`: a second run tries only what has changed since. `--static` also mutates code that runs once, when
 * its module is loaded. `--proof` stores the scores of the files that were tried beside those of earlier runs
 * (lab/mutation/scores.json): the whole takes hours and may be done in parts. Ends with "N passed, N failed".
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { copyTree, type Tree } from "./canaries/tree.ts";
import { AREAS, type Area } from "./mutation/areas.ts";
import { explanationOf } from "./mutation/explained.ts";
import { type MutationReport, percentOf, type Score, scoreOf, survivorLine, triedOnly } from "./mutation/score.ts";
import { type FileScores, figuresOf, keepScores, scoresOf } from "./mutation/scores.ts";
import { CONFIG, type MutationRun, REPORT, setUp } from "./mutation/setup.ts";
import { runStryker } from "./mutation/stryker.ts";
import { type Check, check, equalCheck } from "./support/check.ts";
import { runCommand, UsageError, wholeNumber } from "./support/command.ts";
import { report, say } from "./support/report.ts";

interface CampaignOptions {
  readonly runs: readonly MutationRun[];
  readonly proof: boolean;
  readonly command: string;
}

function readOptions(): CampaignOptions {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({ options: { area: text, files: text, jobs: text, static: flag, proof: flag } });
  const jobs = wholeNumber("--jobs", values.jobs ?? "1");
  const files = values.files?.split(",");
  const areas = AREAS.filter((area) => isAsked(area, values.area, files));
  if (areas.length === 0)
    throw new UsageError(`There is no such area. Areas: ${AREAS.map(({ name }) => name).join(", ")}`);
  const runs = areas.map((area) => ({
    area,
    files: files?.filter((file) => isIn(area, file)) ?? area.files,
    jobs,
    statics: values.static,
  }));
  const asked = process.argv.slice(2).filter((word) => word !== "--proof");
  const command = ["npm run mutate", ...(asked.length > 0 ? ["--", ...asked] : [])].join(" ");
  return { runs, proof: values.proof, command };
}

function isAsked(area: Area, name: string | undefined, files: readonly string[] | undefined): boolean {
  if (name !== undefined && name !== area.name) return false;
  return files === undefined || files.some((file) => isIn(area, file));
}

const isIn = ({ name }: Area, file: string) => file.startsWith(`src/${name}/`);

/** A run with what came of it. */
interface Ran {
  readonly run: MutationRun;
  readonly score: Score;
  readonly files: FileScores;
}

async function mutate(tree: Tree, run: MutationRun): Promise<Ran> {
  await setUp(tree.root, run);
  await runStryker(tree.root, CONFIG);
  const text = await readFile(join(tree.root, REPORT), "utf8");
  const found = triedOnly(JSON.parse(text) as MutationReport, run.files);
  for (const line of fileLines(found)) say(line);
  return { run, score: scoreOf(found), files: scoresOf(found, new Date().toISOString().slice(0, 10)) };
}

/** The score of each file, the lowest first. */
function fileLines({ files }: MutationReport): string[] {
  const scores = Object.entries(files).map(([file, content]) => ({
    file,
    score: scoreOf({ files: { [file]: content } }),
  }));
  return scores
    .sort((a, b) => percentOf(a.score) - percentOf(b.score))
    .map(({ file, score }) => {
      const tried = score.killed + score.survivors.length;
      return `${percentOf(score).toFixed(1).padStart(6)} %  ${score.killed} of ${tried}  ${file}`;
    });
}

function checksOf({ run: { area }, score }: Ran): Check[] {
  const open = score.survivors.filter((survivor) => explanationOf(survivor) === null);
  return [
    equalCheck(`mutants of src/${area.name} were tried`, score.killed > 0, true),
    check(`every survivor of src/${area.name} is explained`, open.map(survivorLine)),
  ];
}

async function main(): Promise<number> {
  const { runs, proof, command } = readOptions();
  const ran: Ran[] = [];
  for (const run of runs) {
    const tree = await copyTree();
    try {
      ran.push(await mutate(tree, run));
    } finally {
      await tree.remove();
    }
  }
  const open = ran.flatMap(({ score }) => score.survivors).filter((survivor) => explanationOf(survivor) === null);
  for (const survivor of open) say(survivorLine(survivor));
  const found: FileScores = Object.assign({}, ...ran.map(({ files }) => files));
  const figures = figuresOf(proof ? keepScores(found) : found);
  return report({ campaign: "mutation", command, figures }, ran.flatMap(checksOf), { write: proof });
}

const USAGE = "npm run mutate -- [--area core|engine] [--files glob,glob] [--jobs 1] [--static] [--proof]";

await runCommand(USAGE, main);
