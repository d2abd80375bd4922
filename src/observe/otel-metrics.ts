import type { Observer } from "../engine/emitter.ts";
import { BUCKETS_S, type Instrument, type InstrumentName, instruments, type Label } from "./instruments.ts";
import { type LabelOptions, labeller } from "./labels.ts";
import { measurementsOf } from "./measurements.ts";
import type { OtelAttributes, OtelMeter } from "./otel-api.ts";

/** Labels that OpenTelemetry's conventions have a name for; all others are `oncekey.<label>`. */
const STANDARD: { readonly [L in Label]?: string } = {
  status: "http.response.status_code",
  topic: "messaging.destination.name",
  source: "messaging.destination.name",
};

/** Counts what happens with a meter. `dbSystem`: the value of `db.system.name`. */
export function otelMetrics(meter: OtelMeter, dbSystem: string, options: LabelOptions): Observer {
  const withTenant = options.tenants ?? false;
  const rows = new Map(instruments(withTenant));
  const adds = new Map([...rows].map(([name, row]) => [name, adding(meter, name, row)]));
  const labelsOf = labeller(options);
  return (event) => {
    for (const { name, value, labels } of measurementsOf(event, Date.now(), withTenant)) {
      const row = rows.get(name);
      if (row !== undefined) adds.get(name)?.(value, attributesOf(row, labelsOf(row, labels), dbSystem));
    }
  };
}

function adding(meter: OtelMeter, name: InstrumentName, row: Instrument) {
  const options = { description: row.help, unit: row.unit };
  switch (row.kind) {
    case "counter": {
      const counter = meter.createCounter(name, options);
      return (value: number, attributes: OtelAttributes) => counter.add(value, attributes);
    }
    case "histogram": {
      const advice = { explicitBucketBoundaries: [...BUCKETS_S] };
      const histogram = meter.createHistogram(name, { ...options, advice });
      return (value: number, attributes: OtelAttributes) => histogram.record(value, attributes);
    }
    case "gauge": {
      const gauge = meter.createGauge(name, options);
      return (value: number, attributes: OtelAttributes) => gauge.record(value, attributes);
    }
  }
}

function attributesOf({ labels }: Instrument, values: Record<string, string>, dbSystem: string): OtelAttributes {
  const attributes: OtelAttributes = {};
  for (const label of labels) {
    const value = values[label] ?? "";
    if (value === "") continue;
    const status = label === "status" ? Number(value) : Number.NaN;
    attributes[STANDARD[label] ?? `oncekey.${label}`] = Number.isNaN(status) ? value : status;
  }
  if (labels.includes("topic")) attributes["messaging.operation.type"] = "send";
  else if (labels.includes("source")) attributes["messaging.operation.type"] = "process";
  else attributes["db.system.name"] = dbSystem;
  return attributes;
}
