import type { Figures } from "../figures.ts";

/** What was measured of one request, and feeds the model. Processor time in microseconds. */
export interface Cost {
  /** Of the process that runs Oncekey, HTTP included. */
  readonly apiMicros: number;
  /** Of the database, for a fresh `transaction`; an upper bound, the harness is in it. */
  readonly databaseMicros: number;
  readonly walBytes: number;
  readonly statements: number;
  readonly bytesPerEntry: number;
}

/** What the model assumes: nobody measured these, change them for your own case. */
export const ASSUMED = {
  /** The busiest second over the average one of a day. */
  peak: 5,
  retentionDays: 1,
  /** Share of a machine's processors that may be busy in that second. */
  busy: 0.6,
  /** Processors of one primary. */
  cores: 32,
  /** How long a fresh request holds a connection, in milliseconds: your own statements are most of it. */
  heldMs: 10,
} as const;

/** What a load needs. Rates are of the busiest second. */
export interface Capacity {
  readonly perSecond: number;
  readonly databaseCores: number;
  readonly apiCores: number;
  readonly connections: number;
  readonly walBytesPerSecond: number;
  readonly diskBytes: number;
  readonly primaries: number;
}

/** The costs of a fresh `transaction`, as the last kept run of the bench has them. Raises where it has no such figures. */
export function costOf({ comparisons, counters }: Figures): Cost {
  const contenders = comparisons.find(({ group }) => group === "transaction")?.contenders ?? [];
  const of = (wanted: string) => contenders.find(({ name }) => name === wanted);
  const served = of("transaction");
  const called = of("transaction-called");
  const counted = counters.transaction;
  const apiMicros = served?.cpuMicros?.median;
  const bytesPerEntry = served?.bytesPerEntry;
  const callMicros = called?.cpuMicros?.median;
  const allMicros = called?.allCpuMicros?.median;
  if (!apiMicros || !bytesPerEntry || !callMicros || !allMicros || counted === undefined)
    throw new Error("The kept figures of the bench lack the fresh transaction.");
  const { walBytes, statements } = counted;
  return { apiMicros, databaseMicros: allMicros - callMicros, walBytes, statements, bytesPerEntry };
}

/** What so many fresh requests a day need, or (`steady`) so many in every second of it. */
export function capacityOf(cost: Cost, perDay: number, steady = false): Capacity {
  const perSecond = (perDay / 86_400) * (steady ? 1 : ASSUMED.peak);
  const databaseCores = (perSecond * cost.databaseMicros) / 1e6 / ASSUMED.busy;
  return {
    perSecond,
    databaseCores,
    apiCores: (perSecond * cost.apiMicros) / 1e6 / ASSUMED.busy,
    connections: (perSecond * ASSUMED.heldMs) / 1_000,
    walBytesPerSecond: perSecond * cost.walBytes,
    diskBytes: perDay * ASSUMED.retentionDays * cost.bytesPerEntry,
    primaries: Math.ceil(databaseCores / ASSUMED.cores),
  };
}
