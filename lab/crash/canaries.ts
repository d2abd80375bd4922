import type { Check } from "../support/check.ts";
import { invariantsOf } from "./checks/index.ts";
import { endedBy } from "./checks/view.ts";
import { withinRetention } from "./checks/within-retention.ts";
import type { EntryRow, Evidence } from "./evidence.ts";
import type { Exchange } from "./history.ts";

/** A violation that is planted into a copy of the evidence, and words of the invariant that must find it. */
interface Planted {
  readonly what: string;
  readonly foundBy: string;
  plant(evidence: Evidence): Partial<Evidence>;
}

/** The first of a list that is like that. Raises where there is none: then the campaign was too short to show anything. */
function first<T>(all: readonly T[], isLike: (one: T) => boolean): T {
  const found = all.find(isLike);
  if (found === undefined) throw new Error("The campaign has nothing that this violation could be planted into.");
  return found;
}

const twice = <T>(all: readonly T[], isLike: (one: T) => boolean): T[] => [...all, first(all, isLike)];
const changed = <T extends object>(all: readonly T[], isLike: (one: T) => boolean, change: Partial<T>): T[] => {
  const one = first(all, isLike);
  return all.map((other) => (other === one ? { ...one, ...change } : other));
};
const isDone = (one: Exchange) => endedBy([one], "done").length > 0;
/** An exchange that was answered, with something else in its answer. */
const answered = (one: Exchange, change: Partial<NonNullable<Exchange["answer"]>>): Exchange => ({
  ...one,
  n: `${one.n} again`,
  answer: one.answer && { ...one.answer, ...change },
});

const ANSWERS: readonly Planted[] = [
  {
    what: "a second answer that differs in one byte",
    foundBy: "equal, byte for byte",
    plant({ exchanges }) {
      const one = first(exchanges, isDone);
      return { exchanges: [...exchanges, answered(one, { body: `${one.answer?.body} ` })] };
    },
  },
  {
    what: "an answer without its effect",
    foundBy: "every answered success",
    plant: ({ exchanges, effects }) => {
      const { body = "{}" } = first(exchanges, isDone).answer ?? {};
      return { effects: effects.filter(({ id }) => id !== JSON.parse(body).id) };
    },
  },
  {
    what: "a refusal of what was done",
    foundBy: "nothing that was refused",
    plant({ exchanges }) {
      const one = first(exchanges, (exchange) => exchange.what === "refund" && isDone(exchange));
      return { exchanges: [...exchanges, answered(one, { status: 422, body: '{"code":"refund_exceeds_charge"}' })] };
    },
  },
  {
    what: "a mismatch told to the owner of the key",
    foundBy: "a mismatch is told only",
    plant({ exchanges }) {
      const body = '{"code":"idempotency_payload_mismatch"}';
      return { exchanges: [...exchanges, answered(first(exchanges, isDone), { status: 422, body })] };
    },
  },
  {
    what: "an answer outside of the contract",
    foundBy: "one of the contract's",
    plant: ({ exchanges }) => ({ exchanges: [...exchanges, answered(first(exchanges, isDone), { status: 418 })] }),
  },
  {
    what: "a client that says surely refused of what was done",
    foundBy: "what the client tells its user",
    plant: ({ verdicts }) => ({
      verdicts: changed(verdicts, ({ verdict }) => verdict === "succeeded", { verdict: "refused" }),
    }),
  },
];

const EFFECTS: readonly Planted[] = [
  ...(["invoice", "charge", "refund"] as const).map((what) => ({
    what: `a second ${what} under one key`,
    foundBy: `at most one ${what}`,
    plant: ({ effects }: Evidence) => ({ effects: twice(effects, (one) => one.what === what) }),
  })),
  ...(["authorizations", "captures"] as const).map((kind) => ({
    what: `a second payment among the ${kind}`,
    foundBy: `the provider's ${kind}`,
    plant: ({ payments }: Evidence) => ({ payments: twice(payments, (one) => one.kind === kind) }),
  })),
  {
    what: "a payment that belongs to nobody",
    foundBy: "every payment at the provider",
    plant: ({ payments }) => ({ payments: changed(payments, () => true, { amount: "1" }) }),
  },
  {
    what: "a charge that names somebody else's capture",
    foundBy: "the provider's own payments",
    plant: ({ effects }) => ({
      effects: changed(effects, ({ capture }) => capture !== null, { capture: "cap_other" }),
    }),
  },
  {
    what: "a charge between its phases",
    foundBy: "stays between its phases",
    plant: ({ effects }) => ({ effects: changed(effects, ({ what }) => what === "charge", { status: "pending" }) }),
  },
  {
    what: "a changed payload that ran too",
    foundBy: "one ran at most",
    plant({ exchanges }) {
      // Where the first request never arrived, the changed one is the owner.
      const ownerOf = ({ key, payload }: Exchange) =>
        exchanges.find((one) => one.key === key && one.payload !== payload && isDone(one));
      const stranger = first(exchanges, (one) => one.role === "changed" && ownerOf(one) !== undefined);
      const owner = first(exchanges, (one) => one === ownerOf(stranger));
      return { exchanges: [...exchanges, { ...answered(owner, {}), payload: stranger.payload }] };
    },
  },
  {
    what: "a changed payload in a row",
    foundBy: "did not own its key",
    plant({ exchanges, effects }) {
      const isStranger = (one: Exchange) => one.role === "changed" && one.what !== "refund" && owns(exchanges, one.key);
      const stranger = first(exchanges, isStranger);
      const amount = String(JSON.parse(stranger.payload).amount_minor);
      return { effects: changed(effects, (one) => one.key === stranger.key, { amount }) };
    },
  },
];

const owns = (exchanges: readonly Exchange[], key: string) => exchanges.some((one) => one.key === key && isDone(one));

/** Entries that have ended may all be purged by now. */
const ENTRY: EntryRow = {
  ...{ id: "00", tenant: "acme", client: "app", operation: "charges.create", runKind: "phases", key: "planted" },
  ...{ state: "succeeded", reason: null, attempt: 1, swept: true },
};

const STORE: readonly Planted[] = [
  {
    what: "an entry in progress for ever",
    foundBy: "stays in progress",
    plant: ({ entries }) => ({ entries: [...entries, { ...ENTRY, ...{ state: "in_progress" } }] }),
  },
  {
    what: "a refund that was made, and given back as if it were not",
    foundBy: "has done nothing",
    plant({ entries, effects }) {
      const { tenant, client, key } = first(effects, ({ what }) => what === "refund");
      const entry = {
        ...ENTRY,
        tenant,
        client,
        key,
        operation: "refunds.create",
        runKind: "capture",
        state: "released",
      };
      return { entries: [...entries, entry] };
    },
  },
  {
    what: "a recovery without a reason",
    foundBy: "says why",
    plant: ({ entries }) => ({ entries: [...entries, { ...ENTRY, ...{ state: "needs_recovery", reason: null } }] }),
  },
  {
    what: "an entry that waits for a person",
    foundBy: "waits for a person",
    plant: ({ entries }) => ({
      entries: [...entries, { ...ENTRY, ...{ state: "needs_recovery", reason: "call_found_twice", swept: false } }],
    }),
  },
  {
    what: "an unresolved entry that was purged",
    foundBy: "nothing unresolved",
    plant: ({ deleted }) => ({ deleted: changed(deleted, () => true, { state: "needs_recovery", recorded: true }) }),
  },
  {
    what: "an outcome that was purged too early",
    foundBy: "before its retention",
    plant: ({ deleted }) => ({
      deleted: changed(deleted, ({ state }) => state === "succeeded", { expired: false }),
    }),
  },
];

const REST: readonly Planted[] = [
  {
    what: "a message that was lost",
    foundBy: "every message of a committed",
    plant: ({ deliveries }) => ({ deliveries: deliveries.filter(({ about }) => about !== deliveries[0]?.about) }),
  },
  {
    what: "a message of what was rolled back",
    foundBy: "of what was rolled back",
    plant: ({ deliveries }) => ({ deliveries: changed(deliveries, () => true, { about: "inv_none" }) }),
  },
  {
    what: "a message under a second id",
    foundBy: "under one id",
    plant: ({ deliveries }) => ({ deliveries: [...deliveries, { ...first(deliveries, () => true), id: "another" }] }),
  },
  {
    what: "a dead message",
    foundBy: "none is dead",
    plant: ({ messages }) => ({ messages: changed(messages, () => true, { state: "dead" }) }),
  },
  {
    what: "a key in a log",
    foundBy: "is in any log",
    plant: ({ logs, exchanges }) => ({ logs: { ...logs, planted: `served ${exchanges[0]?.key}` } }),
  },
  {
    what: "a token in a log",
    foundBy: "is in any log",
    plant: ({ logs, secrets }) => ({ logs: { ...logs, planted: `Bearer ${secrets[0]}` } }),
  },
  {
    what: "a campaign whose keys mostly came too late",
    foundBy: "after their retention",
    plant: ({ exchanges }) => ({ late: exchanges.filter((_, index) => index % 2 === 0) }),
  },
  {
    what: "a fault that met nothing",
    foundBy: "met traffic",
    plant: ({ faults }) => ({ faults: changed(faults, ({ missing }) => missing === null, { metRuns: 0 }) }),
  },
  {
    what: "a fault that was never done",
    foundBy: "every kind of fault was done",
    plant: ({ faults }) => ({ faults: changed(faults, ({ missing }) => missing === null, { runs: 0 }) }),
  },
  {
    what: "a process that ended by itself",
    foundBy: "ended by itself",
    plant: ({ fallen }) => ({ fallen: [...fallen, "api-1 ended by itself: 1"] }),
  },
];

/** Every violation that the checks are tried with. */
export const CANARIES: readonly Planted[] = [...ANSWERS, ...EFFECTS, ...STORE, ...REST];

/** Plants each into a copy and looks whether its invariant finds it: a check that finds nothing shows nothing. */
export function checkCanaries(collected: Evidence): Check {
  // What is left out is looked at by no check: a violation planted there would be found by none.
  const evidence = { ...withinRetention(collected), late: [] };
  const missed = CANARIES.filter((canary) => !isFound(evidence, canary)).map(({ what }) => what);
  const name = "planted violations are found";
  return {
    name,
    passed: missed.length === 0,
    found: `${CANARIES.length - missed.length} of ${CANARIES.length}${missed.map((what) => `; missed: ${what}`).join("")}`,
  };
}

function isFound(evidence: Evidence, { plant, foundBy }: Planted): boolean {
  try {
    const planted = invariantsOf({ ...evidence, ...plant(evidence) }).find(({ name }) => name.includes(foundBy));
    const before = invariantsOf(evidence).find(({ name }) => name === planted?.name);
    return planted !== undefined && planted.wrong.length > (before?.wrong.length ?? 0);
  } catch {
    return false;
  }
}
