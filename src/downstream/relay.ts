import { pause } from "../core/clock.ts";
import { OncekeyError } from "../core/errors.ts";
import { claimsTopic } from "../core/outbox.ts";
import type { Instance } from "../engine/sweeping.ts";
import { type Crew, crewOf } from "./crew.ts";
import type { Desk, Settled } from "./deliver.ts";
import { type Destination, routesOf } from "./routes.ts";
import { tellingOf } from "./telling.ts";

export type { Destination } from "./routes.ts";

/** How the relay works. Durations in milliseconds. */
export interface RelayOptions {
  /**
   * Who delivers which topics: exact names, or prefixes that end in `*`; the most exact one counts. Messages of other
   * topics stay where they are, for a relay that knows them.
   */
  readonly topics: Readonly<Record<string, Destination>>;
  /** Pause between two rounds that found nothing. Default 500. */
  readonly intervalMs?: number;
  /** Messages delivered at one time. Default 8. */
  readonly parallel?: number;
  /** How long a message stays with a relay that does not answer any more; renewed while it works. Default 30,000. */
  readonly leaseMs?: number;
  /** Longest time one delivery may take. Default 15,000. */
  readonly timeoutMs?: number;
  /** Deliveries after which a message is a dead letter. Default 20: about seven hours. */
  readonly maxAttempts?: number;
  /** Longest pause between two deliveries of one message. Default 3,600,000 (an hour). */
  readonly longestPauseMs?: number;
  /** How long delivered messages are kept. Default 86,400,000 (24 h). */
  readonly keepDeliveredMs?: number;
}

/** What one round did. */
export interface RelayReport {
  readonly delivered: number;
  /** Given back, to be delivered later. */
  readonly postponed: number;
  /** Given up: dead letters. */
  readonly dead: number;
  /** Messages delivered long ago that were deleted. */
  readonly purged: number;
}

/** Delivers what operations have sent. Any number may run beside each other, in any process. */
export interface Relay {
  /** One round: everything that is due now. Raises what the store raises. */
  runOnce(): Promise<RelayReport>;
  /** Rounds until the signal aborts, then finishes what it has begun; errors go to `onError`. Raises `oncekey_not_started`. */
  run(signal: AbortSignal): Promise<void>;
}

type Numbers = Required<Omit<RelayOptions, "topics">>;

/** What a relay is made of. */
interface Works {
  readonly once: Instance;
  readonly desk: Desk;
  readonly numbers: Numbers;
  /** When the housekeeping of a running relay is due again, on the local clock. */
  readonly dueAtMs: { topics: number; purge: number };
}

const DEFAULTS: Numbers = {
  intervalMs: 500,
  parallel: 8,
  leaseMs: 30_000,
  timeoutMs: 15_000,
  maxAttempts: 20,
  longestPauseMs: 3_600_000,
  keepDeliveredMs: 86_400_000,
};

/** The longest that timers can count. */
const LONGEST_MS = 2 ** 31 - 1;
const LONGEST_KEEP_MS = 10 * 365 * 86_400_000;
/** Below this a lease cannot be renewed in time. */
const SHORTEST_LEASE_MS = 100;
const PURGE_BATCH = 500;
const PURGE_PAUSE_MS = 10_000;
const TOPICS_PAUSE_MS = 60_000;
/** Another relay may have the topic, and be about to deliver. */
const TOPICS_GRACE_MS = 10_000;
const LONGEST_STORE_PAUSE_MS = 30_000;

/** Creates a relay for the outbox of a started instance. Raises `oncekey_config_invalid` for a bad option. */
export function createRelay(once: Instance, options: RelayOptions): Relay {
  const numbers = numbersOf(options);
  const { context } = once.internals;
  const { outbox } = context.store;
  const { clock, random } = context.settings;
  const routes = routesOf(options.topics);
  const desk: Desk = {
    outbox,
    cipher: context.cipher,
    clock,
    random,
    routes,
    telling: tellingOf(context.settings),
    emit: context.emit,
    ...numbers,
  };
  const works: Works = { once, desk, numbers, dueAtMs: { topics: 0, purge: 0 } };
  return { runOnce: () => runOnce(works), run: (signal) => run(works, signal) };
}

async function runOnce(works: Works): Promise<RelayReport> {
  works.once.internals.lifecycle.admit();
  const report = { delivered: 0, postponed: 0, dead: 0, purged: 0 };
  const errors: unknown[] = [];
  let more = true;
  const crew = crewFor(works, () => errors.length > 0, {
    settled: (as) => void (as !== "lost" && report[as]++),
    failed: (error) => void errors.push(error),
    cutShort: () => {
      more = true;
    },
  });
  while (more && errors.length === 0) {
    more = false;
    const found = await claimInto(works, crew).catch((error: unknown) => void errors.push(error));
    if (found === "full") more = true;
    await (found === "full" ? crew.oneDone() : crew.allDone());
  }
  await crew.allDone();
  if (errors.length > 0) throw errors[0];
  await tellUnknownTopics(works);
  for (let purged = PURGE_BATCH; purged === PURGE_BATCH; report.purged += purged) purged = await purge(works);
  return report;
}

async function run(works: Works, signal: AbortSignal): Promise<void> {
  const { once, desk } = works;
  const { lifecycle } = once.internals;
  lifecycle.admit();
  const stopped = () => signal.aborted || lifecycle.phase !== "started";
  let failures = 0;
  const failed = (error: unknown) => {
    failures++;
    desk.telling.failed(error, "round");
  };
  const crew = crewFor(works, stopped, { settled: () => {}, failed, cutShort: () => {} });
  while (!stopped()) {
    const failuresBefore = failures;
    const found = await claimInto(works, crew).catch(failed);
    await keepHouse(works).catch(failed);
    if (failures === failuresBefore) failures = 0;
    if (found === "full") await crew.oneDone();
    else await untilMore(works, failures, signal, found === "some" ? crew : null);
  }
  await crew.allDone();
}

function crewFor(
  { once, desk, numbers }: Works,
  stopped: () => boolean,
  told: { settled(as: Settled): void; failed(error: unknown): void; cutShort(): void },
): Crew {
  return crewOf({ desk, parallel: numbers.parallel, lifecycle: once.internals.lifecycle, stopped, ...told });
}

/** Claims as many messages as there are free places. `full`: there may be more. */
async function claimInto({ desk }: Works, crew: Crew): Promise<"full" | "some" | "none"> {
  const limit = crew.free();
  const sentAtMs = desk.clock.monotonicMs();
  const claimed = await desk.outbox.claim({ topics: desk.routes.topics, limit, leaseMs: desk.leaseMs });
  for (const message of claimed) crew.start(message, sentAtMs);
  if (claimed.length === 0) return "none";
  return claimed.length < limit ? "some" : "full";
}

/** Waits for the next round: not at all once a place of the last one is done, longer with each failure of the store. */
async function untilMore({ desk, numbers }: Works, failures: number, signal: AbortSignal, crew: Crew | null) {
  const { clock, random } = desk;
  const baseMs = numbers.intervalMs * 2 ** Math.min(failures, 10);
  const pauseMs = Math.max(numbers.intervalMs, Math.min(LONGEST_STORE_PAUSE_MS, baseMs)) * (0.75 + random.unit() / 2);
  const enough = new AbortController();
  const resting = pause(clock, pauseMs, AbortSignal.any([signal, enough.signal]));
  await (crew === null ? resting : Promise.race([resting, crew.oneDone()]));
  enough.abort();
}

/** What is due only now and then. */
async function keepHouse(works: Works): Promise<void> {
  const { desk, dueAtMs } = works;
  const now = desk.clock.monotonicMs();
  if (now >= dueAtMs.topics) await tellUnknownTopics(works);
  if (now < dueAtMs.purge) return;
  dueAtMs.purge = now + PURGE_PAUSE_MS;
  // A full batch: there is more, and the next round goes on with it.
  if ((await purge(works)) === PURGE_BATCH) dueAtMs.purge = now;
}

async function purge({ desk, numbers }: Works): Promise<number> {
  const count = await desk.outbox.purge(PURGE_BATCH, numbers.keepDeliveredMs);
  desk.emit?.({ kind: "purged", what: "messages", count });
  return count;
}

/** Says so when messages wait that no destination takes: else a mistyped topic would wait in silence for ever. */
async function tellUnknownTopics({ desk, dueAtMs }: Works): Promise<void> {
  dueAtMs.topics = desk.clock.monotonicMs() + TOPICS_PAUSE_MS;
  const waiting = await desk.outbox.waiting();
  const unknown = waiting.filter(
    ({ topic, state, oldestMs }) =>
      state === "pending" && oldestMs >= TOPICS_GRACE_MS && !claimsTopic(desk.routes.topics, topic),
  );
  const count = unknown.reduce((sum, one) => sum + one.count, 0);
  if (count > 0) desk.telling.unknownTopics([...new Set(unknown.map(({ topic }) => topic))], count);
}

/** The numbers with every default filled in. */
function numbersOf(options: RelayOptions): Numbers {
  const given = Object.entries(options ?? {}).filter(([name, value]) => name in DEFAULTS && value !== undefined);
  const numbers: Numbers = { ...DEFAULTS, ...Object.fromEntries(given) };
  for (const [name, value] of Object.entries(numbers)) {
    const [least, most] = name === "keepDeliveredMs" ? [0, LONGEST_KEEP_MS] : [1, LONGEST_MS];
    if (!Number.isInteger(value) || value < least || value > most) {
      throw refused(`${name} must be a whole number from ${least} to ${most}`);
    }
  }
  if (numbers.leaseMs < SHORTEST_LEASE_MS) throw refused(`leaseMs must be at least ${SHORTEST_LEASE_MS}`);
  return numbers;
}

function refused(why: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `createRelay: ${why}. Nothing was started.`);
}
