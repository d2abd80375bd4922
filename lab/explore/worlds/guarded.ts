import { COMMON, onceInside } from "../invariants.ts";
import type { World } from "../world.ts";
import { chargeWorld, DEDUPING, dedupes } from "./calls.ts";
import { ANN_AND_BOB, client, LEASE_MS, person } from "./cast.ts";
import { CHARGES, charges } from "./charges.ts";
import { guardedEffects } from "./guarded-effects.ts";
import { orders } from "./orders.ts";
import { bookings, bookingWorld } from "./phases.ts";
import { refunds } from "./refunds.ts";
import { booking, order, purging, RETENTION_MS, rules, TOMBSTONE_MS } from "./retention.ts";
import { leftByOthers } from "./rollouts.ts";
import { orderWorld } from "./transactions.ts";

/** Commits, fences and kinds. */
const commits: readonly World[] = [
  bookingWorld(
    {},
    {
      name: "v9",
      about: "the lease lapses twice, and the second owner sleeps with a statement under way",
      covers: ["V9"],
      budget: { pauses: 1, ticks: 2, impatience: 1 },
      processes: { A: bookings(), B: bookings(), C: bookings() },
      actors: [client("Ann", { via: ["A", "B", "C"], attempts: 3 })],
    },
  ),
  bookingWorld(
    { phases: [] },
    {
      name: "fence",
      about: "a process sleeps past its lease with its outcome under way, and another goes on",
      covers: [],
      budget: { pauses: 1, ticks: 1 },
      actors: ANN_AND_BOB,
    },
  ),
  orderWorld(
    {},
    {
      name: "v16",
      about: "COMMIT is under way when its connection is lost, and a look-up comes before it",
      covers: ["V16"],
      budget: { adrift: 1 },
    },
  ),
  {
    name: "v17",
    about: "phases code claims while transaction code of the same operation runs",
    covers: ["V17"],
    budget: {},
    processes: { A: orders({ lookUp: "skip" }), B: bookings() },
    actors: ANN_AND_BOB,
    invariants: [onceInside(), ...COMMON],
    declaredEnd: leftByOthers,
    progressWithinMs: 60_000,
  },
  chargeWorld({ recover: dedupes }, DEDUPING, {
    name: "v18",
    about: "phases code finds what captured code of the same operation has left",
    covers: ["V18"],
    budget: { ticks: 1, crashes: 1 },
    processes: { A: refunds({ name: CHARGES, call: "pay" }), B: charges({ recover: dedupes }) },
    actors: ANN_AND_BOB,
    invariants: [onceInside(), ...COMMON],
    declaredEnd: leftByOthers,
    progressWithinMs: 60_000,
  }),
  {
    name: "q3",
    about: "phases code was rolled back, and only transaction code finds what it left",
    covers: ["Q3"],
    budget: { ticks: 1, crashes: 1 },
    processes: { A: bookings(), B: orders() },
    actors: [client("Ann", { via: ["A", "B"] })],
    invariants: [onceInside(), ...COMMON],
    declaredEnd: leftByOthers,
    progressWithinMs: 60_000,
  },
  bookingWorld(
    { mayHang: true, phases: [] },
    {
      name: "q1",
      about: "a handler hangs for ever",
      covers: ["Q1"],
      budget: { untilMs: 5 * LEASE_MS, others: { hang: 1 } },
      actors: ANN_AND_BOB,
      progressWithinMs: 20 * LEASE_MS,
    },
  ),
];

/** Outcomes that are forgotten. */
const forgotten: readonly World[] = [
  {
    name: "v19",
    about: "a transaction that may take longer than outcomes are kept: refused at start",
    covers: ["V19"],
    budget: { ticks: 1 },
    processes: { A: order({ maxDurationMs: RETENTION_MS * 2, lookUp: "skip" }), B: booking({ end: "transaction" }) },
    actors: [...ANN_AND_BOB, person("Sue", "B", "purge")],
    invariants: rules(RETENTION_MS),
  },
  {
    name: "v20",
    about: "a retry that comes after the purge, while a tombstone stands",
    covers: ["V20"],
    budget: { ticks: 1 },
    processes: {
      A: order({ once: { ...purging, tombstoneMs: TOMBSTONE_MS } }),
      B: order({ once: { ...purging, tombstoneMs: TOMBSTONE_MS } }),
    },
    actors: [...ANN_AND_BOB, person("Sue", "B", "purge")],
    invariants: rules(RETENTION_MS + TOMBSTONE_MS),
  },
  {
    name: "v24",
    about: "a retry that comes right after a run that took long",
    covers: ["V24"],
    budget: { ticks: 2, crashes: 1 },
    processes: { A: booking({}), B: booking({}) },
    actors: [client("Ann"), client("Bob", { via: ["B"], attempts: 1 })],
    invariants: rules(RETENTION_MS),
  },
];

/** The smallest worlds in which the protocol's rows can be reached, each named by its row. */
export const guardedWorlds: readonly World[] = [...guardedEffects, ...commits, ...forgotten];
