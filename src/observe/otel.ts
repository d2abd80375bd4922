import type { Observer } from "../engine/emitter.ts";
import type { LabelOptions } from "./labels.ts";
import type { OtelApi } from "./otel-api.ts";
import { otelMetrics } from "./otel-metrics.ts";
import { otelSpans } from "./otel-spans.ts";

export type { LabelOptions } from "./labels.ts";
export type {
  OtelApi,
  OtelAttributes,
  OtelContext,
  OtelLink,
  OtelMeter,
  OtelMetricTerms,
  OtelSpan,
  OtelSpanContext,
  OtelSpanStart,
  OtelTracer,
} from "./otel-api.ts";

/** How OpenTelemetry is told. `tenants` also adds `oncekey.tenant` to spans. */
export interface OtelOptions extends LabelOptions {
  /** Makes spans. Default true. */
  readonly spans?: boolean;
  /** Makes metrics. Default true. */
  readonly metrics?: boolean;
  /** The value of `db.system.name`. Default `postgresql`. */
  readonly dbSystem?: string;
}

const SCOPE = "oncekey";

/**
 * Tells OpenTelemetry, whose API object is handed in: `otel(await import("@opentelemetry/api"))`. A replay's span is linked
 * to the trace of the request that ran, a sweeper's and a relay's to that of the request behind it, where that brought a
 * `traceparent`. Without a registered SDK the API does nothing.
 */
export function otel(api: OtelApi, options: OtelOptions = {}): Observer {
  const { spans = true, metrics = true, dbSystem = "postgresql", tenants = false } = options;
  const observers: Observer[] = [];
  if (spans) observers.push(otelSpans(api, api.trace.getTracer(SCOPE), dbSystem, tenants));
  if (metrics) observers.push(otelMetrics(api.metrics.getMeter(SCOPE), dbSystem, options));
  return (event) => {
    for (const observer of observers) observer(event);
  };
}
