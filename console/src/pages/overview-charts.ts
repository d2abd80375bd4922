import type { Point } from "../data/overview.ts";
import type { Live } from "../live.ts";
import type { ChartOf, Line } from "../parts/chart.tsx";
import { bytes, figure } from "../words.ts";

type Counts = Pick<
  Point,
  "completed" | "failed" | "replayed" | "busy" | "mismatch" | "unknown" | "refused" | "errors" | "waited"
>;

type Plan = Omit<ChartOf, "times" | "lines"> & {
  /** Counts of a step, shown per second. */
  readonly isRate?: true;
  readonly lines: readonly (readonly [name: string, colour: Line["colour"], of: (point: Point) => number | null])[];
};

/** The charts of the last hour, from its points. Sizes are shown where they are known. */
export function chartsOf({ points, stepMs }: Pick<Live, "points" | "stepMs">): readonly ChartOf[] {
  const times = points.map(({ at }) => Date.parse(at) / 1_000);
  const chart = ({ lines, isRate, ...rest }: Plan): ChartOf => ({
    ...rest,
    times,
    lines: lines.map(([name, colour, of]) => ({
      name,
      colour,
      values: points.map(isRate ? (point) => ((of(point) ?? 0) * 1_000) / stepMs : of),
    })),
  });
  return plans()
    .filter(({ lines: [line] }) => line?.[0] !== "size" || points.some((point) => point.bytes !== null))
    .map(chart);
}

const plans = (): readonly Plan[] => [
  {
    ...{ title: "Requests", unit: "per second", format: figure, isRate: true },
    lines: [
      ["completed", 1, ({ completed }) => completed],
      ["replayed", 2, ({ replayed }) => replayed],
      ["failed", 3, ({ failed }) => failed],
      ["turned away", 4, unanswered],
    ],
  },
  {
    ...{ title: "Replay share", unit: "% of requests", format: figure, atLeast: 100 },
    lines: [["replays", 2, replayShare]],
  },
  {
    ...{ title: "Waits and refusals", unit: "per second", format: figure, isRate: true },
    lines: [
      ["waited", 1, ({ waited }) => waited],
      ["busy", 3, ({ busy }) => busy],
      ["other payload", 4, ({ mismatch }) => mismatch],
    ],
  },
  {
    ...{ title: "Latency", unit: "ms", format: figure },
    lines: [
      ["half within", 1, ({ p50Ms }) => p50Ms],
      ["95 % within", 3, ({ p95Ms }) => p95Ms],
    ],
  },
  {
    ...{ title: "Unresolved", unit: "entries", format: whole },
    lines: [["unresolved", 4, ({ unresolved }) => unresolved]],
  },
  {
    ...{ title: "Tables", unit: "with indexes", format: (value) => (value === null ? "–" : bytes(value)) },
    lines: [["size", 1, (point) => point.bytes]],
  },
];

/** Between two entries the scale tells nothing. */
const whole = (value: number | null): string => (value === null || Number.isInteger(value) ? figure(value) : "");

const unanswered = ({ busy, mismatch, unknown, refused, errors }: Counts): number =>
  busy + mismatch + unknown + refused + errors;

/** `null` where nothing was asked: no share of nothing. */
function replayShare(point: Counts): number | null {
  const all = point.completed + point.failed + point.replayed + unanswered(point);
  return all === 0 ? null : (100 * point.replayed) / all;
}
