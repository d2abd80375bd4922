import type { Point } from "../data/overview.ts";
import type { Live } from "../live.ts";
import type { ChartOf, Line } from "../parts/chart.tsx";
import { bytes, figure } from "../words.ts";

type Counts = Pick<
  Point,
  "completed" | "failed" | "replayed" | "busy" | "mismatch" | "unknown" | "refused" | "errors" | "waited"
>;

/** The charts of the last hour, from its points. */
export function chartsOf({ points, stepMs }: Pick<Live, "points" | "stepMs">): readonly ChartOf[] {
  const times = points.map(({ at }) => Date.parse(at) / 1_000);
  const line = (name: string, colour: Line["colour"], of: (point: Point) => number | null): Line => ({
    name,
    colour,
    values: points.map(of),
  });
  const rate = (name: string, colour: Line["colour"], of: (point: Counts) => number) =>
    line(name, colour, (point) => (of(point) * 1_000) / stepMs);
  const perSecond = { unit: "per second", times, format: figure };
  const charts: ChartOf[] = [
    {
      ...perSecond,
      title: "Requests",
      lines: [
        rate("completed", 1, ({ completed }) => completed),
        rate("replayed", 2, ({ replayed }) => replayed),
        rate("failed", 3, ({ failed }) => failed),
        rate("turned away", 4, unanswered),
      ],
    },
    {
      title: "Replay share",
      unit: "% of requests",
      times,
      format: figure,
      atLeast: 100,
      lines: [line("replays", 2, replayShare)],
    },
    {
      ...perSecond,
      title: "Waits and refusals",
      lines: [
        rate("waited", 1, ({ waited }) => waited),
        rate("busy", 3, ({ busy }) => busy),
        rate("other payload", 4, ({ mismatch }) => mismatch),
      ],
    },
    {
      title: "Latency",
      unit: "ms",
      times,
      format: figure,
      lines: [line("half within", 1, ({ p50Ms }) => p50Ms), line("95 % within", 3, ({ p95Ms }) => p95Ms)],
    },
    {
      title: "Unresolved",
      unit: "entries",
      times,
      format: figure,
      lines: [line("unresolved", 4, (point) => point.unresolved)],
    },
  ];
  if (points.some((point) => point.bytes !== null)) {
    charts.push({
      ...{ title: "Tables", unit: "with indexes", times, format: (value) => (value === null ? "–" : bytes(value)) },
      lines: [line("size", 1, (point) => point.bytes)],
    });
  }
  return charts;
}

const unanswered = ({ busy, mismatch, unknown, refused, errors }: Counts): number =>
  busy + mismatch + unknown + refused + errors;

/** `null` where nothing was asked: no share of nothing. */
function replayShare(point: Counts): number | null {
  const all = point.completed + point.failed + point.replayed + unanswered(point);
  return all === 0 ? null : (100 * point.replayed) / all;
}
