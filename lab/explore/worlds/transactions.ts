import { COMMON, messagesGoWithRows, onceInside, successHasEffect } from "../invariants.ts";
import type { Invariant, World } from "../world.ts";
import { ANN_AND_BOB, client, worker } from "./cast.ts";
import { type OrderCode, orders } from "./orders.ts";

const RULES: readonly Invariant[] = [onceInside(), successHasEffect({ phases: ["transaction"] }), ...COMMON];

type Terms = Pick<World, "name" | "about" | "covers" | "budget"> & Partial<World>;

/** A world of orders: two processes of the same code, and a client that tries them in turn. */
export function orderWorld(code: OrderCode, terms: Terms): World {
  return {
    processes: { A: orders(code), B: orders(code) },
    actors: [client("Ann")],
    invariants: RULES,
    ...terms,
  };
}

const TWO = [client("Ann", { via: ["A", "B"] }), client("Bob", { via: ["B", "A"] })];

/** Worlds of operations that are one commit. */
export const transactionWorlds: readonly World[] = [
  orderWorld(
    {},
    {
      name: "order-duplicates",
      about: "two clients ask for the same at two processes, and impatiently",
      covers: [],
      budget: { impatience: 1 },
      actors: TWO,
    },
  ),
  orderWorld(
    {},
    {
      name: "order-mismatch",
      about: "another payload under the same key, while the first runs and after it",
      covers: [],
      budget: { crashes: 1, lost: 1 },
      actors: [client("Ann", { via: ["A", "B"] }), client("Bob", { payload: "6", via: ["B", "A"] })],
    },
  ),
  orderWorld(
    {},
    {
      name: "order-lost-commit",
      about: "COMMIT is under way when its connection is lost, or its process: an absent row proves nothing",
      covers: [],
      budget: { crashes: 1, adrift: 1, lost: 1, impatience: 1 },
    },
  ),
  orderWorld(
    { lookUp: "skip" },
    {
      name: "order-blind",
      about: "no look-up before the transaction: the locks and the index decide",
      covers: [],
      budget: { adrift: 1, crashes: 1 },
      actors: TWO,
    },
  ),
  orderWorld(
    {},
    {
      name: "order-sleeps",
      about: "a process sleeps in its transaction while duplicates come",
      covers: [],
      budget: { pauses: 1, ticks: 2, impatience: 1, longestPauseMs: 250 },
      actors: TWO,
    },
  ),
  orderWorld(
    {},
    {
      name: "order-waits",
      about: "a duplicate that waits for the other process's end, and the process dies",
      covers: [],
      budget: { crashes: 1, ticks: 1 },
      processes: { A: orders({ once: { waitMs: 100 } }), B: orders({ once: { waitMs: 100 } }) },
      actors: ANN_AND_BOB,
    },
  ),
  orderWorld(
    { rejects: true },
    {
      name: "order-rejected",
      about: "a refusal rolls its rows back, is stored after them, and is what everybody hears",
      covers: [],
      budget: { crashes: 1, adrift: 1, lost: 1 },
      actors: TWO,
    },
  ),
  orderWorld(
    { sends: true },
    {
      name: "order-message",
      about: "an outbox message goes with the commit of its order, or not at all",
      covers: [],
      budget: { crashes: 1, adrift: 1, lost: 1, impatience: 1 },
      invariants: [messagesGoWithRows, ...RULES],
    },
  ),
  orderWorld(
    { isWithin: true },
    {
      name: "order-within",
      about: "runs inside a transaction that the caller opened, and ends",
      covers: [],
      budget: { crashes: 1, adrift: 1, lost: 1 },
      actors: [client("Ann", { via: ["A", "B"] }), client("Bob", { payload: "6", via: ["B", "A"], attempts: 1 })],
    },
  ),
  orderWorld(
    {},
    {
      name: "order-store-down",
      about: "statements never arrive, in every place of a run",
      covers: [],
      budget: { refused: 2, lost: 1 },
      actors: [client("Ann", { attempts: 3 })],
    },
  ),
  orderWorld(
    {},
    {
      name: "order-beside-sweeper",
      about: "a sweeper with nothing to do beside orders",
      covers: [],
      budget: { crashes: 1 },
      actors: [client("Ann"), worker("Sue", "B", "sweep")],
    },
  ),
];
