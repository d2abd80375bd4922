import { COMMON, onceInside } from "../invariants.ts";
import type { Answer, ClientActor, Deploy, World } from "../world.ts";
import { cancels, chargeWorld, dedupes, SETTLING, settles } from "./calls.ts";
import { ANN_AND_BOB, ANN_AND_BOB_AGAIN, client, idOf, person, waitsForPerson } from "./cast.ts";
import { CHARGES, type ChargeCode, charges } from "./charges.ts";
import { orders } from "./orders.ts";
import { bookings } from "./phases.ts";
import { refunds } from "./refunds.ts";

const HOUR_MS = 3_600_000;
const DEDUPING = { dedupesForMs: 24 * HOUR_MS };

/** Where only code of another kind, or older code, is left: it says whose the entry is, and neither runs nor judges it. */
export function leftByOthers(_client: ClientActor, last: Answer | null): string | null {
  const isTold = last?.kind === "later" && /^unknown: .*left by /.test(last.text);
  return isTold ? null : waitsForPerson(_client, last);
}

/** One at each process. */

/**
 * The database crashes, and has lost the claim of `k`, whose commit was asynchronous. Whatever was committed synchronously
 * after it has made the claim durable as well: then it stays.
 */
export function database(operation: string): Deploy {
  return async ({ store }) => ({
    tasks: {
      async crash() {
        const entry = await store.read(idOf(operation));
        if (entry?.attempt === 1) await store.release(entry.id, entry.fence, false);
      },
    },
  });
}

/** It loses claims. */
export const LOSING = person("The database", "D", "crash");
/** How claims are committed where start() allows it. */
export const NOT_DURABLE = { claimCommit: "asynchronous" } as const;

const LOSES_CLAIMS = { budget: { crashes: 1, ticks: 1, others: { "call late": 1 } }, covers: [] } as const;

/** Two processes whose claims the database may lose, and one that loses them. */
function losing(code: ChargeCode): Pick<World, "processes" | "actors"> {
  const losable = { ...NOT_DURABLE, ...code };
  const actors = [...ANN_AND_BOB, LOSING];
  return { processes: { D: database(CHARGES), A: charges(losable), B: charges(losable) }, actors };
}

/** Worlds in which the database loses claims of operations that allow it. */
export const lostClaimWorlds: readonly World[] = [
  chargeWorld({ recover: dedupes }, DEDUPING, {
    name: "lost-claim-dedupes",
    about:
      "a claim is lost in a crash of the database, its call has landed: the next one finds the other side deduping",
    ...LOSES_CLAIMS,
    ...losing({ recover: dedupes, dedupesForMs: HOUR_MS, once: { clientRetryWindowMs: HOUR_MS / 2 } }),
  }),
  chargeWorld(
    { recover: cancels },
    {},
    {
      name: "lost-claim-cancels",
      about: "a claim may be lost until its intent is committed, before which nothing is sent; nobody dedupes",
      ...LOSES_CLAIMS,
      ...losing({ recover: cancels, dedupesForMs: 0 }),
    },
  ),
  chargeWorld({ recover: settles }, SETTLING, {
    name: "lost-claim-settles",
    about: "the same where look-ups are believed after a time",
    ...LOSES_CLAIMS,
    ...losing({ recover: settles, dedupesForMs: 0 }),
  }),
];

/** Worlds in which two processes run different code. */
export const rolloutWorlds: readonly World[] = [
  {
    name: "kinds-transaction-phases",
    about: "transaction code beside phases code of the same operation: the unique index decides",
    covers: [],
    budget: { ticks: 1, crashes: 1 },
    processes: { A: orders({ lookUp: "skip" }), B: bookings() },
    actors: ANN_AND_BOB_AGAIN,
    invariants: [onceInside(), ...COMMON],
    declaredEnd: leftByOthers,
    progressWithinMs: 60_000,
  },
  {
    name: "kinds-phases-transaction",
    about: "phases code was rolled back, and what it left is neither run nor judged by transaction code",
    covers: [],
    budget: { ticks: 1, crashes: 1 },
    processes: { A: bookings(), B: orders() },
    actors: [client("Ann", { via: ["A", "B"], attempts: 3 })],
    invariants: [onceInside(), ...COMMON],
    declaredEnd: leftByOthers,
    progressWithinMs: 60_000,
  },
  chargeWorld({ recover: dedupes }, DEDUPING, {
    name: "kinds-phases-capture",
    about: "a charge was claimed by phases code and is now asked for at capture code, and the other way round",
    covers: [],
    budget: { ticks: 2, crashes: 1 },
    processes: { A: refunds({ name: CHARGES, call: "pay" }), B: charges({ recover: dedupes }) },
    actors: [client("Ann", { via: ["A", "B"] }), client("Bob", { via: ["B", "A"] })],
    invariants: [onceInside(), ...COMMON],
    declaredEnd: leftByOthers,
    progressWithinMs: 60_000,
  }),
  chargeWorld({ recover: dedupes }, DEDUPING, {
    name: "versions",
    about: "a release with other phases beside the one before: neither guesses at what the other left",
    covers: [],
    budget: { ticks: 2, crashes: 1 },
    processes: { A: charges({ recover: dedupes, version: 2, books: true }), B: charges({ recover: dedupes }) },
    actors: [client("Ann"), client("Bob", { via: ["B"], attempts: 1 })],
    declaredEnd: leftByOthers,
    progressWithinMs: 60_000,
  }),
  chargeWorld(
    { recover: settles },
    // The second form rests on it: nothing lands later than it declares.
    SETTLING,
    {
      name: "forms",
      about: "a release that settles its call in another way must not settle what was sent under the old one",
      covers: [],
      budget: { ticks: 2, crashes: 1, others: { "call late": 1 } },
      processes: { A: charges({ recover: cancels }), B: charges({ recover: settles, version: 2 }) },
      actors: [client("Ann", { via: ["A", "B"], attempts: 3 })],
      declaredEnd: leftByOthers,
      progressWithinMs: 60_000,
    },
  ),
  {
    name: "fingerprints",
    about: "an entry whose fingerprint is keyed by a secret that this process does not know is neither run nor refused",
    covers: [],
    budget: { crashes: 1, ticks: 1 },
    processes: {
      A: bookings({ once: { fingerprintSecrets: [{ id: 1, secret: "one" }] } }),
      B: bookings({}),
    },
    actors: [client("Ann"), client("Bob", { payload: "6", via: ["B"] })],
    invariants: [onceInside(), ...COMMON],
    declaredEnd: (_client, last) => (last?.text === "version_unknown" ? null : `told ${last?.text ?? "nothing"}`),
    progressWithinMs: 60_000,
  },
];
