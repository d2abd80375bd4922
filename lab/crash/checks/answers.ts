import type { Evidence } from "../evidence.ts";
import { identityOf } from "../history.ts";
import { meaningOf } from "../meaning.ts";
import type { Invariant } from "./invariant.ts";
import { type Answered, endedBy, finals, grouped, type Story, storiesOf } from "./view.ts";

/** What clients were told: nothing strange, and never two things. */
export function checkAnswers(evidence: Evidence): Invariant[] {
  const answered = evidence.exchanges.filter((one): one is Answered => one.answer !== null);
  const stories = storiesOf(evidence);
  return [
    {
      name: "every answer is one of the contract's",
      looked: answered.length,
      wrong: answered.filter(({ answer }) => meaningOf(answer) === "strange"),
    },
    equalAnswers(stories),
    justMismatches(stories),
    verdicts(evidence),
  ];
}

/** Status, bytes and the headers that are replayed, of everything final that was answered to the owner of the key. */
function equalAnswers(stories: readonly Story[]): Invariant {
  const repeated = stories
    .map(({ identity, exchanges }) => ({ identity, ended: endedBy(exchanges, "done", "refused") }))
    .filter(({ ended }) => ended.length > 1);
  const said = ({ answer: { status, body, location, contentType } }: Answered) =>
    JSON.stringify([status, body, location, contentType]);
  const wrong = repeated
    .map(({ identity, ended }) => ({ identity, answers: [...new Set(ended.map(said))] }))
    .filter(({ answers }) => answers.length > 1);
  return { name: "all final answers to one key are equal, byte for byte", looked: repeated.length, wrong };
}

/** Only somebody who came with another payload than the key's owner is told so. */
function justMismatches(stories: readonly Story[]): Invariant {
  const told = stories.flatMap(({ exchanges }) => endedBy(exchanges, "mismatch").map((one) => ({ one, exchanges })));
  const wrong = told.filter(({ one, exchanges }) => {
    const others = exchanges.filter(({ payload, sentAt }) => payload !== one.payload && sentAt <= one.sentAt);
    const own = endedBy(exchanges, "done", "refused").some(({ payload }) => payload === one.payload);
    // A rival may be written down a moment after it was sent beside this one.
    return own || (others.length === 0 && !exchanges.some(({ role }) => role === "rival"));
  });
  return {
    name: "a mismatch is told only where another payload has the key",
    looked: told.length,
    wrong: wrong.map(({ one: { key, payload } }) => ({ key, payload })),
  };
}

/** The library's client may leave its user in doubt; it never says what is not so. */
function verdicts({ verdicts: told, exchanges, effects }: Evidence): Invariant {
  const ended = grouped(finals(exchanges), identityOf);
  const made = new Set(effects.filter(({ status }) => status !== "declined").map(identityOf));
  const wrong = told.filter((verdict) => {
    const identity = identityOf(verdict);
    if (verdict.verdict === "succeeded") return endedBy(ended.get(identity) ?? [], "done").length === 0;
    return verdict.verdict === "refused" && made.has(identity);
  });
  return { name: "what the client tells its user is so", looked: told.length, wrong };
}
