import type { OncekeyEvent } from "oncekey";
import { type PrometheusMetrics, promClientObserver, prometheus } from "oncekey/prometheus";
import * as client from "prom-client";
import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";

const event = (operation: string, tenant = "acme"): OncekeyEvent => ({
  kind: "replayed",
  tenant,
  operation,
  runKind: "transaction",
  entryId: "00",
  by: "request",
  runId: 1,
  trace: null,
  originTrace: null,
  status: 201,
  durationMs: 20,
  waitedMs: 0,
});

const lines = (metrics: PrometheusMetrics, name: string) =>
  metrics
    .text()
    .split("\n")
    .filter((line) => line.startsWith(name));

describe("the labels of metrics", () => {
  it("take no more values than they may, whatever comes", () => {
    const metrics = prometheus({ mostValues: 3 });
    for (let i = 0; i < 50; i++) metrics.observe(event(`operation-${i}`));
    const found = lines(metrics, "oncekey_requests_total").map((line) => /operation="([^"]*)"/.exec(line)?.[1]);
    expect(found).toEqual(["operation-0", "operation-1", "operation-2", "other"]);
    expect(lines(metrics, "oncekey_requests_total").at(-1)).toMatch(/ 47$/);
  });

  it("hold no tenant unless that is asked for", () => {
    const [without, having] = [prometheus(), prometheus({ tenants: true })];
    for (const metrics of [without, having]) metrics.observe(event("o"));
    expect(without.text()).not.toContain("acme");
    expect(lines(having, "oncekey_requests_total")).toEqual([
      'oncekey_requests_total{operation="o",result="replayed",status="201",tenant="acme"} 1',
    ]);
  });

  it("are escaped", () => {
    const metrics = prometheus();
    metrics.observe(event('a"b\\c\nd'));
    expect(lines(metrics, "oncekey_requests_total")).toEqual([
      'oncekey_requests_total{operation="a\\"b\\\\c\\nd",result="replayed",status="201"} 1',
    ]);
  });
});

describe("prom-client's registry", () => {
  it("gets the same metrics, and writes the same text", async () => {
    const registry = new Registry();
    const theirs = promClientObserver({ client, registry });
    const ours = prometheus();
    const events = [event("a"), event("b"), { kind: "purged", what: "entries", count: 3 } as const];
    for (const one of events) for (const observe of [theirs, ours.observe]) observe(one);
    const values = (text: string) =>
      text
        .split("\n")
        .filter((line) => /^# TYPE|^oncekey_/.test(line) && !line.includes("last_timestamp_seconds{"))
        .map((line) => line.replace(/\{(.*)\}/, (_, pairs: string) => `{${pairs.split(",").sort().join(",")}}`))
        .sort();
    expect(values(ours.text())).toEqual(values(await registry.metrics()));
    expect(values(ours.text()).length).toBeGreaterThan(50);
    expect(ours.contentType).toBe(registry.contentType);
  });
});
