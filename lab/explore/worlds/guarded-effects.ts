import { COMMON } from "../invariants.ts";
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
import { ANN_AND_BOB, client, outsideOf, person, waitsForPerson } from "./cast.ts";
import { CHARGES, type ChargeCode, charges } from "./charges.ts";
import { codes, withOperator } from "./operators.ts";
import { REFUNDS, refunds } from "./refunds.ts";
import { database, LOSING, NOT_DURABLE } from "./rollouts.ts";

const SOON = { declaredEnd: waitsForPerson, progressWithinMs: 60_000 } as const;

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

/** The smallest worlds of outside effects, which no commit of ours takes back, each named by its row of the protocol. */
export const guardedEffects: readonly World[] = [...calls, ...captures];
