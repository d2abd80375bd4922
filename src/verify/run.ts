import { isSuccess, told } from "./answer.ts";
import { type Api, CountFailure, freshKey, openApi, RunEnded } from "./api.ts";
import {
  type Baseline,
  type Case,
  cannotTell,
  counted,
  type Finding,
  fail,
  isSameResult,
  type Level,
  notApplicable,
  pass,
  Untold,
  type Verdict,
} from "./case.ts";
import { cases } from "./cases/index.ts";
import type { Target } from "./target.ts";

/** Which cases are run. */
export interface Selection {
  /** Only these; default: all. */
  readonly only?: readonly string[];
  readonly skip?: readonly string[];
}

/** A case as it will be tried. */
export interface PlannedCase {
  readonly id: string;
  readonly title: string;
  /** Why it cannot be tried with what was given; `null` where it will be. */
  readonly excluded: string | null;
  readonly sends: number;
  readonly runs: number;
}

/** What a run will do. */
export interface Plan {
  readonly cases: readonly PlannedCase[];
  /** Requests to operations; repetitions while a case waits for a final answer come on top. */
  readonly sends: number;
  /** Executions in an API that passes everything. One that fails runs more. */
  readonly runs: number;
}

/** One case with what it found. */
export interface CaseReport extends Finding {
  readonly id: string;
  readonly title: string;
  readonly level: Level;
  readonly why: string;
  readonly tookMs: number;
}

/** What a run found. */
export interface RunReport {
  readonly target: { readonly url: string; readonly method: string; readonly profile: string; readonly source: string };
  readonly startedAt: Date;
  readonly tookMs: number;
  /** Requests to operations that were sent. */
  readonly requests: number;
  readonly counts: Readonly<Record<Verdict, number>>;
  readonly cases: readonly CaseReport[];
}

/** The first case, which nothing else can do without. */
const ACCEPTED = {
  id: "accepted",
  title: "The given request is accepted",
  level: "safety",
  why: "Everything else is compared with it: a request that the API refuses, or a count that cannot be read, leaves nothing to judge.",
  sends: 3,
  runs: 2,
} as const;

/** Ids of all cases, in the order of the report. */
export const caseIds: readonly string[] = [ACCEPTED.id, ...cases.map(({ id }) => id)];

/** Every case with its title and why it matters, as reports and documents tell it. */
export const caseTexts: readonly Pick<CaseReport, "id" | "title" | "level" | "why">[] = [ACCEPTED, ...cases].map(
  ({ id, title, level, why }) => ({ id, title, level, why }),
);

function selected({ only, skip = [] }: Selection): Case[] {
  return cases.filter(({ id }) => (only === undefined || only.includes(id)) && !skip.includes(id));
}

/** What a run would do. Sends nothing. */
export function planRun(target: Target, selection: Selection = {}): Plan {
  const planned: PlannedCase[] = [
    { ...ACCEPTED, excluded: null },
    ...selected(selection).map((each) => ({ ...each, excluded: each.excluded(target) })),
  ].map(({ id, title, excluded, sends, runs }) => ({ id, title, excluded, sends, runs }));
  const tried = planned.filter(({ excluded }) => excluded === null);
  const sum = (of: (planned: PlannedCase) => number) => tried.reduce((total, each) => total + of(each), 0);
  return { cases: planned, sends: sum(({ sends }) => sends), runs: sum(({ runs }) => runs) };
}

/** Options of {@link runCases}. */
export interface RunOptions extends Selection {
  /** Called with each case as it ends. */
  readonly onCase?: (report: CaseReport) => void;
  /**
   * Ends the run: nothing more is sent, but credentials that were revoked are restored. Cases that were not tried to their
   * end are reported as such, as ones that cannot be told.
   */
  readonly signal?: AbortSignal;
}

/** Tries every selected case, one after the other. Never rejects for what the API does: that is what it reports. */
export async function runCases(target: Target, { onCase, signal, ...selection }: RunOptions = {}): Promise<RunReport> {
  const startedAt = new Date();
  const start = performance.now();
  const api = openApi(target, signal);
  const reports: CaseReport[] = [];
  const add = (report: CaseReport) => {
    reports.push(report);
    onCase?.(report);
  };
  const opening = await open(api);
  add({ ...texts(ACCEPTED), ...opening.finding, tookMs: performance.now() - start });
  for (const each of selected(selection)) {
    const from = performance.now();
    const isOver = signal?.aborted === true;
    const finding = isOver
      ? cannotTell("The run was ended before this was tried.")
      : await findingOf(each, api, opening.base);
    add({ ...texts(each), ...finding, tookMs: performance.now() - from });
  }
  return {
    target: {
      // Its query may hold what the caller must not show.
      url: `${target.url.origin}${target.url.pathname}`,
      method: target.method,
      profile: target.dialect.name,
      source: target.dialect.source,
    },
    startedAt,
    tookMs: performance.now() - start,
    requests: api.sent(),
    counts: countsOf(reports),
    cases: reports,
  };
}

function texts({ id, title, level, why }: Pick<Case, "id" | "title" | "level" | "why">) {
  return { id, title, level, why };
}

interface Opening {
  readonly finding: Finding;
  readonly base: Baseline | null;
}

async function open(api: Api): Promise<Opening> {
  try {
    return await baseline(api);
  } catch (error) {
    if (error instanceof CountFailure) return { finding: fail(`The count URL ${error.message}.`), base: null };
    if (error instanceof RunEnded) return { finding: cannotTell(error.message), base: null };
    throw error;
  }
}

async function baseline(api: Api): Promise<Opening> {
  const key = freshKey(api.target);
  const { value: first, ran } = await counted(api, () => api.send(key));
  if (!isSuccess(first)) return { finding: fail(`It got ${told(first)}.`), base: null };
  if (ran !== null && ran !== 1) {
    return { finding: fail(`It got ${told(first)}, but the count URL counts ${ran}, not 1.`), base: null };
  }
  const { value: retry, ran: ranOnRetry } = await counted(api, () => api.settle(key));
  const other = await api.send(freshKey(api.target));
  if (!isSuccess(other))
    return { finding: fail(`A second one, with a key of its own, got ${told(other)}.`), base: null };
  const telling = !isSameResult(api.target, first, other);
  const how = telling ? "answers tell executions apart" : "answers of two executions are alike";
  const base = { key, first, retry, ranOnRetry, telling };
  return { finding: pass(`It got ${told(first)}; ${how}${ran === null ? "; nothing counts executions" : ""}.`), base };
}

async function findingOf(each: Case, api: Api, base: Baseline | null): Promise<Finding> {
  if (base === null) return cannotTell("The given request was not accepted, see the first case.");
  const excluded = each.excluded(api.target);
  if (excluded !== null) return notApplicable(excluded);
  try {
    return await each.run(api, base);
  } catch (error) {
    if (error instanceof Untold || error instanceof RunEnded) return cannotTell(error.message);
    if (error instanceof CountFailure) return cannotTell(`The count URL ${error.message}.`);
    throw error;
  }
}

function countsOf(reports: readonly CaseReport[]): Record<Verdict, number> {
  const count = (verdict: Verdict) => reports.filter((report) => report.verdict === verdict).length;
  return {
    pass: count("pass"),
    fail: count("fail"),
    "not-applicable": count("not-applicable"),
    "cannot-tell": count("cannot-tell"),
  };
}
