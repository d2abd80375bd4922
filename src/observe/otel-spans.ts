import type { Observer } from "../engine/emitter.ts";
import type { DeliveryEvent, MessageEvent, RunEnd, RunEvent } from "../engine/event.ts";
import {
  type OtelApi,
  type OtelAttributes,
  type OtelContext,
  type OtelLink,
  type OtelSpan,
  type OtelTracer,
  spanContextOf,
} from "./otel-api.ts";

/** Numbers of the API's enumerations, which are part of its contract. */
const KIND = { internal: 0, client: 2, producer: 3, consumer: 4 } as const;
const ERROR = { code: 2 } as const;

interface Tracing {
  readonly api: OtelApi;
  readonly tracer: OtelTracer;
  readonly dbSystem: string;
  readonly tenants: boolean;
  /** Spans of runs that have not ended. */
  readonly runs: Map<number, OtelSpan>;
}

/** Makes spans of runs, their phases and calls, of messages and deliveries. */
export function otelSpans(api: OtelApi, tracer: OtelTracer, dbSystem: string, tenants: boolean): Observer {
  const tracing: Tracing = { api, tracer, dbSystem, tenants, runs: new Map() };
  return (event) => {
    if ("runId" in event) tellRun(tracing, event);
    else if ("messageId" in event) messageSpan(tracing, event);
    else if ("durationMs" in event) deliverySpan(tracing, event);
  };
}

function tellRun(tracing: Tracing, event: RunEvent): void {
  if (event.runId === null) return;
  if (event.kind === "began") {
    tracing.runs.set(event.runId, runSpan(tracing, event));
    return;
  }
  const span = tracing.runs.get(event.runId);
  if (span === undefined) return;
  switch (event.kind) {
    case "claimed":
    case "resumed":
      span.addEvent(`oncekey.${event.kind}`, { "oncekey.attempt": event.attempt });
      return;
    case "call_started":
    case "call_repeated":
      span.addEvent(`oncekey.${event.kind}`, { "oncekey.call": event.call, "oncekey.generation": event.generation });
      return;
    case "waited":
      span.addEvent("oncekey.waited", { "oncekey.duration_ms": event.durationMs });
      return;
    case "needs_recovery":
      span.addEvent("oncekey.needs_recovery", { "oncekey.reason": event.reason });
      return;
    case "reconciled":
      span.addEvent("oncekey.reconciled", { "oncekey.found": event.found });
      return;
    case "completed_late":
      return;
    case "phase_committed":
    case "call_answered":
    case "call_failed":
    case "call_found":
      stepSpan(tracing, span, event);
      return;
    case "swept":
      span.setAttributes({ "oncekey.as": event.as });
      endRun(tracing, event.runId, span);
      return;
    default:
      endSpan(tracing, span, event);
  }
}

/** Under the caller's active span, else under the one that the request names; a sweeper's has a trace of its own. */
function runSpan({ api, tracer, tenants, dbSystem }: Tracing, event: RunEvent): OtelSpan {
  const active = api.context.active();
  const isRemote = api.trace.getSpanContext(active) === undefined && event.trace !== null && event.by === "request";
  const parent = isRemote ? api.trace.setSpanContext(active, spanContextOf(event.trace as string)) : active;
  const attributes: OtelAttributes = {
    "oncekey.operation": event.operation,
    "oncekey.run_kind": event.runKind,
    "oncekey.by": event.by,
    "db.system.name": dbSystem,
  };
  if (event.entryId !== null) attributes["oncekey.entry_id"] = event.entryId;
  if (tenants && event.tenant !== null) attributes["oncekey.tenant"] = event.tenant;
  const own = event.by === "sweeper" ? { root: true, links: linksTo(event.trace) } : {};
  return tracer.startSpan(`oncekey ${event.operation}`, { kind: KIND.internal, attributes, ...own }, parent);
}

function endSpan(tracing: Tracing, span: OtelSpan, event: RunAboutEnd): void {
  span.setAttributes({ "oncekey.result": event.kind, "oncekey.waited_ms": event.waitedMs });
  if ("status" in event) span.setAttributes({ "http.response.status_code": event.status });
  if (event.kind === "replayed") for (const link of linksTo(event.originTrace)) span.addLink?.(link);
  if (event.kind === "refused") span.setAttributes({ "error.type": event.code });
  if (event.kind === "threw") span.setAttributes({ "error.type": event.error });
  if (FAILURES.includes(event.kind)) span.setStatus(ERROR);
  // A sweeper goes on until it says that it is done with the entry.
  if (event.by === "request" && event.runId !== null) endRun(tracing, event.runId, span);
}

type RunAboutEnd = Extract<RunEvent, { readonly kind: RunEnd["kind"] }>;

/** Ends that are the service's fault. What a client got wrong is no error of ours. */
const FAILURES: readonly RunEnd["kind"][] = [
  "threw",
  "lease_lost",
  "commit_unknown",
  "contention",
  "store_unavailable",
  "provisional",
];

function endRun({ runs }: Tracing, runId: number, span: OtelSpan): void {
  runs.delete(runId);
  span.end();
}

type StepEvent = Extract<RunEvent, { kind: "phase_committed" | "call_answered" | "call_failed" | "call_found" }>;

/** A step that has ended: its event comes with how long it took. */
function stepSpan({ api, tracer, dbSystem }: Tracing, run: OtelSpan, event: StepEvent): void {
  const startTime = Date.now() - event.durationMs;
  const parent = api.trace.setSpan(api.context.active(), run);
  if (event.kind === "phase_committed") {
    const attributes = { "oncekey.phase": event.phase, "oncekey.attempt": event.attempt, "db.system.name": dbSystem };
    tracer.startSpan(`phase ${event.phase}`, { kind: KIND.client, startTime, attributes }, parent).end();
    return;
  }
  const name = event.kind === "call_found" ? "find" : "call";
  const attributes = { "oncekey.call": event.call, "oncekey.generation": event.generation };
  const span = tracer.startSpan(`${name} ${event.call}`, { kind: KIND.client, startTime, attributes }, parent);
  if (event.kind === "call_failed") span.setStatus(ERROR);
  span.end();
}

function messageSpan({ api, tracer, tenants }: Tracing, event: MessageEvent): void {
  const isCreated = event.kind === "message_sent";
  const attributes: OtelAttributes = {
    "messaging.destination.name": event.topic,
    "messaging.message.id": event.messageId,
    "messaging.operation.type": isCreated ? "create" : "send",
    ...(isCreated ? {} : { "oncekey.event": event.kind, "oncekey.attempt": event.attempt }),
    ...(tenants ? { "oncekey.tenant": event.tenant } : {}),
  };
  const options = { kind: KIND.producer, attributes };
  const active = api.context.active();
  if (isCreated) {
    tracer.startSpan(`create ${event.topic}`, options, active).end();
    return;
  }
  const sending = { ...options, root: true, startTime: Date.now() - event.durationMs, links: linksTo(event.trace) };
  const span = tracer.startSpan(`send ${event.topic}`, sending, active);
  if (event.kind !== "message_delivered") span.setStatus(ERROR);
  span.end();
}

function deliverySpan({ api, tracer, tenants }: Tracing, event: DeliveryEvent): void {
  const attributes: OtelAttributes = {
    "messaging.destination.name": event.source,
    "messaging.operation.type": "process",
    "oncekey.result": event.kind.replace("delivery_", ""),
    ...(tenants ? { "oncekey.tenant": event.tenant } : {}),
    ...(event.kind === "delivery_threw" ? { "error.type": event.error } : {}),
  };
  const startTime = Date.now() - event.durationMs;
  const context: OtelContext = api.context.active();
  const span = tracer.startSpan(`process ${event.source}`, { kind: KIND.consumer, startTime, attributes }, context);
  if (event.kind === "delivery_threw") span.setStatus(ERROR);
  span.end();
}

function linksTo(traceparent: string | null): OtelLink[] {
  return traceparent === null ? [] : [{ context: spanContextOf(traceparent) }];
}
