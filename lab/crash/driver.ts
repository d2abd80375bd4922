import { randomOf } from "../support/random.ts";
import { type FaultKind, forMs, type Lane, type Struck } from "./fault.ts";
import type { World } from "./world.ts";

/** What became of one kind of fault over the campaign. */
export interface FaultTally {
  readonly name: string;
  runs: number;
  /** Runs that met traffic. */
  metRuns: number;
  /** Why it was not done; `null` where it could be. */
  readonly missing: string | null;
}

/** Who is told what the driver does. */
export interface DriverEvents {
  /** `null`: the lane rests. */
  onFault(lane: Lane, name: string | null): void;
  onStruck(name: string, struck: Struck): void;
  /** A fault that failed is a fault of the lab. */
  onBroken(name: string, error: unknown): void;
}

/** A plan's next fault: its kind, and the number of its run within the lane, from which all of its choices follow. */
export interface Planned {
  readonly kind: FaultKind;
  readonly run: number;
}

/** The faults of a lane in the order of the seed: each once, shuffled, again and again. Never ends. */
export function* planOf(kinds: readonly FaultKind[], seed: number, lane: Lane): Generator<Planned> {
  for (let round = 0, run = 0; kinds.length > 0; round++) {
    for (const kind of randomOf(seed, "plan", lane, round).shuffled(kinds)) yield { kind, run: run++ };
  }
}

const LANES: readonly Lane[] = ["processes", "database", "wires", "upkeep"];
/** A kind that met nothing is tried again so often. */
const TRIES = 4;
const LONGEST_PAUSE_MS = 400;

/** What the driver is told. */
export interface DriverTerms {
  readonly faults: readonly FaultKind[];
  readonly seed: number;
  readonly lastsMs: number;
  /** Aborts where somebody wants the campaign to end. */
  readonly stopping: AbortSignal;
}

/**
 * Strikes in every lane until the time is over, and at least until each kind was done once and has met traffic (or was
 * tried often enough without). Resolves with the tallies, in the order of the table.
 */
export async function drive(world: World, terms: DriverTerms, events: DriverEvents): Promise<FaultTally[]> {
  const tallies = new Map(
    terms.faults.map(({ name, missing }) => [name, { name, runs: 0, metRuns: 0, missing: missing?.(world) ?? null }]),
  );
  const untilMs = performance.now() + terms.lastsMs;
  const lanes = LANES.map(async (lane) => {
    const kinds = terms.faults.filter((kind) => kind.lane === lane && tallies.get(kind.name)?.missing === null);
    const isOwed = ({ name }: FaultKind) => {
      const tally = tallies.get(name);
      return tally !== undefined && tally.metRuns === 0 && tally.runs < TRIES;
    };
    for (const { kind, run } of planOf(kinds, terms.seed, lane)) {
      const isOver = performance.now() > untilMs;
      if (terms.stopping.aborted || (isOver && !kinds.some(isOwed))) break;
      // When the time is over, only what is still owed is done.
      if (isOver && !isOwed(kind)) continue;
      await strikeOnce(world, { kind, run }, terms, { tally: tallies.get(kind.name), events });
    }
    events.onFault(lane, null);
  });
  await Promise.all(lanes);
  return [...tallies.values()];
}

interface Noted {
  readonly tally: FaultTally | undefined;
  readonly events: DriverEvents;
}

async function strikeOnce(world: World, { kind, run }: Planned, { seed }: DriverTerms, { tally, events }: Noted) {
  const random = randomOf(seed, kind.lane, run);
  events.onFault(kind.lane, kind.name);
  try {
    const struck = await kind.strike(world, random);
    if (tally !== undefined) {
      tally.runs++;
      if (struck.met > 0) tally.metRuns++;
    }
    events.onStruck(kind.name, struck);
  } catch (error) {
    // Counted, or a fault that always breaks would be tried for ever.
    if (tally !== undefined) tally.runs++;
    events.onBroken(kind.name, error);
  }
  events.onFault(kind.lane, null);
  await forMs(random.between(0, LONGEST_PAUSE_MS));
}
