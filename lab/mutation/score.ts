import { matchesGlob } from "node:path";

/** A mutant as Stryker reports it (mutation testing elements, schema 2), as far as it is used here. */
interface ReportedMutant {
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly status:
    | "Killed"
    | "Survived"
    | "NoCoverage"
    | "Timeout"
    | "CompileError"
    | "RuntimeError"
    | "Ignored"
    | "Pending";
  readonly statusReason?: string;
  readonly location: {
    readonly start: { readonly line: number; readonly column: number };
    readonly end: { readonly line: number; readonly column: number };
  };
}

/** Stryker's report. */
export interface MutationReport {
  readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: readonly ReportedMutant[] }>>;
}

/** A mutant that no test noticed. */
export interface Survivor {
  readonly file: string;
  readonly line: number;
  /** That line of the source. */
  readonly code: string;
  readonly mutator: string;
  /** The source that was replaced, and by what. */
  readonly from: string;
  readonly to: string;
  /** No test ran the place at all. */
  readonly isUncovered: boolean;
}

/** What a run came to. */
export interface Score {
  readonly killed: number;
  /** Of the killed: those that never came to an end. Many of them say more of the machine than of the tests. */
  readonly timedOut: number;
  readonly survivors: readonly Survivor[];
  /** Left alone: text for people, and code that runs once where that was not asked for. */
  readonly ignored: number;
}

/**
 * The part of a report that this run made. Stryker also tells what earlier runs found in files that it was not asked for,
 * beside their source of today, which may be another one.
 */
export function triedOnly({ files }: MutationReport, globs: readonly string[]): MutationReport {
  const tried = Object.entries(files).filter(([file]) => globs.some((glob) => matchesGlob(file, glob)));
  return { files: Object.fromEntries(tried) };
}

/** Counts a report's mutants. A time-out is a kill: the broken code never came to an end. */
export function scoreOf({ files }: MutationReport): Score {
  const mutants = Object.entries(files).flatMap(([file, { source, mutants: own }]) =>
    own.map((mutant) => ({ file, source, mutant })),
  );
  const count = (...statuses: ReportedMutant["status"][]) =>
    mutants.filter(({ mutant }) => statuses.includes(mutant.status)).length;
  const survivors = mutants
    .filter(({ mutant: { status } }) => status === "Survived" || status === "NoCoverage")
    .map(({ file, source, mutant }) => survivorOf(file, source, mutant));
  const timedOut = count("Timeout");
  return { killed: count("Killed") + timedOut, timedOut, survivors, ignored: count("Ignored") };
}

/** Killed of all that were tried, in percent; 100 where none was. */
export function percentOf({ killed, survivors }: Pick<Score, "killed" | "survivors">): number {
  const tried = killed + survivors.length;
  return tried === 0 ? 100 : (100 * killed) / tried;
}

/** A survivor as a line. */
export function survivorLine({ file, line, mutator, from, to, isUncovered }: Survivor): string {
  return `${isUncovered ? "not reached" : "survived"}: ${file}:${line} ${mutator}: ${from} → ${to}`;
}

function survivorOf(file: string, source: string, mutant: ReportedMutant): Survivor {
  const { location, mutatorName, replacement = "", status } = mutant;
  return {
    file,
    line: location.start.line,
    code: (source.split("\n")[location.start.line - 1] ?? "").trim(),
    mutator: mutatorName,
    from: flat(sourceAt(source, location)),
    to: flat(replacement),
    isUncovered: status === "NoCoverage",
  };
}

/** The text between two places; lines and columns count from 1. */
function sourceAt(source: string, { start, end }: ReportedMutant["location"]): string {
  const lines = source.split("\n").slice(start.line - 1, end.line);
  const last = lines.length - 1;
  return lines
    .map((line, at) => line.slice(at === 0 ? start.column - 1 : 0, at === last ? end.column - 1 : undefined))
    .join("\n");
}

function flat(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
