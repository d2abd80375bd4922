import { processorBelowMs } from "./processor.ts";

/** What one contender did in one slice of time. */
export interface Slice {
  readonly requests: number;
  readonly tookMs: number;
  /** Processor time of the measured process; `null` where it is not ours. */
  readonly cpuMs: number | null;
}

/** A slice, and what it took of the processors in all: database and clients too. `null` where nobody can tell. */
export interface MeasuredSlice extends Slice {
  readonly allCpuMs: number | null;
}

/** Something that works for a slice of time at full load. */
export interface Contender {
  readonly name: string;
  slice(forMs: number): Promise<Slice>;
}

/** A value's middle, and the quartiles around it. */
export interface Spread {
  readonly median: number;
  readonly lower: number;
  readonly upper: number;
}

/** How often and how long each contender works. */
export interface Pace {
  readonly rounds: number;
  readonly sliceMs: number;
  /** What each does first, which is forgotten: so many requests, or as many as this time is enough for. */
  readonly warmUpRequests: number;
  readonly warmUpMs: number;
}

/**
 * Lets the contenders work one after the other, round by round, and gives the slices of each. Every second round goes
 * backwards, so that what changes slowly (a disk that fills, a neighbour that wakes) meets all of them alike. What each does
 * first warms up and is forgotten.
 */
export async function interleave(
  contenders: readonly Contender[],
  pace: Pace,
): Promise<ReadonlyMap<string, readonly MeasuredSlice[]>> {
  const slices = new Map<string, MeasuredSlice[]>(contenders.map(({ name }) => [name, []]));
  for (const contender of contenders) await warmUp(contender, pace);
  for (let round = 0; round < pace.rounds; round++) {
    const order = round % 2 === 0 ? contenders : contenders.toReversed();
    for (const contender of order) slices.get(contender.name)?.push(await measured(contender, pace.sliceMs));
  }
  return slices;
}

async function measured(contender: Contender, sliceMs: number): Promise<MeasuredSlice> {
  const before = processorBelowMs();
  const slice = await contender.slice(sliceMs);
  const after = processorBelowMs();
  return { ...slice, allCpuMs: before === null || after === null ? null : after - before };
}

/** Code that ran a few hundred times only is not yet compiled as it will be: what has more of it would look worse. */
async function warmUp(contender: Contender, { warmUpRequests, warmUpMs, sliceMs }: Pace): Promise<void> {
  const endAtMs = performance.now() + warmUpMs;
  let requests = 0;
  while (requests < warmUpRequests && performance.now() < endAtMs)
    requests += (await contender.slice(sliceMs)).requests;
}

/** Requests a second. */
export const rateOf = ({ requests, tookMs }: Slice): number => (requests / tookMs) * 1_000;

/** The spread of one contender's rate over another's, round by round. Both have a slice of each round. */
export function ratioOf(one: readonly Slice[], other: readonly Slice[]): Spread {
  return spreadOf(one.flatMap((slice, round) => ratioIn(slice, other[round])));
}

/** The same of the requests that a second of all processors' time is enough for; `null` where nobody can tell. */
export function costRatioOf(one: readonly MeasuredSlice[], other: readonly MeasuredSlice[]): Spread | null {
  const perCpu = (slices: readonly MeasuredSlice[]) =>
    slices.flatMap(({ requests, allCpuMs, cpuMs }) =>
      allCpuMs === null ? [] : [{ requests, tookMs: allCpuMs, cpuMs }],
    );
  return perCpu(one).length === 0 ? null : ratioOf(perCpu(one), perCpu(other));
}

const ratioIn = (one: Slice, other: Slice | undefined) => (other === undefined ? [] : [rateOf(one) / rateOf(other)]);

/** Median and quartiles, between neighbours where they fall between them. Raises for no values. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) throw new Error("Nothing was measured.");
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => {
    const place = (sorted.length - 1) * share;
    const below = sorted[Math.floor(place)] ?? 0;
    return below + ((sorted[Math.ceil(place)] ?? 0) - below) * (place % 1);
  };
  return { median: at(0.5), lower: at(0.25), upper: at(0.75) };
}
