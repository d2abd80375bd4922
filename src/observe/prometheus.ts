import type { Observer } from "../engine/emitter.ts";
import { createExposition } from "./exposition.ts";
import { BUCKETS_S, type Instrument, type InstrumentName, instruments, prometheusName } from "./instruments.ts";
import { type LabelOptions, labeller } from "./labels.ts";
import { measurementsOf } from "./measurements.ts";

/** How a metric of prom-client is made. */
interface PromConfiguration<R> {
  name: string;
  help: string;
  labelNames: string[];
  registers: R[];
  buckets?: number[];
}

type PromLabels = Record<string, string>;

/** What is used of `prom-client`: hand the module itself in. */
export interface PromClient<R> {
  Counter: new (configuration: PromConfiguration<R>) => { inc(labels: PromLabels, value: number): void };
  Histogram: new (configuration: PromConfiguration<R>) => { observe(labels: PromLabels, value: number): void };
  Gauge: new (configuration: PromConfiguration<R>) => { set(labels: PromLabels, value: number): void };
}

/** An app's own registry, which gets the metrics. */
export interface PromRegistry<R> {
  readonly client: PromClient<R>;
  readonly registry: R;
}

/** The metrics of this process, kept here. */
export interface PrometheusMetrics {
  /** For `createOncekey({ observe })`; may be given to several instances, which then count together. */
  readonly observe: Observer;
  /** All metrics in the text format that {@link contentType} names. */
  text(): string;
  readonly contentType: string;
  /** Answers a scrape: for `http.createServer`, Express (`app.get("/metrics", metrics.handler)`) and their like. */
  readonly handler: (request: unknown, response: MetricsResponse) => void;
}

/** What is used of a Node response. */
export interface MetricsResponse {
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
}

type Add = (name: InstrumentName, row: Instrument, labels: Record<string, string>, value: number) => void;

const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Counts what happens, for Prometheus to scrape; needs no library. Times are in seconds, labels are bounded. */
export function prometheus(options: LabelOptions = {}): PrometheusMetrics {
  const { add, text } = createExposition(instruments(options.tenants ?? false));
  return {
    observe: measuring(options, add),
    text,
    contentType: CONTENT_TYPE,
    handler(_, response) {
      response.setHeader("Content-Type", CONTENT_TYPE);
      response.end(text());
    },
  };
}

/** The same in an app's own registry of prom-client. Raises prom-client's error where the registry has the metrics already. */
export function promClientObserver<R>({ client, registry, ...options }: PromRegistry<R> & LabelOptions): Observer {
  const adds = new Map<string, (labels: PromLabels, value: number) => void>();
  for (const [name, row] of instruments(options.tenants ?? false))
    adds.set(name, metricOf({ client, registry }, name, row));
  return measuring(options, (name, _, labels, value) => adds.get(name)?.(labels, value));
}

function metricOf<R>({ client, registry }: PromRegistry<R>, name: string, row: Instrument) {
  const labelNames = [...row.labels];
  const configuration = { name: prometheusName(name, row), help: row.help, labelNames, registers: [registry] };
  switch (row.kind) {
    case "counter": {
      const counter = new client.Counter(configuration);
      return (labels: PromLabels, value: number) => counter.inc(labels, value);
    }
    case "histogram": {
      const histogram = new client.Histogram({ ...configuration, buckets: [...BUCKETS_S] });
      return (labels: PromLabels, value: number) => histogram.observe(labels, value);
    }
    case "gauge": {
      const gauge = new client.Gauge(configuration);
      return (labels: PromLabels, value: number) => gauge.set(labels, value);
    }
  }
}

function measuring(options: LabelOptions, add: Add): Observer {
  const labelsOf = labeller(options);
  const withTenant = options.tenants ?? false;
  const rows = new Map(instruments(withTenant));
  return (event) => {
    for (const { name, value, labels } of measurementsOf(event, Date.now(), withTenant)) {
      const row = rows.get(name);
      if (row !== undefined) add(name, row, labelsOf(row, labels), value);
    }
  };
}
