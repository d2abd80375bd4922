import { OncekeyError } from "../core/errors.ts";
import { type Instance, type SweepAccess, type SweepJob, type Swept, sweepJobs } from "../engine/sweeping.ts";
import { announce, maintain, markLapsed, purge, removeBodies } from "./housekeeping.ts";
import { loop, type Step } from "./loop.ts";
import { createPlaces, type Places } from "./places.ts";

/** How the sweeper works. */
export interface SweeperOptions {
  /** Pause after a look that found nothing, in milliseconds. Default 1,000. */
  readonly intervalMs?: number;
  /** Most entries of one operation taken up in a single round of `runOnce`; most rows purged or marked by one statement. Default 200. */
  readonly batch?: number;
  /** Entries of one operation worked on at one time; never more are taken. A slow operation holds up no other. Default 4. */
  readonly parallel?: number;
  /** Pause between two full batches of a purge, in milliseconds, so that it never takes the database for itself. Default 50. */
  readonly purgePauseMs?: number;
  /** How long `run` lets work under way finish when it is told to stop, in milliseconds; then it gives it back. Default 10,000. */
  readonly graceMs?: number;
}

/** What one round did. Each entry that was taken up counts once, in one of the first five. */
export interface SweepReport {
  /** `phases` entries that went on from their recovery point: to their end, or to a pause until something is known. */
  readonly resumed: number;
  /** Captured entries whose `reconcile` was asked, whatever it said. */
  readonly reconciled: number;
  /** Entries that ended in `needs_recovery` with a reason: too many attempts, or nothing that asking again could settle. */
  readonly gaveUp: number;
  /** Entries whose resume threw; they stay as their recovery points left them, and the error went to `onError`. */
  readonly failed: number;
  /** Entries given back untouched. */
  readonly left: number;
  /** Captured entries whose owner is gone: marked `needs_recovery`. */
  readonly marked: number;
  /** Outcomes whose retention was over. */
  readonly purged: number;
  /** Deliveries of the inbox that need not be remembered any more. */
  readonly purgedDeliveries: number;
  /** Bodies that no entry points at any more: removed from the body store. */
  readonly removedBodies: number;
}

/** Continues what nobody continues, and deletes what has expired. Any number may run beside each other. */
export interface Sweeper {
  /** One round. Raises what the store raises. */
  runOnce(): Promise<SweepReport>;
  /**
   * Works until the signal aborts or the instance closes; then finishes what it holds or gives it back. Errors go to
   * `onError` and the next look tries again. Raises `oncekey_not_started` and `oncekey_closed`.
   */
  run(signal: AbortSignal): Promise<void>;
}

/** Operators are shown what no sweeper has announced within the last minute. */
const ANNOUNCE_EVERY_MS = 10_000;

/** Nobody waits for a body to be removed. */
const BODIES_EVERY_MS = 10_000;

/** Partitions are made a width ahead: nobody waits for the next one. */
const MAINTAIN_EVERY_MS = 30_000;

type Options = Required<SweeperOptions>;
type Counts = Record<Swept, number>;

/** Creates a sweeper for the operations of a started instance. Raises `oncekey_config_invalid` for a bad option. */
export function createSweeper(once: Instance, options: SweeperOptions = {}): Sweeper {
  const given = checked(options);
  const access = once.internals;
  return {
    async runOnce() {
      access.lifecycle.admit();
      return runOnce(access, sweepJobs(access), given);
    },
    async run(signal) {
      access.lifecycle.admit();
      return run(access, sweepJobs(access), given, signal);
    },
  };
}

async function runOnce(access: SweepAccess, jobs: readonly SweepJob[], options: Options): Promise<SweepReport> {
  const { counts, workers } = placesOf(access, jobs, options);
  await announce(access, jobs);
  // Beside each other: a slow resume must not hold up the rest.
  const [{ marked }, { purged, purgedDeliveries }, { removedBodies }] = await Promise.all([
    markLapsed(access, jobs, options.batch),
    purge(access, options.batch),
    removeBodies(access, options.batch),
    maintain(access),
    ...workers.map((places) => workOnce(places, options.batch)),
  ] as const);
  return { ...counts, marked, purged, purgedDeliveries, removedBodies };
}

async function workOnce(places: Places, batch: number): Promise<void> {
  try {
    for (let left = batch; left > 0; await places.oneLeft()) {
      left -= await places.fill(left);
      if (places.held === 0) return;
    }
  } finally {
    await places.allLeft();
  }
}

async function run(
  access: SweepAccess,
  jobs: readonly SweepJob[],
  options: Options,
  signal: AbortSignal,
): Promise<void> {
  const { intervalMs, batch, purgePauseMs, graceMs } = options;
  const { workers } = placesOf(access, jobs, options);
  const pauses = { nothingMs: intervalMs, moreMs: purgePauseMs };
  const said = ({ more }: { readonly more: boolean }): Step => (more ? "more" : "nothing");
  const announced = { nothingMs: ANNOUNCE_EVERY_MS, moreMs: ANNOUNCE_EVERY_MS };
  await Promise.all([
    ...workers.map((places) => work(access, places, intervalMs, signal)),
    loop(access, "announce", signal, () => announce(access, jobs).then(() => "nothing"), announced),
    loop(access, "mark", signal, () => markLapsed(access, jobs, batch).then(said), pauses),
    loop(access, "purge", signal, () => purge(access, batch).then(said), pauses),
    loop(access, "maintain", signal, () => maintain(access, signal).then(said), {
      nothingMs: MAINTAIN_EVERY_MS,
      moreMs: purgePauseMs,
    }),
    loop(access, "remove bodies", signal, () => removeBodies(access, batch, signal).then(said), {
      nothingMs: Math.max(intervalMs, BODIES_EVERY_MS),
      moreMs: purgePauseMs,
    }),
  ]);
  await Promise.all(workers.map((places) => places.leave(graceMs)));
}

/**
 * Keeps the places of one operation filled: asks when one is left, at once where the last look found something (places are
 * left while it asks, and a backlog must not wait out a pause for each handful), and else after a pause.
 */
function work(access: SweepAccess, places: Places, intervalMs: number, signal: AbortSignal): Promise<void> {
  const step = async (): Promise<Step> => {
    const { isFull } = places;
    return (await places.fill(Infinity)) > 0 || isFull ? "more" : "nothing";
  };
  const wake = () => (places.isFull ? places.freed : undefined);
  return loop(access, "take", signal, step, { nothingMs: intervalMs, moreMs: 0, wake });
}

function placesOf(access: SweepAccess, jobs: readonly SweepJob[], { parallel }: Options) {
  const counts: Counts = { resumed: 0, reconciled: 0, gaveUp: 0, failed: 0, left: 0 };
  const swept = (what: Swept) => void counts[what]++;
  const workers = jobs.filter(({ takes }) => takes).map((job) => createPlaces(access, job, parallel, swept));
  return { counts, workers };
}

function checked(options: SweeperOptions): Options {
  const { intervalMs = 1_000, batch = 200, parallel = 4, purgePauseMs = 50, graceMs = 10_000 } = options;
  const isWhole = (value: number, least: number) => Number.isInteger(value) && value >= least && value < 2 ** 31;
  if (![intervalMs, batch, parallel].every((value) => isWhole(value, 1))) {
    throw refused("intervalMs, batch and parallel must be whole numbers from 1");
  }
  if (![purgePauseMs, graceMs].every((value) => isWhole(value, 0))) {
    throw refused("purgePauseMs and graceMs must be whole numbers of milliseconds from 0");
  }
  return { intervalMs, batch, parallel, purgePauseMs, graceMs };
}

function refused(what: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `${what}. Nothing was started.`);
}
