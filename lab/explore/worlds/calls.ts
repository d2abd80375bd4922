import { COMMON, type Expected, onceInside, successHasEffect } from "../invariants.ts";
import type { Provider, ProviderTerms } from "../outside.ts";
import type { Invariant, Process, World } from "../world.ts";
import { ANN_AND_BOB_AGAIN, client, outsideOf, waitsForPerson, worker } from "./cast.ts";
import { type ChargeCode, charges } from "./charges.ts";

/** What a charge must have when it succeeded. */
const CHARGED: Expected = { phases: ["settled"], calls: ["pay"] };

/** The rules of every world of charges. */
const CHARGE_RULES: readonly Invariant[] = [onceInside(), successHasEffect(CHARGED), ...COMMON];

const HOUR_MS = 3_600_000;

/** The other side dedupes for longer than anybody tries. */
export const dedupes: ChargeCode["recover"] = () => ({ dedupes: { forMs: HOUR_MS } });
export const DEDUPING: Partial<ProviderTerms> = { dedupesForMs: 24 * HOUR_MS };

/** The other side dedupes for four seconds, of which the engine may count on 2.9: flight and margin come off. */
const WINDOW_MS = 4_000;
export const WINDOWED: Partial<ProviderTerms> = { dedupesForMs: WINDOW_MS, flightMs: 1_000 };
export const inWindow: ChargeCode["recover"] = () => ({ dedupes: { forMs: WINDOW_MS } });
const inWindowThenFinds: ChargeCode["recover"] = (desk, process) => ({
  dedupes: { forMs: WINDOW_MS },
  find: finder(desk, process),
});

/** Look-ups, and keys that can be made useless. No time is assumed. */
export const cancels: ChargeCode["recover"] = (desk, process) => ({
  find: finder(desk, process),
  cancel: ({ key }) => desk.cancel(process, key),
});

/** Look-ups, and a time after which nothing lands: the sum of the three that {@link SETTLING} declares, and a little more. */
export const settles: ChargeCode["recover"] = (desk, process) => ({
  find: finder(desk, process),
  settlesWithinMs: 2_000,
});
export const SETTLING: Partial<ProviderTerms> = { flightMs: 300, landsWithinMs: 1_400 };
export const LAGGING: Partial<ProviderTerms> = { ...SETTLING, lagMs: 200 };

export const never: ChargeCode["recover"] = () => ({ atMostOnce: true });

function finder(desk: Provider, process: Process): (call: { readonly key: string }) => ReturnType<Provider["find"]> {
  return ({ key }) => desk.find(process, key);
}

type Terms = Pick<World, "name" | "about" | "covers" | "budget"> & Partial<World>;

/** A world of charges: two processes of the same code, a client that tries them in turn, and what is outside. */
export function chargeWorld(code: ChargeCode, outside: Partial<ProviderTerms>, terms: Terms): World {
  return {
    outside: outsideOf(outside),
    processes: { A: charges(code), B: charges(code) },
    actors: [client("Ann")],
    invariants: CHARGE_RULES,
    ...terms,
  };
}

/** Worlds of one outside call, one or more for each form of recovery. */
export const callWorlds: readonly World[] = [
  chargeWorld({ recover: dedupes }, DEDUPING, {
    name: "call-duplicates",
    about: "two clients ask for the same at two processes; nothing goes wrong but patience",
    covers: [],
    budget: { impatience: 1 },
    actors: [client("Ann", { attempts: 2 }), client("Bob", { via: ["B"], attempts: 2 })],
  }),
  chargeWorld({ recover: dedupes }, DEDUPING, {
    name: "call-mismatch",
    about: "another payload under the same key, while the first runs, after its crash, and after its end",
    covers: [],
    budget: { crashes: 1, ticks: 2 },
    actors: [client("Ann", { attempts: 2 }), client("Bob", { payload: "6", via: ["B"], attempts: 2 })],
  }),
  chargeWorld({ recover: dedupes }, DEDUPING, {
    name: "call-claims",
    about: "two payloads race for one key, and nothing goes wrong: one claim is inserted, the other does nothing",
    covers: [],
    budget: {},
    actors: [client("Ann", { via: ["A"], attempts: 1 }), client("Bob", { payload: "6", via: ["B"], attempts: 1 })],
  }),
  chargeWorld({ recover: dedupes, books: true }, DEDUPING, {
    name: "call-dedupes",
    about: "dedupes: crash, a call that lands late, a lost answer of the store, a process that sleeps past its lease",
    covers: [],
    budget: { crashes: 1, pauses: 1, lost: 1, ticks: 2, impatience: 1, others: { "call late": 1 } },
  }),
  chargeWorld({ recover: inWindow }, WINDOWED, {
    name: "call-window",
    about: "dedupes for a time: after it the call is not repeated, and a person has to come",
    covers: [],
    budget: { crashes: 1, pauses: 1, ticks: 4, impatience: 1, others: { "call lost": 1 } },
    declaredEnd: waitsForPerson,
    progressWithinMs: 60_000,
  }),
  chargeWorld({ recover: inWindowThenFinds }, WINDOWED, {
    name: "call-window-find",
    about: "dedupes for a time, then asks: what landed is found after the window as well",
    covers: [],
    budget: { crashes: 1, ticks: 4, others: { "call lost": 1, "call refused": 1 } },
    declaredEnd: waitsForPerson,
    progressWithinMs: 60_000,
  }),
  chargeWorld(
    { recover: cancels },
    {},
    {
      name: "call-cancel",
      about: "find and cancel: no dedupe, no time assumed; late landings, crash, a sleeper whose call is on its way",
      covers: [],
      budget: { crashes: 1, pauses: 1, ticks: 2, impatience: 1, others: { "call late": 1 } },
    },
  ),
  chargeWorld(
    { recover: cancels },
    {},
    {
      name: "call-cancel-lost",
      about: "find and cancel: answers of calls, look-ups and cancellations are lost, and so are the store's",
      covers: [],
      budget: { lost: 1, ticks: 1, others: { "call late": 1, "call lost": 1, "find lost": 1, "cancel lost": 1 } },
    },
  ),
  chargeWorld({ recover: settles }, SETTLING, {
    name: "call-settles",
    about: "find and a time to settle: nobody crashes, nobody sleeps, the call times out and lands late",
    covers: [],
    budget: { ticks: 3, impatience: 1, others: { "call late": 1, "call silent": 1, "call refused": 1 } },
  }),
  chargeWorld({ recover: settles }, SETTLING, {
    name: "call-settles-zombie",
    about:
      "find and a time to settle: the sender sleeps past its lease, or crashes, with its call not sent or under way",
    covers: [],
    budget: { crashes: 1, pauses: 1, ticks: 3, others: { "call late": 1 } },
    actors: ANN_AND_BOB_AGAIN,
  }),
  chargeWorld({ recover: settles }, LAGGING, {
    name: "call-settles-lag",
    about: "find and a time to settle, and look-ups that lag behind what has landed",
    covers: [],
    budget: { ticks: 3, others: { "call lost": 1, "call refused": 1 } },
    actors: [client("Ann", { attempts: 3 })],
  }),
  chargeWorld(
    { recover: never },
    {},
    {
      name: "call-at-most-once",
      about: "neither dedupe nor look-up: sent once, and what is unknown then stays unknown until a person comes",
      covers: [],
      budget: { crashes: 1, pauses: 1, ticks: 2, impatience: 1, others: { "call late": 1 } },
      declaredEnd: waitsForPerson,
      progressWithinMs: 60_000,
    },
  ),
  chargeWorld(
    { recover: dedupes, maxAttempts: 2, maxDurationMs: 5_000 },
    { ...DEDUPING, isBroken: true },
    {
      name: "call-broken",
      about: "a provider that answers with the same error for ever: tries are bounded, then a person has to come",
      covers: [],
      budget: { ticks: 1 },
      declaredEnd: waitsForPerson,
      progressWithinMs: 60_000,
    },
  ),
  chargeWorld(
    { recover: cancels },
    {},
    {
      name: "call-sweeper",
      about: "no client comes back: two sweepers resume what a crash left",
      covers: [],
      budget: { crashes: 1, ticks: 2, lost: 1, others: { "call late": 1 } },
      processes: {
        A: charges({ recover: cancels }),
        B: charges({ recover: cancels }),
        C: charges({ recover: cancels }),
      },
      actors: [client("Ann", { via: ["A"], attempts: 1 }), worker("Sue", "B", "sweep"), worker("Tom", "C", "sweep")],
    },
  ),
];
