import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../scripts/check.ts";
import { AREAS, type Area } from "./areas.ts";
import { explanationOf } from "./explained.ts";
import { type MutationReport, scoreOf, survivorLine } from "./score.ts";

/** What a file came to when it was last tried. */
export interface FileScore {
  /** Digest of the source that was tried: a file that has changed since is to be tried again. */
  readonly source: string;
  readonly ranOn: string;
  readonly noticed: number;
  /** Of the noticed: those that never came to an end. */
  readonly timedOut: number;
  /** Survivors that mean the same as the original. */
  readonly explained: number;
  /** Survivors that nobody has looked at, a line each. */
  readonly open: readonly string[];
  /** Left alone: text for people, and code that runs once. */
  readonly ignored: number;
}

/** By the file's path. */
export type FileScores = Readonly<Record<string, FileScore>>;

/**
 * Where they are kept, with the project: the whole takes hours, so it is done file by file, and what was done is not done
 * again on another machine.
 */
const KEPT = join(repositoryRoot, "lab/mutation/scores.json");

/** What a report says of each of its files. */
export function scoresOf({ files }: MutationReport, ranOn: string): FileScores {
  return Object.fromEntries(
    Object.entries(files).map(([file, content]) => {
      const { killed, timedOut, survivors, ignored } = scoreOf({ files: { [file]: content } });
      const open = survivors.filter((survivor) => explanationOf(survivor) === null);
      const explained = survivors.length - open.length;
      const source = digestOf(content.source);
      return [file, { source, ranOn, noticed: killed, timedOut, explained, open: open.map(survivorLine), ignored }];
    }),
  );
}

/** All that are kept, with these in the place of older ones; files that are gone are forgotten. */
export function keepScores(found: FileScores): FileScores {
  const kept: FileScores = existsSync(KEPT) ? JSON.parse(readFileSync(KEPT, "utf8")) : {};
  const all = Object.entries({ ...kept, ...found }).filter(([file]) => existsSync(join(repositoryRoot, file)));
  const scores = Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(KEPT, `${JSON.stringify(scores, null, 2)}\n`);
  return scores;
}

/** The figures of each area that was tried. */
export function figuresOf(scores: FileScores): [string, string | number][] {
  return AREAS.flatMap((area) => areaFigures(area, scores));
}

function areaFigures({ name }: Area, scores: FileScores): [string, string | number][] {
  const files = Object.entries(scores).filter(([file]) => file.startsWith(`src/${name}/`));
  if (files.length === 0) return [];
  const sum = (count: (score: FileScore) => number) => files.reduce((total, [, score]) => total + count(score), 0);
  const [noticed, explained, open] = [
    sum((one) => one.noticed),
    sum((one) => one.explained),
    sum((one) => one.open.length),
  ];
  const tried = noticed + explained + open;
  const changed = files.filter(
    ([file, { source }]) => source !== digestOf(readFileSync(join(repositoryRoot, file), "utf8")),
  );
  return [
    [`${name}: files tried`, files.length],
    [`${name}: of them changed since`, changed.length],
    [`${name}: mutants tried`, tried],
    [`${name}: noticed`, noticed],
    [`${name}: of them by a time-out`, sum((one) => one.timedOut)],
    [`${name}: survived, explained`, explained],
    [`${name}: survived, not explained`, open],
    [`${name}: left alone (text for people, code that runs once)`, sum((one) => one.ignored)],
    [`${name}: score`, `${tried === 0 ? 100 : ((100 * noticed) / tried).toFixed(2)} %`],
  ];
}

function digestOf(source: string): string {
  return createHash("sha256").update(source).digest("hex").slice(0, 16);
}
