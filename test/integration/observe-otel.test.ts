import * as api from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { logEvents } from "oncekey/logs";
import { otel } from "oncekey/otel";
import { createRelay, delivered } from "oncekey/outbox";
import pino from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { passTime } from "../support/postgres.ts";
import { observedWorld, SECRETS } from "./support/observed.ts";

const spans = new InMemorySpanExporter();
const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 3_600_000 });

beforeAll(() => {
  api.trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  api.metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
});

beforeEach(() => spans.reset());

afterAll(async () => {
  await reader.shutdown();
  api.trace.disable();
  api.metrics.disable();
});

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const first = `00-${TRACE}-${SPAN}-01`;
const second = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;

const named = (name: string): ReadableSpan[] => spans.getFinishedSpans().filter((span) => span.name === name);
const linked = (span: ReadableSpan | undefined) => span?.links.map(({ context }) => [context.traceId, context.spanId]);

/** The points of one metric, attributes to value. */
function points(name: string): (readonly [Record<string, unknown>, unknown])[] {
  const metrics = measured.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
  const found = metrics.filter(({ descriptor }) => descriptor.name === name).at(-1);
  return (found?.dataPoints ?? []).map(({ attributes, value }) => [attributes, value] as const);
}

describe("spans", () => {
  it("link a replay to the trace of the request that ran", async () => {
    const world = await observedWorld(otel(api));
    const { order } = await world.shop();
    await order("a", "succeeds", 0, first);
    await order("a", "succeeds", 0, second);
    const [ran, replayed] = named("oncekey orders");
    expect([ran?.spanContext().traceId, ran?.parentSpanContext?.spanId]).toEqual([TRACE, SPAN]);
    expect(ran?.attributes).toMatchObject({ "oncekey.result": "completed", "db.system.name": "postgresql" });
    expect(replayed?.spanContext().traceId).toBe("1".repeat(32));
    expect(linked(replayed)).toEqual([[TRACE, SPAN]]);
    expect(replayed?.attributes).toMatchObject({ "oncekey.result": "replayed", "http.response.status_code": 201 });
  });

  it("link a duplicate that waited in this process to the trace of the one that ran", async () => {
    const world = await observedWorld(otel(api));
    const { order } = await world.shop();
    await Promise.all([order("a", "succeeds", 60_000, first), order("a", "succeeds", 60_000, second)]);
    const replayed = named("oncekey orders").find((span) => span.attributes["oncekey.result"] === "replayed");
    expect(replayed?.spanContext().traceId).toBe("1".repeat(32));
    expect(linked(replayed)).toEqual([[TRACE, SPAN]]);
  });

  it("have phases and calls under their run, a failed call as an error", async () => {
    const world = await observedWorld(otel(api));
    const { charge, psp } = await world.shop();
    psp.fails = 1;
    await charge("a", "succeeds", 0, first);
    const [run] = named("oncekey charges");
    const steps = ["phase row", "call authorize", "call capture"].flatMap(named);
    expect(steps.map(({ name }) => name)).toEqual(["phase row", "call authorize", "call authorize", "call capture"]);
    for (const step of steps) expect(step.parentSpanContext?.spanId).toBe(run?.spanContext().spanId);
    expect(named("call authorize").map(({ status }) => status.code)).toEqual([
      api.SpanStatusCode.ERROR,
      api.SpanStatusCode.UNSET,
    ]);
  });

  it("tell a sweeper's and a relay's work in traces of their own, linked to the request's", async () => {
    const world = await observedWorld(otel(api));
    const { once, order, charge, sweeper } = await world.shop();
    await charge("a", "throws", 0, first).catch(() => {});
    await passTime(world.url, 3_600_000);
    await sweeper.runOnce();
    const swept = named("oncekey charges").find((span) => span.attributes["oncekey.by"] === "sweeper");
    expect(swept?.attributes["oncekey.as"]).toBe("failed");
    expect([swept?.parentSpanContext, linked(swept)]).toEqual([undefined, [[TRACE, SPAN]]]);
    await order("a", "sends", 0, first);
    await createRelay(once, { topics: { "*": async () => delivered() } }).runOnce();
    const [sending] = named("send order.created");
    expect(sending?.attributes["messaging.destination.name"]).toBe("order.created");
    expect([sending?.parentSpanContext, linked(sending)]).toEqual([undefined, [[TRACE, SPAN]]]);
    expect(named("create order.created")).toHaveLength(1);
  });

  it("all end: none stays open after its run", async () => {
    let open = 0;
    const tracer = api.trace.getTracer("counting");
    const startSpan: typeof tracer.startSpan = (...given) => {
      const span = tracer.startSpan(...given);
      open++;
      const end = span.end.bind(span);
      span.end = () => {
        open--;
        end();
      };
      return span;
    };
    const counting = { ...api, trace: { ...bound(api.trace), getTracer: () => ({ startSpan }) } };
    const world = await observedWorld(otel(counting, { metrics: false }));
    const { order, charge, refund } = await world.shop();
    await order("a", "throws").catch(() => {});
    await charge("a");
    await refund("a", 500);
    await refund(null);
    expect(open).toBe(0);
    expect(world.events.length).toBeGreaterThan(10);
  });
});

/** The trace API as a plain object: its methods are on a prototype. */
function bound(trace: typeof api.trace) {
  return {
    getSpanContext: trace.getSpanContext.bind(trace),
    setSpan: trace.setSpan.bind(trace),
    setSpanContext: trace.setSpanContext.bind(trace),
  };
}

describe("metrics", () => {
  it("have the standard attributes, and those of ours", async () => {
    const world = await observedWorld(otel(api, { spans: false }));
    const { once, order } = await world.shop();
    await order("a", "sends");
    await order("a", "sends");
    await once.consume({ tenant: "acme", source: "queue", id: "1" }, async () => {});
    await reader.forceFlush();
    const db = { "db.system.name": "postgresql" };
    const shared = { ...db, "oncekey.operation": "orders", "http.response.status_code": 201 };
    expect(points("oncekey.requests")).toEqual(
      expect.arrayContaining([
        [{ ...shared, "oncekey.result": "completed" }, expect.any(Number)],
        [{ ...shared, "oncekey.result": "replayed" }, expect.any(Number)],
      ]),
    );
    const messaging = { "messaging.destination.name": "order.created", "messaging.operation.type": "send" };
    expect(points("oncekey.messages")).toContainEqual([{ ...messaging, "oncekey.event": "sent" }, expect.any(Number)]);
    expect(points("oncekey.deliveries")).toContainEqual([
      { "messaging.destination.name": "queue", "messaging.operation.type": "process", "oncekey.result": "done" },
      expect.any(Number),
    ]);
  });
});

describe("what is told", () => {
  it("holds no key, body or token anywhere: events, metrics, spans, logs", async () => {
    const lines: string[] = [];
    const logger = pino({ level: "trace" }, { write: (line) => void lines.push(line) });
    const world = await observedWorld(otel(api, { tenants: true }), logEvents(logger));
    const { order, charge, refund, psp, sweeper } = await world.shop();
    for (const does of ["succeeds", "succeeds", "is refused", "throws", "sends"] as const) {
      await order(does, does, 0, SECRETS.token).catch(() => {});
    }
    await order("succeeds", "throws");
    psp.fails = 1;
    await charge("a");
    await charge("b", "throws").catch(() => {});
    await refund("a", 500);
    await refund(null);
    await passTime(world.url, 3_600_000);
    await sweeper.runOnce();
    await reader.forceFlush();
    const told = [
      JSON.stringify(world.events),
      world.metrics.text(),
      lines.join(""),
      JSON.stringify(measured.getMetrics()),
      ...spans.getFinishedSpans().map((span) => JSON.stringify([span.name, span.attributes, span.events, span.links])),
    ].join("\n");
    expect(told.length).toBeGreaterThan(20_000);
    for (const secret of Object.values(SECRETS)) expect(told).not.toContain(secret);
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged.length).toBe(world.events.length);
    expect(logged.find(({ event }) => event === "oncekey.replayed")).toMatchObject({
      level: 30,
      operation: "orders",
      status: 201,
      msg: "A stored outcome was given again.",
    });
  });
});
