import { BUCKETS_S, type Instrument, prometheusName } from "./instruments.ts";

/** The metrics of one process, as Prometheus reads them. */
export interface Exposition {
  add(name: string, row: Instrument, labels: Readonly<Record<string, string>>, value: number): void;
  /** All series in the text format 0.0.4. */
  text(): string;
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** The sum of a histogram, the value of all else. */
  value: number;
  /** How many values fell between each bound and the one before it, and in all; empty unless a histogram. */
  readonly buckets: number[];
  count: number;
}

interface Family {
  readonly row: Instrument;
  readonly series: Map<string, Series>;
}

/** Creates an empty exposition; metrics without a value yet are announced by their help and type only. */
export function createExposition(rows: readonly (readonly [string, Instrument])[]): Exposition {
  const families = new Map<string, Family>(
    rows.map(([name, row]) => [prometheusName(name, row), { row, series: new Map() }]),
  );
  return {
    add(name, row, labels, value) {
      const series = seriesOf(families.get(prometheusName(name, row)), labels);
      if (series !== null) add(series, row, value);
    },
    text: () => [...families].map(([name, family]) => familyText(name, family)).join(""),
  };
}

function seriesOf(family: Family | undefined, labels: Readonly<Record<string, string>>): Series | null {
  if (family === undefined) return null;
  const key = Object.values(labels).join("\0");
  const known = family.series.get(key);
  if (known !== undefined) return known;
  const buckets = family.row.kind === "histogram" ? BUCKETS_S.map(() => 0) : [];
  const series: Series = { labels, value: 0, buckets, count: 0 };
  family.series.set(key, series);
  return series;
}

function add(series: Series, { kind }: Instrument, value: number): void {
  series.count++;
  series.value = kind === "gauge" ? value : series.value + value;
  if (kind !== "histogram") return;
  const index = BUCKETS_S.findIndex((bound) => value <= bound);
  if (index >= 0) series.buckets[index] = (series.buckets[index] ?? 0) + 1;
}

function familyText(name: string, { row, series }: Family): string {
  const head = `# HELP ${name} ${row.help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${row.kind}\n`;
  return head + [...series.values()].map((one) => seriesText(name, row, one)).join("");
}

function seriesText(name: string, { kind }: Instrument, { labels, value, buckets, count }: Series): string {
  if (kind !== "histogram") return line(name, labels, value);
  let below = 0;
  const bounded = BUCKETS_S.map((bound, index) => {
    below += buckets[index] ?? 0;
    return line(`${name}_bucket`, { ...labels, le: String(bound) }, below);
  });
  return [
    ...bounded,
    line(`${name}_bucket`, { ...labels, le: "+Inf" }, count),
    line(`${name}_sum`, labels, value),
    line(`${name}_count`, labels, count),
  ].join("");
}

function line(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}\n`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
