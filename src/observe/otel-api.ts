/** What is used of a context of `@opentelemetry/api`. */
export interface OtelContext {
  getValue(key: symbol): unknown;
}

/** What names a span elsewhere. */
export interface OtelSpanContext {
  traceId: string;
  spanId: string;
  traceFlags: number;
  isRemote?: boolean;
}

/** Attributes of spans and metrics. */
export type OtelAttributes = Record<string, string | number | boolean>;

/** A reference to a span of another trace. */
export interface OtelLink {
  context: OtelSpanContext;
}

/** What is used of a span. */
export interface OtelSpan {
  setAttributes(attributes: OtelAttributes): unknown;
  setStatus(status: { code: number }): unknown;
  addEvent(name: string, attributes?: OtelAttributes): unknown;
  /** Absent before version 1.9 of the API: then replays have no link. */
  addLink?(link: OtelLink): unknown;
  end(): void;
}

/** How a span is begun. */
export interface OtelSpanStart {
  kind?: number;
  root?: boolean;
  startTime?: number;
  attributes?: OtelAttributes;
  links?: OtelLink[];
}

/** What is used of a tracer. */
export interface OtelTracer {
  startSpan(name: string, options?: OtelSpanStart, context?: OtelContext): OtelSpan;
}

/** How a metric is described. */
export interface OtelMetricTerms {
  description?: string;
  unit?: string;
  advice?: { explicitBucketBoundaries?: number[] };
}

/** What is used of a meter. */
export interface OtelMeter {
  createCounter(name: string, options?: OtelMetricTerms): { add(value: number, attributes?: OtelAttributes): void };
  createHistogram(
    name: string,
    options?: OtelMetricTerms,
  ): { record(value: number, attributes?: OtelAttributes): void };
  createGauge(name: string, options?: OtelMetricTerms): { record(value: number, attributes?: OtelAttributes): void };
}

/** What is used of `@opentelemetry/api` (1.9 or later): hand the module itself in. */
export interface OtelApi {
  readonly context: { active(): OtelContext };
  readonly trace: {
    getTracer(name: string): OtelTracer;
    getSpanContext(context: OtelContext): OtelSpanContext | undefined;
    setSpan(context: OtelContext, span: OtelSpan): OtelContext;
    setSpanContext(context: OtelContext, spanContext: OtelSpanContext): OtelContext;
  };
  readonly metrics: { getMeter(name: string): OtelMeter };
}

/** The span that a `traceparent` names, as a remote one. It was checked when it came in. */
export function spanContextOf(traceparent: string): OtelSpanContext {
  const [, traceId = "", spanId = "", flags = "00"] = traceparent.split("-");
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
}
