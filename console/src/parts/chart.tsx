import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

/** A line of a chart. */
export interface Line {
  readonly name: string;
  /** Which of the page's colours: `--line-1` and so on. */
  readonly colour: 1 | 2 | 3 | 4;
  /** One for each instant; `null`: not known. */
  readonly values: readonly (number | null)[];
}

/** A small chart of the last hour. */
export interface ChartOf {
  readonly title: string;
  /** What the figures are: `per second`, `ms`. */
  readonly unit: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number | null) => string;
  /** The upper end of the scale is at least this. */
  readonly atLeast?: number;
}

const HEIGHT = 120;
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The last values in numbers, and the lines below them; the pointer chooses another instant. */
export function Chart({ title, unit, times, lines, format, atLeast = 1 }: ChartOf) {
  const [pointed, setPointed] = useState<number | null>(null);
  const place = useDrawn({ times, lines, atLeast, format, onPoint: setPointed });
  const at = pointed ?? lastKnown(lines);
  const shown = (line: Line) => format(line.values[at] ?? null);
  return (
    <section class="chart">
      <h2>
        {title} <span class="quiet">{unit}</span>
      </h2>
      <ul class="legend">
        {lines.map((line) => (
          <li key={line.name} class={`line-${line.colour}`}>
            <strong>{shown(line)}</strong> {line.name}
          </li>
        ))}
      </ul>
      <div
        ref={place}
        class="plot"
        role="img"
        aria-label={`${title}: ${lines.map((line) => `${line.name} ${shown(line)}`).join(", ")} ${unit}`}
      />
      <p class="at quiet">{pointed === null ? `since ${timeText(times[0])}` : timeText(times[pointed])}</p>
    </section>
  );
}

function lastKnown(lines: readonly Line[]): number {
  return Math.max(0, ...lines.map(({ values }) => values.findLastIndex((value) => value !== null)));
}

interface Drawing extends Pick<ChartOf, "times" | "lines" | "format"> {
  readonly atLeast: number;
  readonly onPoint: (at: number | null) => void;
}

function useDrawn({ times, lines, atLeast, format, onPoint }: Drawing) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = [times, ...lines.map(({ values }) => values)] as unknown as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  const scheme = useScheme();
  // Drawn anew for other colours only: the lines of a chart are always the same ones.
  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const own = new uPlot(plotOptions(box, lines, atLeast, format, onPoint), latest.current, box);
    plot.current = own;
    const observer = new ResizeObserver(() => own.setSize({ width: box.clientWidth, height: HEIGHT }));
    observer.observe(box);
    return () => {
      observer.disconnect();
      own.destroy();
    };
  }, [scheme]);
  // The data is put together at each rendering; its times tell whether it is another.
  useEffect(() => plot.current?.setData(latest.current), [times]);
  return place;
}

function plotOptions(
  box: HTMLElement,
  lines: readonly Line[],
  atLeast: number,
  format: ChartOf["format"],
  onPoint: (at: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(box);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--quiet"), font: `12px ${style.fontFamily}`, ticks: { show: false } };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { setScale: false } },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(atLeast, (high ?? 0) * 1.1)] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 70,
        size: 28,
        gap: 9,
        values: (plot, at) => at.map(clock(plot.data[0])),
      },
      {
        ...axis,
        grid: { stroke: colour("--rule"), width: 1 },
        size: 56,
        space: 36,
        values: (_plot, at) => at.map((value) => format(value)),
      },
    ],
    series: [
      {},
      ...lines.map(({ name, colour: at }) => ({
        label: name,
        stroke: colour(`--line-${at}`),
        width: 1.5,
        points: { show: false },
        spanGaps: true,
      })),
    ],
    hooks: { setCursor: [(own) => onPoint(own.cursor.idx ?? null)] },
  };
}

const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** Seconds are told where the chart spans a few minutes only. */
function clock(times: ArrayLike<number>): (at: number) => string {
  const spanS = (times[times.length - 1] ?? 0) - (times[0] ?? 0);
  const text = spanS < 600 ? seconds : minutes;
  return (at) => text.format(new Date(at * 1_000));
}

const timeText = (at: number | undefined): string => (at === undefined ? "" : seconds.format(new Date(at * 1_000)));

/** The browser's colours: light or dark, as they change. */
function useScheme(): boolean {
  const [dark, setDark] = useState(DARK.matches);
  useEffect(() => {
    const follow = () => setDark(DARK.matches);
    DARK.addEventListener("change", follow);
    return () => DARK.removeEventListener("change", follow);
  }, []);
  return dark;
}
