import { AssertionError } from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { Sent } from "./duplicates.ts";
import type { Seen } from "./seen-answer.ts";

/** How the sends of one key were made; decides what a fault most likely means. */
export type Scenario = "lost_answer" | "concurrent" | "hang_up" | "crash";

/** What was seen under one key. */
export interface Observed {
  readonly scenario: Scenario;
  /** What is tested, for the message's first line. */
  readonly subject: string;
  /** What was sent before that, and whose answer nobody read. */
  readonly unanswered?: Unanswered | undefined;
  readonly sent: readonly Sent[];
  /** How many effects there are now and should be; left out where nobody counts them. */
  readonly effects?: { readonly seen: number; readonly expected: number };
}

/** A request without an answer: its process died, or its client had gone. */
export interface Unanswered {
  /** When it was sent, as a report says it. */
  readonly how: string;
  /** What its run raised, where that is a fault. */
  readonly failure: Seen | null;
}

interface Fault {
  readonly what: string;
  readonly means: string;
  readonly fix: string;
  readonly actual: unknown;
  readonly expected: unknown;
}

const SCENARIOS: Readonly<Record<Scenario, string>> = {
  lost_answer: "the answer was lost, the client tried again",
  concurrent: "duplicates at one moment",
  hang_up: "the client hung up before the answer and tried again",
  crash: "the process died, another one got the retry",
};

/** Why an action has more than one effect, and what helps, by how it was sent. */
const RAN_AGAIN: Readonly<Record<Scenario, Pick<Fault, "means" | "fix">>> = {
  lost_answer: {
    means: "A retry was run as if it were new: the handler did not find the key of the first request.",
    fix: "Store the key in the transaction of the effect, and answer a known key from what was stored.",
  },
  concurrent: {
    means: "Two requests both looked for the key before either had stored it, and both ran.",
    fix: "Let the database decide: claim the key by an INSERT into a unique index before the effect, not by a look-up.",
  },
  hang_up: {
    means: "The first run went on, or was undone by half, after its client had gone; the retry ran a second time.",
    fix: "Do not tie the work to the connection: finish it and store its answer, or roll all of it back.",
  },
  crash: {
    means: "The effect was there when the process died, but nothing that told the next process so.",
    fix: "Commit the effect and its record in one transaction, or record the intent before an outside call and ask with `find` after a crash.",
  },
};

/** Raises an `AssertionError` that says what was seen, what it means and how to mend it, unless all is as it must be. */
export function assertOnce(observed: Observed, operator: string): void {
  const fault = faultOf(observed);
  if (fault === null) return;
  const { what, means, fix, actual, expected } = fault;
  const message = [
    `${observed.subject}: ${what} (${SCENARIOS[observed.scenario]}).`,
    "",
    "Seen under one key:",
    ...seenLines(observed),
    "",
    `What it means: ${means}`,
    `How to mend it: ${fix}`,
  ].join("\n");
  throw new AssertionError({ message, actual, expected, operator });
}

function faultOf({ scenario, unanswered, sent, effects }: Observed): Fault | null {
  if (effects !== undefined && effects.seen > effects.expected) {
    const what = `${counted(effects.seen)} instead of ${effects.expected}`;
    return { what, ...RAN_AGAIN[scenario], actual: effects.seen, expected: effects.expected };
  }
  return (
    failedFault(sent) ??
    hangUpFault(unanswered) ??
    stuckFault(sent) ??
    differenceFault(sent) ??
    missingFault(effects, sent)
  );
}

function failedFault(sent: readonly Sent[]): Fault | null {
  const failed = sent.find(({ seen }) => seen.standing === "failed")?.seen;
  if (failed === undefined) return null;
  const answered = sent.find(({ seen }) => seen.standing === "final")?.seen;
  const told = answered === undefined ? failedFirst(failed) : failedLater(failed);
  return { ...told, actual: failed.part, expected: answered?.part };
}

const WHERE_FAULTS = "Where faults are planted, say `faults: true`.";

const failedFirst = ({ text }: Seen): Pick<Fault, "what" | "means" | "fix"> => ({
  what: `no request succeeded: ${text}`,
  means: "The request fails by itself, or leaves its key in a state that every retry fails on.",
  fix: `Send the request once without this test. If that fails too, it fails by itself, or its server does not run. If only retries of a first failure fail, free the key when a run fails. ${WHERE_FAULTS}`,
});

const failedLater = ({ text }: Seen): Pick<Fault, "what" | "means" | "fix"> => ({
  what: `a duplicate failed: ${text}`,
  means: "A duplicate met the first request's claim or row as an error. Its client takes the action for failed.",
  fix: `Answer a duplicate with the stored answer, and with 409 and Retry-After while the first one runs. ${WHERE_FAULTS}`,
});

function hangUpFault(unanswered: Unanswered | undefined): Fault | null {
  const failure = unanswered?.failure ?? null;
  if (failure === null) return null;
  return {
    what: `the run whose client had gone failed: ${failure.text}`,
    means: "The listener raised an error that nobody catches. A process dies of it, with all its other requests.",
    fix: `Catch what a listener's work raises, also when its connection is closed. ${WHERE_FAULTS}`,
    actual: failure.part,
    expected: undefined,
  };
}

function stuckFault(sent: readonly Sent[]): Fault | null {
  const stuck = sent.find(({ seen }) => seen.standing === "passing");
  if (stuck === undefined) return null;
  return {
    what: `a request was told to come back ${stuck.earlier.length + 1} times: ${stuck.seen.text}`,
    means: "The key is held by a run that has ended or died: nobody frees it.",
    fix: "Let a claim lapse (a lease), and free it on every way out. Where leases run on a fake clock, hand it over as `time`.",
    actual: stuck.seen.part,
    expected: sent.find(({ seen }) => seen.standing === "final")?.seen.part,
  };
}

function differenceFault(sent: readonly Sent[]): Fault | null {
  const [first, ...others] = sent.map(({ seen }) => seen);
  const other = others.find(({ part }) => first !== undefined && !isDeepStrictEqual(part, first.part));
  if (first === undefined || other === undefined) return null;
  return {
    what: "two answers to one key",
    ...differenceBetween(first, other),
    actual: other.part,
    expected: first.part,
  };
}

function differenceBetween(first: Seen, other: Seen): Pick<Fault, "means" | "fix"> {
  const [one, two] = [first.part, other.part] as { readonly status?: unknown; readonly body?: unknown }[];
  if (one?.status !== two?.status) {
    return {
      means: "A duplicate was refused, or told something else, instead of being given the first answer.",
      fix: "Replay the stored status. A 409 that only means “still running” needs a Retry-After, so that clients come back.",
    };
  }
  if (!isDeepStrictEqual(one?.body, two?.body)) {
    return {
      means: "The answer was made anew for the duplicate: a clock, a random id, or rows that have changed since.",
      fix: "Store the bytes of the first answer with the effect, and send these.",
    };
  }
  return {
    means: "A header that clients read is missing or different in the replay.",
    fix: "Store the headers that belong to the answer (Location, ETag, Content-Type …) with its bytes.",
  };
}

function missingFault(effects: Observed["effects"], sent: readonly Sent[]): Fault | null {
  if (effects === undefined || effects.seen === effects.expected) return null;
  const { status = 0 } = (sent[0]?.seen.part ?? {}) as { readonly status?: number };
  const isRefused = status >= 400;
  return {
    what: `${counted(effects.seen)} instead of ${effects.expected}, though the answer was final`,
    means: isRefused
      ? "The request was refused, so that nothing of interest was tested."
      : "The client was told that it is done, and it is not; or `effects` looks in the wrong place.",
    fix: isRefused
      ? "Correct the request's headers and body; or say `expected: 0`, where the refusal is what you test."
      : "Answer after the commit, never before; and check that `effects` counts what this request does.",
    actual: effects.seen,
    expected: effects.expected,
  };
}

const counted = (count: number): string => `${count} ${Math.abs(count) === 1 ? "effect" : "effects"}`;

/** `2 × sent at one moment: 201 {…}`, in the order in which they were first seen. */
function seenLines({ unanswered, sent }: Observed): string[] {
  const counts = new Map<string, number>();
  for (const { how, seen, earlier } of sent) {
    const before = [...new Set(earlier.map(({ text }) => text))].map((text) => `${text}, then `).join("");
    const line = `${how}: ${before}${seen.text}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  const first = unanswered === undefined ? [] : [`  1 × ${unanswered.how}: ${unanswered.failure?.text ?? "no answer"}`];
  return [...first, ...[...counts].map(([line, count]) => `  ${count} × ${line}`)];
}
