import type { Evidence } from "../evidence.ts";
import type { Invariant } from "./invariant.ts";
import { endedBy, storiesOf } from "./view.ts";

/** The share of keys that may come too late before the campaign shows too little. */
const MOST_LATE = 0.1;

/** Whether the campaign shows anything: every fault was done and met something, and the fleet has met all that it should. */
export function checkFaults(evidence: Evidence): Invariant[] {
  const { faults, broken, fallen, exchanges, effects, entries, deleted, late } = evidence;
  const possible = faults.filter(({ missing }) => missing === null);
  const stories = storiesOf(evidence);
  const seen: Readonly<Record<string, number>> = {
    "invoices were answered": stories.filter(isAnswered("invoice")).length,
    "charges were answered": stories.filter(isAnswered("charge")).length,
    "refunds were answered": stories.filter(isAnswered("refund")).length,
    "answers were lost": exchanges.filter(({ answer }) => answer === null).length,
    "outcomes were replayed": exchanges.filter(({ answer }) => answer?.replayed === true).length,
    "payloads were refused": endedBy(exchanges, "mismatch").length,
    "refusals were answered": endedBy(exchanges, "refused").length,
    "retries were told to come back": endedBy(exchanges, "come_back").length,
    "effects were made": effects.length,
    "entries were taken up again": [...entries, ...deleted].filter(({ attempt }) => attempt > 1).length,
    "entries were purged": deleted.length,
  };
  return [
    {
      name: "few keys came back after their retention: those are new requests, and are left out",
      looked: stories.length,
      wrong: late.length > stories.length * MOST_LATE ? late : [],
    },
    {
      name: "every kind of fault was done",
      looked: possible.length,
      wrong: possible.filter(({ runs }) => runs === 0).map(({ name }) => name),
    },
    {
      name: "every kind of fault met traffic (else it shows nothing)",
      looked: possible.length,
      wrong: possible.filter(({ metRuns }) => metRuns === 0).map(({ name }) => name),
    },
    { name: "no fault broke by itself", looked: faults.length, wrong: broken },
    {
      name: "no process ended by itself, and each that was asked to ended in order",
      looked: faults.length,
      wrong: fallen,
    },
    {
      name: "the fleet has met all that it should (else it shows nothing)",
      looked: Object.keys(seen).length,
      wrong: Object.keys(seen).filter((what) => seen[what] === 0),
    },
  ];
}

const isAnswered = (wanted: string) => (story: ReturnType<typeof storiesOf>[number]) =>
  story.what === wanted && endedBy(story.exchanges, "done").length > 0;
