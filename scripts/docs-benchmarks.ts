import { type Figures, keptFigures } from "../bench/figures.ts";
import { PEERS } from "../bench/peers.ts";
import { spreadText } from "../bench/print.ts";
import type { ComparisonFigures, MeasuredRatio } from "../bench/run.ts";
import { markdownTable } from "./markdown-table.ts";

/** The tables of docs/benchmarks.md, by name: what the last `npm run bench -- --write` came to. */
export function benchmarkTables(): ReadonlyMap<string, string> {
  const figures = keptFigures();
  const of = (...groups: readonly string[]) => figures.comparisons.filter(({ group }) => groups.includes(group));
  return new Map([
    ["bench-run", `${figures.ranOn}, \`${figures.command}\`, ${figures.machine}.`],
    ["bench-targets", ratioTable(of("transaction", "replay", "groups", "unnamed"))],
    ["bench-kinds", ratioTable(of("kinds"))],
    ["bench-processor", processorTable(of("transaction", "replay", "groups", "peers"))],
    ["bench-counters", counterTable(figures)],
    ["bench-peers", peerTable(of("peers").flatMap(({ ratios }) => ratios))],
  ]);
}

const orDash = (text: string | null | undefined) => text ?? "–";

const costText = ({ costSpread }: MeasuredRatio) => orDash(costSpread && spreadText(costSpread));

function ratioTable(comparisons: readonly ComparisonFigures[]): string {
  const rows = comparisons.flatMap(({ title, ratios }) =>
    ratios.map((ratio) => {
      const { name, of, over, spread } = ratio;
      return [title, `\`${name}\``, `${of} over ${over}`, spreadText(spread), costText(ratio)];
    }),
  );
  const head = ["load", "ratio", "of what", "throughput: median (quartiles)", "by processor time in all"];
  return rows.length === 0 ? "Not part of the last run that was kept." : markdownTable(head, rows);
}

function processorTable(comparisons: readonly ComparisonFigures[]): string {
  const whole = (value: number | null | undefined) => orDash(value?.toFixed(0));
  const rows = comparisons.flatMap(({ title, contenders }) =>
    contenders.map(({ name, cpuMicros, allCpuMicros, peakRssBytes, bytesPerEntry }) => {
      const memory = peakRssBytes === null ? null : peakRssBytes / 2 ** 20;
      return [title, name, whole(cpuMicros?.median), whole(allCpuMicros?.median), whole(memory), whole(bytesPerEntry)];
    }),
  );
  const head = ["load", "contender", "µs, its process", "µs, all processes", "MiB at the most", "bytes an entry"];
  return markdownTable(head, rows);
}

function counterTable({ counters }: Figures): string {
  const rows = Object.entries(counters).map(([name, { statements, walBytes, walRecords, fsyncs, deadTuples }]) => {
    const wal = [walBytes.toFixed(0), walRecords.toFixed(1)];
    return [name, String(statements), ...wal, fsyncs.toFixed(1), deadTuples.toFixed(1)];
  });
  const head = ["a request of", "statements", "WAL bytes", "WAL records", "flushes", "dead tuples"];
  return markdownTable(head, rows);
}

function peerTable(ratios: readonly MeasuredRatio[]): string {
  const rows = PEERS.map(({ variant, label, lacks }) => {
    const ratio = ratios.find(({ name }) => name === variant);
    return [label, orDash(ratio && spreadText(ratio.spread)), orDash(ratio && costText(ratio)), lacks];
  });
  const head = [
    "peer",
    "Oncekey over it: throughput",
    "by processor time in all",
    "what it does not do, and Oncekey does",
  ];
  return markdownTable(head, rows);
}
