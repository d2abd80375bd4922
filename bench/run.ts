import type { Comparison, Entrant, RatioRow } from "./comparisons.ts";
import { calledContender, type Field, type Load, type OpenContender, servedContender } from "./contenders.ts";
import {
  costRatioOf,
  interleave,
  type MeasuredSlice,
  type Pace,
  rateOf,
  ratioOf,
  type Spread,
  spreadOf,
} from "./measure.ts";
import { findPgbench, pgbenchContender } from "./pgbench.ts";
import { query } from "./world.ts";

/** What one contender came to. Rates are of one machine, and mean something beside each other only. */
export interface ContenderFigures {
  readonly name: string;
  readonly perSecond: Spread;
  /** Processor time of the measured process a request, in microseconds; `null` where the process is not ours. */
  readonly cpuMicros: Spread | null;
  /** The same of all processes: database and clients too. `null` where nobody can tell. */
  readonly allCpuMicros: Spread | null;
  readonly peakRssBytes: number | null;
  /** What an entry takes on the disk, indexes included; `null` where there are none, or too few to tell. */
  readonly bytesPerEntry: number | null;
}

/** A ratio with its quartiles. */
export interface MeasuredRatio extends RatioRow {
  readonly spread: Spread;
  /** The same by processor time in all, which a busy machine disturbs less; `null` where nobody can tell. */
  readonly costSpread: Spread | null;
}

/** What a comparison came to. */
export interface ComparisonFigures {
  readonly name: string;
  readonly group: string;
  readonly title: string;
  readonly load: Load;
  readonly contenders: readonly ContenderFigures[];
  readonly ratios: readonly MeasuredRatio[];
}

/** Fewer entries than this say little about the size of one. */
const ENTRIES_TO_TELL = 1_000;

/** Opens the contenders, lets them work in turn, closes them. pgbench is left out where it is not installed. */
export async function run(field: Field, comparison: Comparison, pace: Pace): Promise<ComparisonFigures> {
  const { name, group, title, load } = comparison;
  const contenders: OpenContender[] = [];
  try {
    for (const entrant of comparison.entrants) contenders.push(...(await opened(field, entrant, load)));
    const slices = await interleave(contenders, pace);
    const of = (contender: string) => slices.get(contender) ?? [];
    const figures = [];
    for (const contender of contenders) figures.push(await figuresOf(contender, of(contender.name)));
    const ratios = comparison.ratios
      .filter((ratio) => slices.has(ratio.of) && slices.has(ratio.over))
      .map((ratio) => measuredRatio(ratio, of(ratio.of), of(ratio.over)));
    return { name, group, title, load, contenders: figures, ratios };
  } finally {
    await Promise.all(contenders.map((contender) => contender.close()));
  }
}

function measuredRatio(ratio: RatioRow, one: readonly MeasuredSlice[], other: readonly MeasuredSlice[]): MeasuredRatio {
  return { ...ratio, spread: ratioOf(one, other), costSpread: costRatioOf(one, other) };
}

async function opened(field: Field, { variant, how }: Entrant, load: Load): Promise<OpenContender[]> {
  if (how === "served") return [await servedContender(field, variant, load)];
  if (how === "called") return [await calledContender(field, variant, load)];
  const program = findPgbench();
  if (program !== null) return [await pgbenchContender(field, load, program)];
  process.stderr.write("pgbench is not installed (Debian: postgresql-15): nothing is compared with it\n");
  return [];
}

async function figuresOf(contender: OpenContender, slices: readonly MeasuredSlice[]): Promise<ContenderFigures> {
  const micros = (part: "cpuMs" | "allCpuMs") => {
    const each = slices.flatMap(({ [part]: ms, requests }) => (ms === null ? [] : [(ms / requests) * 1_000]));
    return each.length === 0 ? null : spreadOf(each);
  };
  const usage = await contender.usage();
  return {
    name: contender.name,
    perSecond: spreadOf(slices.map(rateOf)),
    cpuMicros: micros("cpuMs"),
    allCpuMicros: micros("allCpuMs"),
    peakRssBytes: usage?.peakRssBytes ?? null,
    bytesPerEntry: await bytesPerEntry(contender.url),
  };
}

async function bytesPerEntry(url: string): Promise<number | null> {
  const sql =
    "SELECT pg_total_relation_size('oncekey.entry')::float8 AS bytes, count(*)::float8 AS n FROM oncekey.entry";
  const [row] = (await query(url, sql)) as { bytes: number; n: number }[];
  return row === undefined || row.n < ENTRIES_TO_TELL ? null : row.bytes / row.n;
}
