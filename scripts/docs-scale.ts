import { keptFigures } from "../bench/figures.ts";
import { spreadText } from "../bench/print.ts";
import { ASSUMED, type Capacity, capacityOf, costOf } from "../bench/scale/capacity.ts";
import { keptScaleFigures, type ScaleFigures } from "../bench/scale/figures.ts";
import { markdownTable } from "./markdown-table.ts";

/** The tables of docs/scale.md, by name: the curves of the last `npm run bench:scale -- --write`, and what the bench's figures come to. */
export function scaleTables(): ReadonlyMap<string, string> {
  const figures = keptScaleFigures();
  return new Map([
    ["scale-run", `${figures.ranOn}, \`${figures.command}\`, ${figures.machine}.`],
    ["scale-curves", curveTable(figures)],
    ["scale-size", sizeTable(figures)],
    ["scale-costs", costTable()],
    ["scale-assumed", assumedTable()],
    ["scale-capacity", capacityTable()],
  ]);
}

const grouped = (value: number) => Math.round(value).toLocaleString("en");

function curveTable({ points }: ScaleFigures): string {
  const rows = points.map(({ work, entries, perSecond, overFewest }) => [
    ...[`\`${work}\``, grouped(entries), grouped(perSecond.median), spreadText(overFewest)],
  ]);
  return markdownTable(["work", "entries", "a second, median", "over the fewest entries: median (quartiles)"], rows);
}

function sizeTable({ bytesPerEntry }: ScaleFigures): string {
  const rows = bytesPerEntry.map(({ entries, bytes }) => [grouped(entries), grouped(bytes)]);
  return markdownTable(["entries", "bytes an entry, indexes included"], rows);
}

function costTable(): string {
  const cost = costOf(keptFigures());
  const rows = [
    ["processor time of the process that runs Oncekey", `${grouped(cost.apiMicros)} µs`],
    ["processor time of the database, at the most", `${grouped(cost.databaseMicros)} µs`],
    ["WAL, a small business insert included", `${grouped(cost.walBytes)} bytes`],
    ["statements, BEGIN, COMMIT and yours included", String(cost.statements)],
    ["table and indexes, until it is purged", `${grouped(cost.bytesPerEntry)} bytes`],
  ];
  return markdownTable(["a fresh `transaction`, answer of 200 bytes", "measured"], rows);
}

function assumedTable(): string {
  const { peak, retentionDays, busy, cores, heldMs } = ASSUMED;
  const rows = [
    ["the busiest second, over the average of a day", String(peak)],
    ["retention, in days", String(retentionDays)],
    ["share of the processors that may be busy in that second", String(busy)],
    ["cores of one primary", String(cores)],
    ["how long a fresh request holds its connection", `${heldMs} ms`],
  ];
  return markdownTable(["assumed", "value"], rows);
}

const DAY = 86_400;
const LOADS: readonly (readonly [label: string, perDay: number, steady: boolean])[] = [
  ["1 million a day", 1e6, false],
  ["10 million a day", 1e7, false],
  ["100 million a day", 1e8, false],
  ["1 billion a day", 1e9, false],
  ["1 million in every second", 1e6 * DAY, true],
];

function capacityTable(): string {
  const cost = costOf(keptFigures());
  const rows = LOADS.map(([label, perDay, steady]) => [label, ...cells(capacityOf(cost, perDay, steady))]);
  const head = ["fresh requests", "busiest second", "database cores", "API cores", "connections in use"];
  return markdownTable([...head, "WAL a second", "disk for entries", `primaries of ${ASSUMED.cores} cores`], rows);
}

function cells(capacity: Capacity): string[] {
  const { perSecond, databaseCores, apiCores, connections, walBytesPerSecond, diskBytes, primaries } = capacity;
  const cores = (value: number) => (value < 10 ? value.toFixed(1) : grouped(value));
  return [
    ...[grouped(perSecond), cores(databaseCores), cores(apiCores), grouped(Math.max(1, connections))],
    ...[bytesText(walBytesPerSecond), bytesText(diskBytes), grouped(primaries)],
  ];
}

function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1_000 ** power;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}
