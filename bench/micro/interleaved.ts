import type { Pair } from "./subject.ts";

/** Times and ratios of one pair. Durations in microseconds of processor time. */
export interface Measured {
  readonly workUs: number;
  readonly yardstickUs: number;
  readonly ratio: Quartiles;
}

/** The middle of many values, and a quarter to either side. */
export interface Quartiles {
  readonly low: number;
  readonly median: number;
  readonly high: number;
}

/** Processor time of one batch: long against the clock's grain, short against what else the machine does. */
const BATCH_US = 12_000;
/** The compiler has done what it will do after a few thousand calls, or after so many batches of long ones. */
const WARM_UP_CALLS = 4_000;
const WARM_UP_BATCHES = 12;

/**
 * Measures both ways in turn, a batch each, and swaps who begins: what the machine does meanwhile hits both. Counted is the
 * processor time of this process (all its threads, so collecting garbage counts), not the time that passed.
 */
export async function interleaved(pair: Pair, rounds: number): Promise<Measured> {
  const [workCount, yardstickCount] = [await countFor(pair.work), await countFor(pair.yardstick)];
  const work: number[] = [];
  const yardstick: number[] = [];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) work.push(await timed(pair.work, workCount));
    yardstick.push(await timed(pair.yardstick, yardstickCount));
    if (round % 2 === 1) work.push(await timed(pair.work, workCount));
  }
  const ratios = work.map((us, round) => us / (yardstick[round] as number));
  return { workUs: quartiles(work).median, yardstickUs: quartiles(yardstick).median, ratio: quartiles(ratios) };
}

/** Warms up, and gives how many calls make a batch. */
async function countFor(run: () => unknown): Promise<number> {
  let count = 1;
  let called = 0;
  for (let batch = 0; batch < WARM_UP_BATCHES || (called < WARM_UP_CALLS && batch < 4 * WARM_UP_BATCHES); batch++) {
    const us = await timed(run, count);
    called += count;
    count = Math.max(1, Math.ceil(BATCH_US / Math.max(us, 0.01)));
  }
  return count;
}

/** Processor time of one call, in microseconds, over so many. */
async function timed(run: () => unknown, count: number): Promise<number> {
  const before = process.cpuUsage();
  for (let call = 0; call < count; call++) {
    const given = run();
    if (given instanceof Promise) await given;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

/** Quartiles of some values, by the nearest rank. */
function quartiles(values: readonly number[]): Quartiles {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] as number;
  return { low: at(0.25), median: at(0.5), high: at(0.75) };
}
