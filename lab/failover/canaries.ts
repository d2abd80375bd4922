import type { Check } from "../support/check.ts";
import type { Action } from "./actions.ts";
import { checkNothingLost } from "./checks.ts";
import type { Evidence } from "./evidence.ts";

/** A violation that is planted into what was found, and the words of the check that must see it. */
interface Planted {
  readonly what: string;
  readonly foundBy: string;
  plant(evidence: Evidence): Partial<Evidence>;
}

const PLANTED: readonly Planted[] = [
  { what: "a lost row", foundBy: "is lost", plant: ({ rows }) => ({ rows: rows.slice(1) }) },
  { what: "a lost entry", foundBy: "is lost", plant: ({ entries }) => ({ entries: entries.slice(1) }) },
  {
    what: "a second row of a key",
    foundBy: "at most one row",
    plant: ({ rows }) => ({ rows: [...rows, ...rows.slice(0, 1)] }),
  },
  {
    what: "a key that stays busy",
    foundBy: "busy or undecided",
    plant: ({ entries: [first, ...others] }) => ({
      entries: first === undefined ? [] : [{ ...first, state: "in_progress" }, ...others],
    }),
  },
  {
    what: "a client without an answer",
    foundBy: "every client",
    plant: (evidence) => firstChanged(evidence, () => ({ finals: [] })),
  },
  {
    what: "another answer to the same key",
    foundBy: "same status and bytes",
    plant: (evidence) =>
      firstChanged(evidence, ({ finals }) => ({
        finals: [...finals, ...finals.map((one) => ({ ...one, body: `${one.body} ` }))],
      })),
  },
  {
    what: "a refusal that is no business of ours",
    foundBy: "refusal of the business",
    plant: (evidence) =>
      firstChanged(evidence, ({ finals }) => ({ finals: finals.map((one) => ({ ...one, status: 404 })) })),
  },
  {
    what: "a second effect",
    foundBy: "second effect",
    plant: ({ payments }) => ({ payments: [...payments, ...payments.slice(0, 1)] }),
  },
  {
    what: "an effect that was never made",
    foundBy: "has its effect",
    plant: ({ payments }) => ({ payments: payments.slice(1) }),
  },
  { what: "a message that was not delivered", foundBy: "every message", plant: () => ({ delivered: [] }) },
  {
    what: "a message of nothing",
    foundBy: "of what is not there",
    plant: ({ delivered }) => ({
      delivered: [...delivered, { id: "x", topic: "invoice.created", payload: '{"id":"x"}' }],
    }),
  },
];

function firstChanged(
  { actions: [first, ...others] }: Evidence,
  change: (action: Action) => Partial<Action>,
): Partial<Evidence> {
  return { actions: first === undefined ? [] : [{ ...first, ...change(first) }, ...others] };
}

/** Plants each violation into a copy of the evidence: a check that does not see its own shows nothing. */
export function checkCanaries(evidence: Evidence): Check {
  const missed = PLANTED.filter(({ foundBy, plant }) => {
    const checks = checkNothingLost({ ...evidence, ...plant(evidence) });
    return checks.find(({ name }) => name.includes(foundBy))?.passed !== false;
  });
  return {
    name: `planted violations are found (${PLANTED.length})`,
    passed: missed.length === 0,
    found: missed.map(({ what }) => what).join(", "),
  };
}
