import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { INSTRUMENTS, type Instrument, prometheusName } from "../../src/observe/instruments.ts";

const read = (name: string) => readFileSync(new URL(`../../examples/observe/${name}`, import.meta.url), "utf8");

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
  readonly templating: { readonly list: readonly { readonly query: string }[] };
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}

/** Every name that a scrape has, with its labels. */
const series = new Map<string, readonly string[]>();
for (const [name, row] of Object.entries<Instrument>(INSTRUMENTS)) {
  const ends = row.kind === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
  for (const end of ends) series.set(prometheusName(name, row) + end, end === "" ? row.labels : [...row.labels, "le"]);
}

/** What is wrong in a PromQL expression: metrics that there are not, labels that its metrics do not have. */
function faults(expr: string): string[] {
  const used = [...expr.matchAll(/\boncekey_\w+/g)].map(([name]) => name);
  const known = used.flatMap((name) => series.get(name) ?? []);
  const matched = [...expr.matchAll(/[{,]\s*(\w+)\s*=~?"/g)].map((match) => match[1] ?? "");
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap((match) => (match[1] ?? "").split(/,\s*/));
  return [
    ...(used.length === 0 ? ["no metric of ours"] : []),
    ...used.filter((name) => !series.has(name)),
    ...[...matched, ...grouped].filter((label) => !known.includes(label)),
  ];
}

describe("the files of examples/observe", () => {
  it("name metrics and labels that there are", () => {
    const dashboard = JSON.parse(read("grafana-dashboard.json")) as Dashboard;
    const rules = (parse(read("alerts.yaml")) as Rules).groups.flatMap((group) => group.rules);
    const panels = dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ name: title, expr })));
    const all = [...panels, ...rules.map(({ alert, expr }) => ({ name: alert, expr }))];
    expect(all.length).toBeGreaterThan(20);
    expect(all.map(({ name, expr }) => [name, ...faults(expr)]).filter(({ length }) => length > 1)).toEqual([]);
    const chosen = dashboard.templating.list.map(({ query }) => query).filter((query) => query.includes("oncekey_"));
    expect(chosen.flatMap(faults)).toEqual([]);
  });

  it("are found wrong when they are (canary)", () => {
    expect(faults("sum by (operation) (rate(oncekey_requests_total[5m]))")).toEqual([]);
    expect(faults("rate(oncekey_request_total[5m])")).toEqual(["oncekey_request_total"]);
    expect(faults('rate(oncekey_claims_total{result="x"}[5m])')).toEqual(["result"]);
    expect(faults("sum by (operation, key) (rate(oncekey_claims_total[5m]))")).toEqual(["key"]);
  });
});
