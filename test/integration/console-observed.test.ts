import { createConsole, createConsoleIndexes } from "oncekey/console";
import { fromPg } from "oncekey/drivers/pg";
import { faultyStore } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { passTime, query, testPool } from "../support/postgres.ts";
import { observedWorld, SECRETS } from "./support/observed.ts";

type Point = Readonly<Record<string, number | string | null>>;

const COUNTED = [
  "completed",
  "failed",
  "replayed",
  "waited",
  "busy",
  "mismatch",
  "unknown",
  "refused",
  "errors",
] as const;

/** An instance that a console on the same database observes; the console's answers through the Fetch interface. */
async function consoleOfShop() {
  const late: { observe?: ReturnType<typeof createConsole>["observe"] } = {};
  const world = await observedWorld((event) => late.observe?.(event));
  const driver = fromPg(testPool(world.url));
  const failures: unknown[] = [];
  const operator = { name: "ada", tenant: null };
  const mounted = createConsole({ driver, authorize: () => operator, onError: (error) => failures.push(error) });
  late.observe = mounted.observe;
  const send = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const own = { host: "console.test", origin: "http://console.test", "content-type": "application/json", ...headers };
    const init = method === "GET" ? {} : { headers: own, body: JSON.stringify(body) };
    const response = await mounted.fetch(new Request(`http://console.test/console/api/${path}`, { method, ...init }));
    return { status: response.status, text: await response.text() };
  };
  const get = async (path: string) => JSON.parse((await send("GET", path)).text);
  const sums = async () => {
    const { points } = (await get("series")) as { points: readonly Point[] };
    return Object.fromEntries(
      COUNTED.map((name) => [name, points.reduce((sum, point) => sum + Number(point[name]), 0)]),
    );
  };
  return { world, driver, mounted, send, get, sums, failures };
}

describe("the charts of a console that observes an instance", () => {
  it("count each outcome of a request as what it is", async () => {
    const { world, sums } = await consoleOfShop();
    const { order, refund, held } = await world.shop();
    const grown = async (act: () => unknown) => {
      const before = await sums();
      await act();
      const after = await sums();
      return Object.fromEntries(
        COUNTED.map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)]).filter(([, n]) => n !== 0),
      );
    };
    expect(await grown(() => order("a"))).toEqual({ completed: 1 });
    expect(await grown(() => order("a"))).toEqual({ replayed: 1 });
    expect(await grown(() => order("a", "throws"))).toEqual({ mismatch: 1 });
    expect(await grown(() => order("b", "is refused"))).toEqual({ failed: 1 });
    expect(await grown(() => order("c", "throws").catch(() => {}))).toEqual({ errors: 1 });
    expect(await grown(() => refund(null))).toEqual({ refused: 1 });
    expect(await grown(() => refund("d", 500))).toEqual({ unknown: 1 });
    expect(await grown(() => refund("e", 429))).toEqual({ refused: 1 });
    const [begun, end] = [gate(), gate()];
    held.waiting = begun.open;
    held.until = end.promise;
    expect(
      await grown(async () => {
        const first = order("f", "waits");
        await begun.promise;
        expect((await order("f", "waits")).kind).toBe("busy");
        end.open();
        await first;
      }),
    ).toEqual({ completed: 1, busy: 1 });
    const { store } = faultyStore(world.base, {
      script: [
        { method: "transaction", fault: "unavailable" },
        { method: "read", fault: "unavailable" },
      ],
    });
    const broken = await world.shop({ store });
    expect(await grown(() => broken.order("g").catch(() => {}))).toMatchObject({ errors: 1 });
  });

  it("tell how long requests took, and what waits, in the step in which somebody looked", async () => {
    const { world, get } = await consoleOfShop();
    const { order, refund } = await world.shop();
    await order("a");
    await refund("b", 500);
    await get("overview");
    const { source, points } = (await get("series")) as { source: string; points: readonly Point[] };
    expect(source).toBe("process");
    const timed = points.filter(({ p50Ms }) => p50Ms !== null);
    expect(timed.length).toBeGreaterThan(0);
    for (const { p50Ms, p95Ms } of timed) expect(Number(p95Ms)).toBeGreaterThanOrEqual(Number(p50Ms));
    const looked = points.filter(({ unresolved }) => unresolved !== null);
    expect(looked.at(-1)).toMatchObject({ unresolved: 1 });
    expect(Number(looked.at(-1)?.bytes)).toBeGreaterThan(0);
    const later = (await get(`series?after=${points.at(-1)?.at}`)).points as readonly Point[];
    expect(later.every(({ at }) => String(at) > String(points.at(-1)?.at))).toBe(true);
  });

  it("and the life of an entry with what this process saw of it", async () => {
    const { world, get } = await consoleOfShop();
    const { charge, psp, sweeper } = await world.shop();
    psp.fails = 1;
    await charge("a").catch(() => {});
    await passTime(world.url, 120_000);
    await charge("a").catch(() => {});
    const [row] = await query(world.url, "SELECT encode(id, 'hex') AS id FROM oncekey.entry");
    const { timeline } = await get(`entries/${row?.id}`);
    const kinds = timeline.map(({ kind }: { kind: string }) => kind);
    expect(kinds[0]).toBe("claimed");
    expect(kinds).toEqual(expect.arrayContaining(["phase_committed", "call_failed"]));
    const times = timeline.flatMap(({ at }: { at: string | null }) => (at === null ? [] : [at]));
    expect(times.length).toBeGreaterThan(3);
    expect(sweeper).toBeDefined();
  });
});

describe("nothing that a console tells", () => {
  it("holds a key, a token or a body, after everything that can go wrong", async () => {
    const { world, driver, send, get, failures } = await consoleOfShop();
    const { order, charge, refund, psp } = await world.shop();
    await order("a");
    await order("a", "sends");
    await order("b", "is refused");
    await order("c", "throws").catch(() => {});
    await order("d", "sends");
    psp.fails = 2;
    await charge("e").catch(() => {});
    await charge("f");
    for (const status of [201, 429, 500]) await refund(`g${status}`, status);
    await refund(null);
    await createConsoleIndexes(driver);
    const csrf = (await get("session")).csrf as string;
    const rows = await query(world.url, "SELECT encode(id, 'hex') AS id FROM oncekey.entry");
    const reads = [
      "overview",
      "series",
      "entries",
      "unresolved",
      "outbox?state=dead",
      "outbox?state=pending",
      "clients",
      "upkeep",
      "audit",
    ];
    const told: string[] = [];
    for (const path of [...reads, ...rows.map(({ id }) => `entries/${id}`)]) {
      const { status, text } = await send("GET", path);
      expect([path, status]).toEqual([path, 200]);
      told.push(text);
    }
    const key = `${SECRETS.key}-a`;
    told.push((await send("POST", "entries/search", { key }, { "x-oncekey-csrf": csrf })).text);
    told.push((await send("GET", `entries?key=${key}`)).text);
    expect(JSON.parse(told.at(-2) ?? "").entries).toHaveLength(1);
    const derived = await query(world.url, "SELECT derived_key FROM oncekey.intent");
    expect(derived.length).toBeGreaterThan(0);
    const secrets = [...Object.values(SECRETS), ...derived.map((row) => String(row.derived_key))];
    for (const secret of secrets) expect(told.filter((text) => text.includes(secret))).toEqual([]);
    expect(failures).toEqual([]);
  });
});
