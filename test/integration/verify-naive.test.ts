import { describe, expect, it } from "vitest";
import { NAIVETIES, type Naivety, USUAL } from "../../examples/naive/naiveties.ts";
import type { NaiveOptions } from "../../examples/naive/server.ts";
import { caseIds, type RunReport, runCases, type Target } from "../../src/verify/index.ts";
import { naiveServer, naiveTarget } from "./support/naive.ts";

/** Ids of the cases with that verdict, sorted. */
function ids({ cases }: RunReport, verdict: string): string[] {
  return cases
    .filter((each) => each.verdict === verdict)
    .map(({ id }) => id)
    .sort();
}

interface Planting {
  /** Every case that fails with this fault planted, and no other. */
  readonly fails: readonly string[];
  readonly with?: readonly Naivety[];
  readonly path?: string;
  readonly profile?: string;
  readonly server?: Omit<NaiveOptions, "naiveties">;
  readonly target?: (target: Target) => Target;
  readonly only?: readonly string[];
}

const optional = (target: Target): Target => ({
  ...target,
  dialect: { ...target.dialect, key: { ...target.dialect.key, required: false } },
});

const STRIPE = { profile: "stripe" } as const;

/** What comes under a key that is in use, treated in some other way than compared and refused. */
const UNCOMPARED = ["mismatch-after", "mismatch-running", "numbers-exact"];
const STORMS = ["duplicates-10", "duplicates-50"];
const EQUALS = ["equal-number", "equal-order", "equal-space"];

/** Each fault planted alone, and which cases see it. */
const ROWS: Readonly<Record<Naivety, Planting>> = {
  "ignores-keys": {
    fails: [
      ...[...STORMS, ...EQUALS, ...UNCOMPARED, "hang-up-waiting", "late-refused", "refusal-replayed"],
      ...["key-comma", "key-empty", "key-missing", "key-non-ascii", "key-quoted", "key-two-lines"],
      ...["replay-bytes", "replay-headers", "replay-once"],
    ],
  },
  "looks-first": { fails: [...STORMS, "hang-up-waiting", "mismatch-running"] },
  "gives-up-waiting": { fails: [...STORMS, "busy-answer", "hang-up-waiting"] },
  "compares-nothing": { fails: UNCOMPARED },
  "compares-late": { fails: ["mismatch-running"] },
  "compares-bytes": { fails: EQUALS },
  "compares-doubles": { fails: ["numbers-exact"] },
  "runs-mismatches": { fails: UNCOMPARED },
  "one-tenant": { fails: ["other-tenant"] },
  "one-operation": { fails: ["other-operation"] },
  "answers-first": { fails: ["mismatch-after", "numbers-exact", "replay-revoked", "replay-unauthenticated"] },
  "forgets-hang-ups": {
    fails: ["hang-up-waiting"],
    // The server must hear of it while it still runs.
    target: (target) => ({ ...target, slowHeaders: [["X-Delay-Ms", "600"]] }),
  },
  "claims-early": { fails: ["hang-up-sending"] },
  "stores-cookies": { fails: ["replay-cookies"] },
  "stores-date": { fails: ["replay-date"] },
  "stores-body-only": { fails: ["replay-headers"] },
  "answers-200": { fails: ["replay-status"] },
  "rewrites-json": { fails: [...STORMS, "replay-bytes"] },
  "stores-text": { fails: [...STORMS, "binary-answer", "replay-bytes"], path: "/receipts" },
  "skips-empty": {
    fails: [
      ...["empty-answer", "replay-headers", "replay-once", "hang-up-waiting", "key-quoted"],
      ...[...STORMS, ...EQUALS, "mismatch-after", "numbers-exact"],
    ],
    path: "/closings",
  },
  "marks-always": { fails: ["replay-marker"] },
  "marks-never": { fails: ["replay-marker"], ...STRIPE, only: ["replay-marker"] },
  "forgets-refusals": { fails: ["refusal-replayed"] },
  "optional-key": { fails: ["key-missing"] },
  "plain-missing": { fails: ["key-missing-answer"] },
  "shares-no-key": { fails: ["key-missing"], target: optional },
  "empty-is-none": { fails: ["key-empty", "key-missing"] },
  "cuts-keys": { fails: ["key-long"], target: optional },
  "breaks-on-long-keys": { fails: ["key-long"] },
  "takes-any-character": { fails: ["key-non-ascii"] },
  "folds-characters": { fails: ["key-non-ascii"], ...STRIPE, only: ["key-non-ascii"] },
  "joins-lines": { fails: ["key-comma", "key-two-lines"] },
  "takes-lists": { fails: ["key-comma"] },
  "quotes-matter": { fails: ["key-quoted"] },
  "caps-keys": { fails: ["key-longest"], ...STRIPE, only: ["key-longest", "key-long"] },
  "mismatch-409": { fails: ["mismatch-answer"] },
  "plain-mismatch": { fails: ["mismatch-answer"] },
  "busy-423": { fails: [...STORMS, "busy-answer", "hang-up-waiting"], server: { waitMs: 0 } },
  "no-retry-after": { fails: ["retry-after"], server: { waitMs: 0 } },
  "any-method": { fails: ["method-get"] },
  "reads-claim": { fails: ["method-get"] },
  "forgets-soon": {
    fails: ["late-retry"],
    server: { retentionMs: 5_000 },
    target: (target) => ({ ...target, retentionMs: 5_000 }),
    only: ["late-retry"],
  },
  "runs-late": { fails: ["late-refused"] },
};

async function run(naivety: Naivety | null, planting: Omit<Planting, "fails"> = {}): Promise<RunReport> {
  const naiveties = [...(naivety === null ? [] : [naivety]), ...(planting.with ?? [])];
  const target = naiveTarget(await naiveServer({ ...planting.server, naiveties }), planting.path, planting.profile);
  return runCases(planting.target?.(target) ?? target, planting.only === undefined ? {} : { only: planting.only });
}

describe.concurrent("a server with one fault", () => {
  it.each(Object.keys(NAIVETIES) as Naivety[])(
    "%s: fails in the cases of the table, and in no other",
    async (naivety) => {
      const row = ROWS[naivety];
      expect(ids(await run(naivety, row), "fail")).toEqual(row.fails.toSorted());
    },
  );
});

const uncounted = (target: Target): Target => ({ ...target, count: null });

describe.concurrent("a server without faults", () => {
  const ways: readonly (readonly [string, Omit<Planting, "fails">])[] = [
    ["waiting for the first", {}],
    ["telling duplicates to come back", { server: { waitMs: 0 } }],
    ["answering without a body", { path: "/closings" }],
    ["answering with bytes", { path: "/receipts" }],
    ["where nothing counts executions", { target: uncounted }],
    ["where keys are optional", { target: optional }],
    ["asked without its slow header", { target: (target) => ({ ...target, slowHeaders: [] }) }],
    [
      "whose outcomes are kept for five seconds",
      {
        server: { retentionMs: 5_000 },
        target: (target) => ({ ...target, retentionMs: 5_000 }),
        only: ["late-retry"],
      },
    ],
  ];
  it.each(ways)("fails in nothing: %s", async (_way, planting) => {
    const report = await run(null, planting);
    expect(ids(report, "fail")).toEqual([]);
    expect(report.counts.pass).toBeGreaterThan(planting.only === undefined ? 25 : 1);
  });

  it("says what cannot be told where nothing counts", async () => {
    const report = await run(null, { target: uncounted });
    expect(ids(report, "cannot-tell")).toEqual(["hang-up-waiting", "replay-once"]);
    const silent = await run(null, { target: uncounted, path: "/closings" });
    expect(ids(silent, "fail")).toEqual([]);
    expect(ids(silent, "cannot-tell")).toEqual([
      ...["duplicates-10", "duplicates-50", "empty-answer", "equal-number", "equal-order", "equal-space"],
      ...["hang-up-waiting", "key-quoted", "method-get", "other-tenant", "replay-once"],
    ]);
  });
});

describe("the server as it is usually written", () => {
  it("fails in the right places", async () => {
    const base = await naiveServer({ naiveties: USUAL });
    const report = await runCases(naiveTarget(base));
    expect(ids(report, "fail")).toEqual(
      [
        ...["duplicates-10", "duplicates-50", "hang-up-waiting", "late-refused", "method-get"],
        ...["key-comma", "key-empty", "key-missing", "key-non-ascii", "key-quoted", "key-two-lines"],
        ...["mismatch-after", "mismatch-running", "numbers-exact", "other-operation", "other-tenant"],
        ...["replay-bytes", "replay-cookies", "replay-headers", "replay-revoked", "replay-status"],
        "replay-unauthenticated",
      ].sort(),
    );
    expect(ids(report, "pass")).toContain("hang-up-sending");
  });
});

describe("a request that is not accepted", () => {
  const wrong: readonly (readonly [string, (target: Target) => Target])[] = [
    ["credentials", (target) => ({ ...target, headers: [] })],
    ["a host that is not there", (target) => ({ ...target, url: new URL("http://127.0.0.1:1/invoices") })],
    ["a count URL that counts nothing", (target) => ({ ...target, count: { url: target.url, path: ["none"] } })],
    [
      "a count of another operation",
      (target) => ({ ...target, count: { url: new URL("/refunds", target.url), path: ["data"] } }),
    ],
  ];
  it.each(wrong)("leaves nothing to judge: %s", async (_what, change) => {
    const report = await run(null, { target: change });
    expect(ids(report, "fail")).toEqual(["accepted"]);
    expect(report.counts["cannot-tell"]).toBe(caseIds.length - 1);
  });
});

describe("the table of faults", () => {
  it("has every case fail at least once", () => {
    const seen = new Set(["accepted", ...Object.values(ROWS).flatMap(({ fails }) => fails)]);
    expect(caseIds.filter((id) => !seen.has(id))).toEqual([]);
  });
});
