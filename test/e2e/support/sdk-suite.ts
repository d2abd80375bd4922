import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { eventually } from "./example.ts";
import { counted, errorOf, holdOperations, slow, untilRunning } from "./sdk-cases.ts";
import {
  expectOneRequest,
  expectSame,
  type Failing,
  keptOf,
  NOTHING,
  newKey,
  type Row,
  record,
  type SdkHarness,
  type SdkRows,
} from "./sdk-harness.ts";
import type { SdkAnswer } from "./sdk-proxy.ts";

export { A_CHARGE, AN_INVOICE, type SdkHarness } from "./sdk-harness.ts";

// The cases that every vendor's SDK goes through, against the running example in its dialect. Each is a row of the table in
// docs/dialects.md. What only one vendor has stays in the vendor's test file.

type SdkCase = keyof SdkRows;

/** Runs every case, by one of the callers at least; raises where a case has none. */
export function sdkSuite(...harnesses: readonly SdkHarness[]): void {
  const names = Object.keys(CASES) as SdkCase[];
  for (const name of names) {
    if (!harnesses.some(({ rows }) => name in rows)) throw new Error(`No caller goes through ${name}.`);
  }
  for (const harness of harnesses) {
    describe(harness.name ?? "every SDK's cases", () => {
      for (const name of names) define(harness, name);
    });
  }
}

function define<Name extends SdkCase>(harness: SdkHarness, name: Name): void {
  const row: SdkRows[Name] | undefined = harness.rows[name];
  if (row === undefined) return;
  const { title, run } = CASES[name];
  it(title, () => run(harness, row));
}

const CASES: {
  readonly [Name in SdkCase]: {
    readonly title: string;
    run(harness: SdkHarness, row: SdkRows[Name]): Promise<void>;
  };
} = {
  first: { title: "first call: done once", run: firstCall },
  cut_before: {
    title: "connection cut before the work: the retry does it, with the same key and bytes",
    run: (harness, row) => connectionCut(harness, "cut_before", row),
  },
  cut_after: {
    title: "connection cut after the work: the retry gets the answer that was lost",
    run: (harness, row) => connectionCut(harness, "cut_after", row),
  },
  same_key: { title: "same key twice by the caller: the first call's answer", run: sameKey },
  other_content: { title: "same key, other content: nothing runs, and what was first stays", run: otherContent },
  duplicate: { title: "duplicate while the first runs: it waits for the first's answer", run: duplicate },
  duplicate_long: { title: "duplicate of a first that runs for long: it is told to come back", run: longDuplicate },
  store_down: { title: "store down: nothing runs; the same key goes through when it is back", run: storeDown },
};

async function firstCall(harness: SdkHarness, row: Row): Promise<void> {
  const key = newKey(harness);
  const { given, executions, effects, attempts } = await counted(harness.world(), () => harness.pay(key, "a"));
  harness.accepted(given, { attempts, replayed: false });
  expect(attempts).toHaveLength(1);
  expectOneRequest(harness, attempts, key);
  expect(effects).toEqual(harness.effects);
  record(harness, "first", row, { attempts, executions });
}

async function connectionCut(harness: SdkHarness, name: "cut_before" | "cut_after", row: Row | Failing) {
  const world = harness.world();
  const key = newKey(harness);
  const replayed = name === "cut_after";
  world.proxy.plan({ cut: replayed ? "after" : "before" });
  const { given, executions, effects, attempts } = await counted(world, async () => {
    const error = "error" in row ? await errorOf(harness.pay(key, "a")) : undefined;
    return { error, answer: await harness.pay(key, "a") };
  });
  const retried = attempts.slice(1);
  if ("error" in row) row.error(given.error, { key, attempts: attempts.slice(0, 1) });
  harness.accepted(given.answer, { attempts: "error" in row ? retried : attempts, replayed });
  expect(attempts).toHaveLength(2);
  expectOneRequest(harness, attempts, key);
  expect(keptOf(harness, attempts[0])).toBe(replayed ? keptOf(harness, attempts[1]) : null);
  expect(effects).toEqual(harness.effects);
  record(harness, name, row, { attempts, executions });
}

async function sameKey(harness: SdkHarness, row: Row): Promise<void> {
  const key = randomUUID();
  const { given, executions, effects, attempts } = await counted(harness.world(), async () => {
    return [await harness.pay(key, "a"), await harness.pay(key, "a")] as const;
  });
  const calls = [attempts.slice(0, attempts.length / 2), attempts.slice(attempts.length / 2)] as const;
  expectSame(harness, given, calls);
  if (harness.requestIdOf !== undefined) expect(harness.requestIdOf(given[1])).not.toBe(harness.requestIdOf(given[0]));
  expect(calls[1].map(({ body }) => body)).toEqual(calls[0].map(({ body }) => body));
  expect(attempts.map(harness.keyOf)).toEqual(attempts.map(() => key));
  expect(effects).toEqual(harness.effects);
  expect(attempts).toHaveLength(2 * executions);
  record(harness, "same_key", row, { attempts, executions });
}

async function otherContent(harness: SdkHarness, row: SdkRows["other_content"]): Promise<void> {
  const key = randomUUID();
  const first = await counted(harness.world(), () => harness.pay(key, "a"));
  const { given, executions, effects, attempts } = await counted(harness.world(), () => {
    const other = harness.pay(key, "b");
    return "error" in row ? errorOf(other) : other;
  });
  if ("error" in row) row.error(given, { key, attempts });
  else row.taken(given, first.given);
  expect(attempts).toHaveLength(1);
  expectOneRequest(harness, attempts, key);
  expect(effects).toEqual(NOTHING);
  record(harness, "other_content", row, { attempts, executions });
  const again = await counted(harness.world(), () => harness.pay(key, "a"));
  expectSame(harness, [first.given, again.given], [first.attempts, again.attempts]);
  expect(again.effects).toEqual(NOTHING);
}

async function duplicate(harness: SdkHarness, row: Row): Promise<void> {
  const world = harness.world();
  const key = randomUUID();
  // Well below the shortest wait of a profile, 1.5 s.
  world.proxy.plan(slow(500));
  const { given, executions, effects, attempts } = await counted(world, async () => {
    const first = harness.pay(key, "a");
    await untilRunning(world);
    return Promise.all([first, harness.pay(key, "a")]);
  });
  expectSame(harness, given, [attempts.slice(0, 1), attempts.slice(1)]);
  expect(attempts).toHaveLength(2);
  expectOneRequest(harness, attempts, key);
  expect(effects).toEqual(harness.effects);
  record(harness, "duplicate", row, { attempts, executions });
}

function longDuplicate(harness: SdkHarness, row: SdkRows["duplicate_long"]): Promise<void> {
  return "error" in row ? givesUp(harness, row) : comesBack(harness, row);
}

async function givesUp(harness: SdkHarness, row: Extract<SdkRows["duplicate_long"], Failing>): Promise<void> {
  const key = randomUUID();
  const pay = row.pay ?? ((its: string) => harness.pay(its, "a"));
  const { given, executions, effects, attempts } = await counted(harness.world(), () =>
    whileFirstRuns(harness, key, () => errorOf(pay(key))),
  );
  const [first, error] = given;
  harness.accepted(first, { attempts: attempts.slice(0, 1), replayed: false });
  row.error(error, { key, attempts: attempts.slice(1) });
  expect(attempts).toHaveLength(1 + (row.requests ?? 1));
  expectOneRequest(harness, attempts, key);
  expect(effects).toEqual(harness.effects);
  record(harness, "duplicate", row, { attempts, executions });
}

async function comesBack(harness: SdkHarness, row: Exclude<SdkRows["duplicate_long"], Failing>): Promise<void> {
  const { proxy } = harness.world();
  const key = randomUUID();
  const seen = proxy.attempts.length;
  const isTold = () => (proxy.attempts[seen + 1]?.answer ?? null) !== null;
  const { given, executions, effects, attempts } = await counted(harness.world(), async () => {
    const [first, { second }] = await whileFirstRuns(harness, key, async () => {
      const coming = { second: harness.pay(key, "a") };
      await eventually("the duplicate is told to come back", 20_000, isTold);
      return coming;
    });
    return [first, await second] as const;
  });
  const told = attempts[1]?.answer as SdkAnswer;
  row.told(told);
  expect(told.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
  expectSame(harness, given, [attempts.slice(0, 1), attempts.slice(1)]);
  expect(attempts).toHaveLength(3);
  expectOneRequest(harness, attempts, key);
  expect(effects).toEqual(harness.effects);
  record(harness, "duplicate", row, { attempts, executions });
}

/** Keeps a first call in its operation for as long as that goes on, and lets it end. */
async function whileFirstRuns<T>(harness: SdkHarness, key: string, meanwhile: () => Promise<T>) {
  const held = await holdOperations(harness.world());
  const first = harness.pay(key, "a");
  const met = await untilRunning(harness.world()).then(meanwhile).finally(held.release);
  return [await first, met] as const;
}

async function storeDown(harness: SdkHarness, row: Failing): Promise<void> {
  const world = harness.world();
  const key = randomUUID();
  const { given, executions, effects, attempts } = await counted(world, () => {
    world.database.down();
    return errorOf(harness.pay(key, "a")).finally(world.database.up);
  });
  row.error(given, { key, attempts });
  expect(attempts.map(({ answer }) => answer?.status)).toEqual(Array(row.requests ?? 1).fill(503));
  expectOneRequest(harness, attempts, key);
  expect(effects).toEqual(NOTHING);
  record(harness, "store_down", row, { attempts, executions });
  const later = await counted(world, () => harness.pay(key, "a"));
  harness.accepted(later.given, { attempts: later.attempts, replayed: false });
  expect(later.effects).toEqual(harness.effects);
}
