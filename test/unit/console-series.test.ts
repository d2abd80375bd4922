import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { cursorPlace, cursorText } from "../../src/console/cursor.ts";
import { masked } from "../../src/console/mask.ts";
import { createScraper } from "../../src/console/scrape.ts";
import { createSeries, STEP_MS } from "../../src/console/series.ts";
import { createTrail } from "../../src/console/trail.ts";

const ABOUT = {
  tenant: "acme",
  operation: "o",
  runKind: "phases",
  entryId: "e",
  by: "request",
  runId: 1,
  trace: null,
} as const;
const TIMES = { durationMs: 10, waitedMs: 0 };

describe("the series", () => {
  it("counts by steps, for each tenant and for all, and forgets after an hour", () => {
    const clock = { now: 1_000_000_000_000 };
    const series = createSeries(() => clock.now);
    series.note({ ...ABOUT, kind: "completed", state: "succeeded", status: 201, ...TIMES });
    series.note({ ...ABOUT, kind: "completed", state: "failed", status: 422, ...TIMES });
    series.note({ ...ABOUT, tenant: "globex", kind: "busy", ...TIMES });
    series.note({ ...ABOUT, by: "sweeper", kind: "completed", state: "succeeded", status: 201, ...TIMES });
    series.note({ kind: "purged", what: "entries", count: 1 });
    clock.now += STEP_MS;
    series.note({ ...ABOUT, kind: "replayed", status: 201, originTrace: null, durationMs: 1_000, waitedMs: 0 });
    const [first, second] = series.points(null, 0);
    expect(first).toMatchObject({ completed: 1, failed: 1, busy: 1, replayed: 0, unresolved: null });
    expect(first?.p50Ms).toBeGreaterThanOrEqual(10);
    expect(first?.p50Ms).toBeLessThanOrEqual(12.5);
    expect(second).toMatchObject({ replayed: 1, completed: 0 });
    expect(series.points("globex", 0)[0]).toMatchObject({ busy: 1, completed: 0 });
    expect(series.points("nobody", 0)[0]).toMatchObject({ busy: 0 });
    expect(series.last(null)).toMatchObject({ completed: 1, failed: 1 });
    expect(series.points(null, first?.at.getTime() ?? 0)).toHaveLength(1);
    clock.now += 3_600_000;
    const later = series.points(null, 0);
    expect(later).toHaveLength(720);
    expect(later.every(({ completed, replayed }) => completed + replayed === 0)).toBe(true);
  });

  it("is filled from a page of metrics by what grows, across a restart of its process", async () => {
    const page = { text: "" };
    const server = createServer((_req, res) => res.end(page.text));
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const series = createSeries();
    const scraper = createScraper(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`, series);
    const write = (completed: number, failed: number, fast: number, slow: number) => {
      const bucket = (le: string, count: number) =>
        `oncekey_request_duration_seconds_bucket{operation="o",result="completed",le="${le}"} ${count}`;
      page.text = [
        "# HELP oncekey_requests_total Requests.",
        `oncekey_requests_total{operation="a\\"b",result="completed",status="201",tenant="acme"} ${completed}`,
        `oncekey_requests_total{operation="o",result="completed",status="422",tenant="acme"} ${failed}`,
        'oncekey_requests_total{operation="o",result="what_a_newer_release_says",status=""} 0',
        bucket("0.01", fast),
        bucket("1", fast + slow),
        bucket("+Inf", fast + slow),
        "another_total{} 5",
        "oncekey_requests_total{broken",
      ].join("\n");
    };
    const sum = (name: "completed" | "failed") =>
      series.points(null, 0).reduce((total, point) => total + point[name], 0);
    write(100, 10, 50, 50);
    await scraper.once();
    expect([sum("completed"), sum("failed")]).toEqual([0, 0]);
    write(103, 11, 50, 53);
    await scraper.once();
    expect([sum("completed"), sum("failed")]).toEqual([3, 1]);
    const p50 = Math.max(...series.points(null, 0).map(({ p50Ms }) => p50Ms ?? 0));
    expect(p50).toBeGreaterThanOrEqual(1_000);
    write(2, 0, 0, 0);
    await scraper.once();
    expect([sum("completed"), sum("failed")]).toEqual([5, 1]);
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
    await scraper.once();
    expect(sum("completed")).toBe(5);
  });
});

describe("the trail", () => {
  it("keeps the entries that were touched last, each with its last events, and tells a tenant only of its own", () => {
    const trail = createTrail(() => 5);
    for (let n = 0; n < 6_000; n++) trail.note({ ...ABOUT, entryId: `e${n}`, kind: "claimed", attempt: 1 });
    expect(trail.of("e0", null)).toEqual([]);
    expect(trail.of("e5999", null)).toHaveLength(1);
    expect(trail.of("e5999", "globex")).toEqual([]);
    for (let n = 0; n < 500; n++) trail.note({ ...ABOUT, entryId: "e5999", kind: "waited", durationMs: n });
    expect(trail.of("e5999", "acme")).toHaveLength(200);
  });

  it("counts mismatches by tenant and operation", () => {
    const trail = createTrail(() => 5);
    for (const entryId of ["a", "b", "a"])
      trail.note({ ...ABOUT, entryId, kind: "mismatch", state: "succeeded", ...TIMES });
    expect(trail.mismatches("acme")).toMatchObject([{ operation: "o", count: 3, entryIds: ["a", "b"] }]);
    expect(trail.mismatches("globex")).toEqual([]);
  });
});

describe("what is masked", () => {
  it.each([
    ["8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03…9324"],
    ["a-key-of-some-length", "a-k…gth"],
    ["123456", "1…6"],
    ["12345", "…"],
    ["", "…"],
    ["😀😀😀😀😀😀", "😀…😀"],
  ])("%s is shown as %s", (text, shown) => {
    expect(masked(text)).toBe(shown);
  });
});

describe("a cursor", () => {
  const members = { id: /^[0-9a-f]+$/, at: /^\d+$/ };

  it("comes back as it went, and is refused where it is another list's or somebody's own", () => {
    const place = { id: "ab", at: "5" };
    expect(cursorPlace(cursorText(place), members)).toEqual(place);
    expect(cursorPlace(null, members)).toBeNull();
    for (const bad of [
      "x",
      cursorText({ id: "ab" }),
      cursorText({ id: "'; DROP", at: "5" }),
      cursorText([1]),
      "bnVsbA",
    ]) {
      expect(() => cursorPlace(bad, members)).toThrow(/cursor/);
    }
  });
});
