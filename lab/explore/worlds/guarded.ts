import { COMMON, onceInside } from "../invariants.ts";
import type { World } from "../world.ts";
import {
  cancels,
  chargeWorld,
  DEDUPING,
  dedupes,
  inWindow,
  LAGGING,
  never,
  SETTLING,
  settles,
  WINDOWED,
} from "./calls.ts";
import { refundWorld, UNSETTLED } from "./captures.ts";
import { client, LEASE_MS, outsideOf, person, waitsForPerson } from "./cast.ts";
import { CHARGES, type ChargeCode, charges } from "./charges.ts";
import { codes, withOperator } from "./operators.ts";
import { orders } from "./orders.ts";
import { bookings, bookingWorld } from "./phases.ts";
import { REFUNDS, refunds } from "./refunds.ts";
import { booking, order, purging, RETENTION_MS, rules, TOMBSTONE_MS } from "./retention.ts";
import { database, LOSING, leftByOthers, NOT_DURABLE } from "./rollouts.ts";
import { orderWorld } from "./transactions.ts";

const SOON = { declaredEnd: waitsForPerson, progressWithinMs: 60_000 } as const;
const ANN_AND_BOB = [client("Ann", { via: ["A"], attempts: 1 }), client("Bob", { via: ["B"], attempts: 1 })];

/** Clients go on retrying for longer than the other side dedupes. */
const losable: ChargeCode = {
  recover: inWindow,
  ...NOT_DURABLE,
  dedupesForMs: 4_000,
  once: { clientRetryWindowMs: 6_000 },
};

/** Outside calls: what is sent may land, and who sent it may be gone. */
const calls: readonly World[] = [
  chargeWorld({ recover: settles }, SETTLING, {
    name: "v1",
    about: "nobody crashes, nobody sleeps: the call is cut off, its sender looks it up, and then it lands",
    covers: ["V1"],
    budget: { ticks: 1, others: { "call late": 1 } },
  }),
  chargeWorld({ recover: settles }, SETTLING, {
    name: "v2",
    about: "the sender crashes with its call under way; who takes over looks it up before it lands",
    covers: ["V2"],
    budget: { crashes: 1, ticks: 1, others: { "call late": 1 } },
  }),
  chargeWorld({ recover: inWindow }, WINDOWED, {
    name: "v3",
    about:
      "the first sender sleeps before its call until another has made it, and the window of the other side is over",
    covers: ["V3"],
    budget: { pauses: 1, ticks: 2 },
    actors: ANN_AND_BOB,
    ...SOON,
  }),
  chargeWorld({ recover: inWindow }, WINDOWED, {
    name: "v4",
    about: "the other side dedupes for a time, and its window ends between a crash and the next attempt",
    covers: ["V4"],
    budget: { crashes: 1, ticks: 2 },
    ...SOON,
  }),
  chargeWorld({ recover: settles }, LAGGING, {
    name: "v5",
    about: "what was sent again has landed, and look-ups do not show it yet",
    covers: ["V5"],
    budget: { ticks: 1, others: { "call lost": 1, "call refused": 1 } },
  }),
  chargeWorld(
    { recover: never },
    {},
    {
      name: "v6",
      about: "the sender crashes after its call has landed: only its intent tells that it was sent",
      covers: ["V6"],
      budget: { crashes: 1, ticks: 1 },
      ...SOON,
    },
  ),
  chargeWorld(losable, WINDOWED, {
    name: "v7",
    about: "a claim that a crash of the database loses: who finds none believes to be the first; refused at start",
    covers: ["V7"],
    budget: { crashes: 1, ticks: 1 },
    processes: { D: database(CHARGES), A: charges(losable), B: charges(losable) },
    actors: [...ANN_AND_BOB, LOSING],
  }),
  chargeWorld({ recover: settles }, SETTLING, {
    name: "v14",
    about: "an operator calls a charge failed that was given up, while its call may still land",
    covers: ["V14"],
    budget: { ticks: 1, others: { "call late": 1 } },
    processes: codes({ recover: settles, maxAttempts: 1 }),
    actors: [client("Ann"), person("Ada", "B", "fail")],
  }),
  chargeWorld(
    { recover: cancels },
    {},
    {
      name: "v15",
      about: "an operator gives an entry back whose call has landed: it is resumed, and not begun anew",
      covers: ["V15"],
      budget: { crashes: 1, ticks: 1 },
      processes: codes({ recover: cancels }),
      actors: [client("Ann"), person("Ada", "B", "insist")],
    },
  ),
  chargeWorld(
    { recover: dedupes, maxAttempts: 2, maxDurationMs: 5_000 },
    { ...DEDUPING, isBroken: true },
    {
      name: "q4",
      about: "a provider that answers with the same error for ever",
      covers: ["Q4"],
      budget: {},
      ...SOON,
    },
  ),
];

/** Captured handlers, which no fence reaches. */
const captures: readonly World[] = [
  {
    name: "v8",
    about: "a captured handler's claim that a crash of the database loses: refused at start",
    covers: ["V8"],
    budget: {},
    outside: outsideOf(),
    processes: { D: database(REFUNDS), A: refunds(NOT_DURABLE), B: refunds(NOT_DURABLE) },
    actors: [...ANN_AND_BOB, LOSING],
    invariants: COMMON,
  },
  refundWorld(
    {},
    {
      name: "v10",
      about: "a process that is gone, or only slow, has done its work: it is not done again",
      covers: ["V10"],
      budget: { crashes: 1, ticks: 1 },
      ...UNSETTLED,
    },
  ),
  refundWorld(
    { reconciles: true },
    {
      name: "v11",
      about: "nothing is found, and then the effect of the handler comes after all",
      covers: ["V11"],
      budget: { others: { "call late": 1 } },
    },
  ),
  refundWorld(
    {},
    {
      name: "v12",
      about: "an operator calls a refund failed whose handler may still be at work",
      covers: ["V12"],
      budget: { ticks: 1, others: { "call late": 1 } },
      processes: { A: refunds(), B: withOperator(refunds(), REFUNDS) },
      actors: [client("Ann"), person("Ada", "B", "fail")],
      ...UNSETTLED,
    },
  ),
  refundWorld(
    { reconciles: true, onError: 500 },
    {
      name: "v13",
      about: "the handler answers 500 after its effect",
      covers: ["V13"],
      budget: { ticks: 1, others: { "call lost": 1 } },
    },
  ),
  refundWorld(
    {},
    {
      name: "q2",
      about: "the claim's answer is lost, and nobody crashes or sleeps: no person may be needed",
      covers: ["Q2"],
      budget: { lost: 1 },
      progressWithinMs: 60_000,
    },
  ),
];

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
export const guardedWorlds: readonly World[] = [...calls, ...captures, ...commits, ...forgotten];
