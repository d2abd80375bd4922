import type { Instrument, Label } from "./instruments.ts";
import type { Measurement } from "./measurements.ts";

/** What stands for all values of a label beyond the most that it may take. */
const OTHER = "other";

/** How labels are made. */
export interface LabelOptions {
  /** Adds the label `tenant` where an event tells it. Each tenant multiplies the series. Default false. */
  readonly tenants?: boolean;
  /** Most values that one label takes in this process; what comes later counts as `other`. Default 100. */
  readonly mostValues?: number;
}

/** Makes the labels of measurements: exactly those of the metric, none with more values than it may have. */
export function labeller({
  mostValues = 100,
}: LabelOptions): (row: Instrument, labels: Measurement["labels"]) => Record<string, string> {
  const seen = new Map<Label, Set<string>>();
  const bounded = (label: Label, value: string): string => {
    const known = seen.get(label) ?? new Set<string>();
    seen.set(label, known);
    if (known.has(value)) return value;
    if (known.size >= mostValues) return OTHER;
    known.add(value);
    return value;
  };
  return (row, labels) => {
    const made: Record<string, string> = {};
    for (const label of row.labels) made[label] = bounded(label, String(labels[label] ?? ""));
    return made;
  };
}
