import type { Counters } from "./counters.ts";
import type { Spread } from "./measure.ts";
import type { ComparisonFigures, ContenderFigures, MeasuredRatio } from "./run.ts";

/** A ratio with its quartiles, as it is printed everywhere. */
export const spreadText = ({ median, lower, upper }: Spread): string =>
  `${median.toFixed(2)} (${lower.toFixed(2)}–${upper.toFixed(2)})`;

/** A comparison in lines: first the ratios, then what they are made of. */
export function comparisonLines({ title, load, contenders, ratios }: ComparisonFigures): string[] {
  const { clients, answerBytes } = load;
  return [
    `${title} · ${clients} clients, answers of ${answerBytes} bytes`,
    ...ratios.map(ratioLine),
    ...contenders.map(contenderLine),
  ];
}

function ratioLine({ name, of, over, spread, costSpread }: MeasuredRatio): string {
  const cost = costSpread === null ? "" : `; by processor time ${spreadText(costSpread)}`;
  return `  ${name}: ${spreadText(spread)} (${of} over ${over}${cost})`;
}

function contenderLine({ name, perSecond, cpuMicros, allCpuMicros, peakRssBytes }: ContenderFigures): string {
  const micros = (spread: Spread | null) => (spread === null ? "?" : String(Math.round(spread.median)));
  const memory = peakRssBytes === null ? "" : `, ${Math.round(peakRssBytes / 2 ** 20)} MiB at the most`;
  const cpu = `${micros(cpuMicros)} µs of processor a request, ${micros(allCpuMicros)} with database and clients`;
  return `  · ${name}: ${Math.round(perSecond.median)} a second, ${cpu}${memory}`;
}

/** What was counted, in one line. */
export function counterLine(name: string, counters: Counters): string {
  const { statements, walBytes, walRecords, fsyncs, deadTuples } = counters;
  const wal = `${Math.round(walBytes)} bytes of WAL in ${walRecords.toFixed(1)} records`;
  return `${name}: ${statements} statements, ${wal}, ${fsyncs.toFixed(2)} fsyncs, ${deadTuples.toFixed(2)} dead tuples`;
}
