import type { OncekeyEvent, RunEnd } from "../engine/event.ts";

/** What is counted in each step of the series. */
export type Counted =
  | "completed"
  | "failed"
  | "replayed"
  | "waited"
  | "busy"
  | "mismatch"
  | "unknown"
  | "refused"
  | "errors";

/** What happened in one step. */
export type SeriesPoint = { readonly [C in Counted]: number } & {
  /** The beginning of the step. */
  readonly at: Date;
  /** Of the durations of requests, in milliseconds; `null`: there were none. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  /** As last seen in this step; `null`: nobody looked. */
  readonly unresolved: number | null;
  /** Of the tables together. */
  readonly bytes: number | null;
};

/** Length of a step, in milliseconds. */
export const STEP_MS = 5_000;
/** An hour. */
const STEPS = 720;

/** Tenants with a series of their own, first come, first served. */
const MOST_TENANTS = 50;

const COUNTED: readonly Counted[] = [
  "completed",
  "failed",
  "replayed",
  "waited",
  "busy",
  "mismatch",
  "unknown",
  "refused",
  "errors",
];

/** What a request's end counts as. `completed` also splits by its state. */
export const ENDS: { readonly [K in RunEnd["kind"]]: Counted } = {
  completed: "completed",
  replayed: "replayed",
  mismatch: "mismatch",
  busy: "busy",
  outcome_unknown: "unknown",
  provisional: "unknown",
  refused: "refused",
  not_begun: "refused",
  gone: "refused",
  too_late: "refused",
  version_unknown: "errors",
  unprotected: "errors",
  lease_lost: "errors",
  commit_unknown: "errors",
  contention: "errors",
  store_unavailable: "errors",
  threw: "errors",
};

/** Upper bounds of the durations' buckets: each a quarter wider than the one before, from 0.1 ms to about two minutes. */
const BOUNDS_MS: readonly number[] = Array.from({ length: 64 }, (_, place) => 0.1 * 1.25 ** place);

interface Step {
  at: number;
  readonly counts: Record<Counted, number>;
  readonly durations: Uint32Array;
  unresolved: number | null;
  bytes: number | null;
}

/** The series of a process, and of its tenants. */
export interface Series {
  /** Counts what an event tells. Quick, and never raises. */
  note(event: OncekeyEvent): void;
  /** Counts what another process has counted. `tenant`: whose; `null`: of all. */
  count(tenant: string | null, what: Counted, times: number): void;
  /** The same with durations of requests. */
  countDurations(tenant: string | null, durationMs: number, times: number): void;
  /** Keeps what was seen in the current step. `tenant`: whose entries; `null`: all. */
  gauge(tenant: string | null, seen: { readonly unresolved: number; readonly bytes: number | null }): void;
  /** The steps after that instant, up to and with the current one, oldest first; an hour of them at most. */
  points(tenant: string | null, afterMs: number): readonly SeriesPoint[];
  /** The last step that is over. */
  last(tenant: string | null): SeriesPoint;
}

/** Counts events in steps of {@link STEP_MS}. `now`: milliseconds since 1970. */
export function createSeries(now: () => number = Date.now): Series {
  const startedAt = stepOf(now());
  const all = createTrack();
  const tenants = new Map<string, Track>();
  const trackOf = (tenant: string): Track | undefined => {
    const known = tenants.get(tenant);
    if (known !== undefined || tenants.size >= MOST_TENANTS) return known;
    const track = createTrack();
    tenants.set(tenant, track);
    return track;
  };
  const tracks = (tenant: string | null) => (tenant === null ? [all] : [all, trackOf(tenant)]);
  const of = (tenant: string | null) => (tenant === null ? all : trackOf(tenant));
  return {
    note(event) {
      const what = countedOf(event);
      if (what === null || !("tenant" in event)) return;
      for (const track of tracks(event.tenant)) {
        const step = track?.step(stepOf(now()));
        if (step === undefined) continue;
        step.counts[what] += 1;
        if (what !== "waited" && "durationMs" in event) countDuration(step, event.durationMs);
      }
    },
    count(tenant, what, times) {
      const step = of(tenant)?.step(stepOf(now()));
      if (step !== undefined) step.counts[what] += times;
    },
    countDurations(tenant, durationMs, times) {
      const step = of(tenant)?.step(stepOf(now()));
      if (step !== undefined) countDuration(step, durationMs, times);
    },
    gauge(tenant, { unresolved, bytes }) {
      const step = of(tenant)?.step(stepOf(now()));
      if (step !== undefined) Object.assign(step, { unresolved, bytes });
    },
    points(tenant, afterMs) {
      const current = stepOf(now());
      const first = Math.max(startedAt, current - (STEPS - 1) * STEP_MS, stepOf(afterMs) + STEP_MS);
      const points: SeriesPoint[] = [];
      for (let at = first; at <= current; at += STEP_MS) points.push(pointOf(at, of(tenant)?.seen(at)));
      return points;
    },
    last(tenant) {
      const at = stepOf(now()) - STEP_MS;
      return pointOf(at, of(tenant)?.seen(at));
    },
  };
}

const stepOf = (ms: number) => Math.floor(ms / STEP_MS) * STEP_MS;

const noCounts = () => Object.fromEntries(COUNTED.map((name) => [name, 0])) as Record<Counted, number>;

interface Track {
  /** The step that begins then, made where it is not there. */
  step(at: number): Step;
  /** The same where it is there. */
  seen(at: number): Step | undefined;
}

function createTrack(): Track {
  const ring: (Step | undefined)[] = [];
  const place = (at: number) => (at / STEP_MS) % STEPS;
  const seen: Track["seen"] = (at) => {
    const step = ring[place(at)];
    return step?.at === at ? step : undefined;
  };
  return {
    seen,
    step(at) {
      const known = seen(at);
      if (known !== undefined) return known;
      const step: Step = {
        at,
        counts: noCounts(),
        durations: new Uint32Array(BOUNDS_MS.length),
        unresolved: null,
        bytes: null,
      };
      ring[place(at)] = step;
      return step;
    },
  };
}

function countedOf(event: OncekeyEvent): Counted | null {
  if (!("by" in event) || event.by !== "request") return null;
  if (event.kind === "waited") return "waited";
  if (!Object.hasOwn(ENDS, event.kind)) return null;
  if (event.kind === "completed" && event.state === "failed") return "failed";
  return ENDS[event.kind as RunEnd["kind"]];
}

function countDuration(step: Step, durationMs: number, times = 1): void {
  const place = BOUNDS_MS.findIndex((bound) => durationMs <= bound);
  const at = place === -1 ? BOUNDS_MS.length - 1 : place;
  step.durations[at] = (step.durations[at] ?? 0) + times;
}

function pointOf(at: number, step: Step | undefined): SeriesPoint {
  return {
    at: new Date(at),
    ...(step?.counts ?? noCounts()),
    p50Ms: step === undefined ? null : quantileMs(step.durations, 0.5),
    p95Ms: step === undefined ? null : quantileMs(step.durations, 0.95),
    unresolved: step?.unresolved ?? null,
    bytes: step?.bytes ?? null,
  };
}

/** The upper bound of the bucket in which that share of the durations is reached: at most a quarter too much. */
function quantileMs(durations: Uint32Array, share: number): number | null {
  const total = durations.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let reached = 0;
  for (const [place, count] of durations.entries()) {
    reached += count;
    if (reached >= total * share) return Math.round((BOUNDS_MS[place] ?? 0) * 100) / 100;
  }
  return null;
}
