import { fencedOutChangesNothing, onceInside, unresolvedIsKept } from "../invariants.ts";
import type { Process, Service, World } from "../world.ts";
import { client, person } from "./cast.ts";
import { type OrderCode, orders } from "./orders.ts";
import { type BookingCode, bookings } from "./phases.ts";

export const RETENTION_MS = 2_000;
export const TOMBSTONE_MS = 3_000;
/** Outcomes are forgotten soon. */
export const purging = { retentionMs: RETENTION_MS, purges: true };

/** Within this time of an effect its key is not new, whatever is purged. */
export const rules = (keptMs: number) => [onceInside({ keptMs }), unresolvedIsKept, fencedOutChangesNothing];

/** Adds a purge to a process. */
function withPurge(deploy: World["processes"][string]): World["processes"][string] {
  return async (process: Process, scene) => {
    const service: Service = await deploy(process, scene);
    return { ...service, tasks: { ...service.tasks, purge: () => process.store.purge(10) } };
  };
}

/** Orders whose outcomes are forgotten, and a purge. */
export const order = (code: OrderCode) => withPurge(orders({ isDated: true, once: purging, ...code }));
/** Phases whose outcomes are forgotten, and a purge. */
export const booking = (code: BookingCode) =>
  withPurge(bookings({ isDated: true, phases: [], once: purging, ...code }));

/** Worlds in which outcomes are forgotten. */
export const retentionWorlds: readonly World[] = [
  {
    name: "retention",
    about: "retries before and after retention, with a purge: none runs while the outcome is kept",
    covers: [],
    budget: { ticks: 3, crashes: 1 },
    processes: { A: order({}), B: order({}) },
    actors: [client("Ann", { attempts: 1 }), client("Bob", { via: ["B"] }), person("Sue", "B", "purge", 2)],
    invariants: rules(RETENTION_MS),
  },
  {
    name: "retention-slow-run",
    about: "retention counts from the end of a run, however long ago its claim was",
    covers: [],
    budget: { ticks: 4, pauses: 1, crashes: 1 },
    processes: { A: booking({}), B: booking({}) },
    actors: [client("Ann"), client("Bob", { via: ["B"], attempts: 1 }), person("Sue", "B", "purge", 1)],
    invariants: rules(RETENTION_MS),
  },
  {
    name: "retention-tombstone",
    about: "a very late retry is refused while a tombstone stands, purged or not",
    covers: [],
    budget: { ticks: 4 },
    processes: {
      A: order({ once: { ...purging, tombstoneMs: TOMBSTONE_MS } }),
      B: order({ once: { ...purging, tombstoneMs: TOMBSTONE_MS } }),
    },
    actors: [client("Ann", { attempts: 1 }), client("Bob", { via: ["B"] }), person("Sue", "B", "purge", 2)],
    invariants: rules(RETENTION_MS + TOMBSTONE_MS),
  },
  {
    name: "retention-short",
    about: "a transaction that may sleep longer than outcomes are kept is refused at start",
    covers: [],
    budget: { pauses: 1, ticks: 3 },
    processes: {
      A: order({ maxDurationMs: RETENTION_MS * 2 }),
      B: booking({ phases: ["transaction"] }),
    },
    actors: [
      client("Ann", { via: ["A"], attempts: 1 }),
      client("Bob", { via: ["B"], attempts: 1 }),
      person("Sue", "B", "purge", 1),
    ],
    invariants: rules(RETENTION_MS),
  },
];
