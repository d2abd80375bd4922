import { COMMON, onceInside, successHasEffect } from "../invariants.ts";
import type { ProviderTerms } from "../outside.ts";
import type { Invariant, World } from "../world.ts";
import {
  ANN_AND_BOB_AGAIN,
  client,
  LEASE_MS,
  outsideOf,
  person,
  SHORT_RUN_MS,
  waitsForPerson,
  worker,
} from "./cast.ts";
import { withOperator } from "./operators.ts";
import { REFUNDS, type RefundCode, refunds } from "./refunds.ts";

const RULES: readonly Invariant[] = [onceInside(), successHasEffect({ calls: ["refund"] }), ...COMMON];

/**
 * What is assumed of a handler whose lease is over: nothing of it happens later than its longest run and the longest pause
 * of a process, which is one lease.
 */
const BOUNDED: Partial<ProviderTerms> = { flightMs: SHORT_RUN_MS, landsWithinMs: LEASE_MS + SHORT_RUN_MS };

type Terms = Pick<World, "name" | "about" | "covers" | "budget"> & Partial<World>;

/** A world of refunds: two processes of the same code, and a client that tries them in turn. */
export function refundWorld(code: RefundCode, terms: Terms, outside: Partial<ProviderTerms> = BOUNDED): World {
  return {
    outside: outsideOf(outside),
    processes: { A: refunds(code), B: refunds(code) },
    actors: [client("Ann")],
    invariants: RULES,
    ...terms,
  };
}

/** Where only a person can settle what is left. */
export const UNSETTLED = { declaredEnd: waitsForPerson, progressWithinMs: 60_000 } as const;

/** Worlds of captured handlers. */
export const captureWorlds: readonly World[] = [
  refundWorld(
    {},
    {
      name: "refund-duplicates",
      about: "two clients ask for the same at two processes, and a third for something else",
      covers: [],
      budget: { impatience: 1 },
      actors: [
        client("Ann", { attempts: 1 }),
        client("Bob", { via: ["B"], attempts: 2 }),
        client("Cid", { payload: "6", via: ["A"], attempts: 1 }),
      ],
    },
  ),
  refundWorld(
    {},
    {
      name: "refund-crash",
      about: "a handler that nobody can ask about: a pause looks like a crash, and it never runs a second time",
      covers: [],
      budget: { crashes: 1, pauses: 1, ticks: 2, impatience: 1, others: { "call late": 1 } },
      ...UNSETTLED,
    },
    {},
  ),
  refundWorld(
    {},
    {
      name: "refund-lost-claim",
      about: "the claim's answer is lost and nobody dies: it is sent again until it is known, and the key is not lost",
      covers: [],
      budget: { lost: 1, refused: 1 },
    },
  ),
  refundWorld(
    { reconciles: true },
    {
      name: "refund-reconciled",
      about: "what a crash or a pause left is asked about, by a retry and a sweeper; `nothing` is believed late enough",
      covers: [],
      budget: { crashes: 1, pauses: 1, ticks: 3, longestPauseMs: LEASE_MS, others: { "call late": 1 } },
      actors: [client("Ann"), worker("Sue", "B", "sweep")],
    },
  ),
  refundWorld(
    { reconciles: true },
    {
      name: "refund-two-reconcilers",
      about: "two sweepers ask about one entry",
      covers: [],
      budget: { crashes: 1, lost: 1, ticks: 3 },
      processes: {
        A: refunds({ reconciles: true }),
        B: refunds({ reconciles: true }),
        C: refunds({ reconciles: true }),
      },
      actors: [client("Ann", { via: ["A"], attempts: 1 }), worker("Sue", "B", "sweep"), worker("Tom", "C", "sweep")],
    },
  ),
  refundWorld(
    { reconciles: true, onError: 500 },
    {
      name: "refund-500",
      about:
        "the handler answers 500 after its effect: unknown, and no final answer, whatever `reconcile` says meanwhile",
      covers: [],
      budget: { ticks: 2, lost: 1, others: { "call lost": 1, "call late": 1, "call refused": 1 } },
    },
  ),
  refundWorld(
    { reconciles: true },
    {
      name: "refund-throws",
      about: "the handler throws after its effect: unknown as well",
      covers: [],
      budget: { ticks: 2, others: { "call lost": 1, "call late": 1, "call refused": 1 } },
    },
  ),
  refundWorld(
    {},
    {
      name: "refund-operator",
      about: "an operator calls a refund failed, or gives it back, whose handler may still be at work",
      covers: [],
      budget: { crashes: 1, ticks: 3, others: { "call late": 1 } },
      processes: { A: refunds(), B: withOperator(refunds(), REFUNDS) },
      actors: [client("Ann"), person("Ada", "B", "fail"), person("Eve", "B", "release")],
      ...UNSETTLED,
    },
  ),
  refundWorld(
    { runsAgain: true },
    {
      name: "refund-runs-again",
      about: "at-least-once by declaration: its effect may be there twice, its answers still agree",
      covers: [],
      budget: { crashes: 1, pauses: 1, ticks: 2, others: { "call late": 1 } },
      invariants: RULES.filter(({ name }) => name !== "at most one effect per outside call"),
    },
  ),
  refundWorld(
    { asserts: true, reconciles: true },
    {
      name: "refund-asserted",
      about: "a handler that asserts its ownership in its own transaction: no pause is too long",
      covers: [],
      budget: { crashes: 1, pauses: 1, ticks: 3, adrift: 1 },
      invariants: [onceInside(), successHasEffect({ phases: ["refund"] }), ...COMMON],
    },
  ),
  refundWorld(
    { asserts: true, reconciles: true },
    {
      name: "refund-asserted-late",
      about: "its assertion is under way while it sleeps, and another has done the work meanwhile",
      covers: [],
      budget: { pauses: 1, ticks: 2 },
      actors: ANN_AND_BOB_AGAIN,
      invariants: [onceInside(), successHasEffect({ phases: ["refund"] }), ...COMMON],
    },
  ),
];
