import type { EffectRow, EntryRow, Evidence } from "../evidence.ts";
import type { Invariant } from "./invariant.ts";

/** What is in the store: everything comes to an end, or says why not; and nothing is forgotten before. */
export function checkEntries({ entries, deleted, effects }: Evidence): Invariant[] {
  const unfinished = deleted.filter(({ state }) => state !== "succeeded" && state !== "failed");
  const finished = deleted.filter(({ state }) => state === "succeeded" || state === "failed");
  // Whoever has ended was purged in the meantime: it is one of those that did not stay.
  const all = entries.length + deleted.length;
  return [
    {
      name: "no entry stays in progress, and none is given back that a sweeper could go on with",
      looked: all,
      wrong: entries.filter((one) => one.state === "in_progress" || (one.state === "released" && !isCapture(one))),
    },
    {
      name: "a captured run that was given back to its client has done nothing",
      looked: all,
      wrong: entries.filter((one) => one.state === "released" && isCapture(one) && isDone(one, effects)),
    },
    {
      name: "what needs recovery says why, and a sweeper or a person is asked",
      looked: all,
      wrong: entries.filter(({ state, reason }) => state === "needs_recovery" && (reason === null || reason === "")),
    },
    {
      name: "nothing waits for a person: no alarm, no step that does not fit, nothing unreadable",
      looked: all,
      wrong: entries.filter(({ state, swept }) => state === "needs_recovery" && !swept),
    },
    {
      name: "nothing unresolved was purged",
      // A claim that was given back with nothing recorded is deleted: it never happened.
      looked: deleted.length,
      wrong: unfinished.filter(({ state, recorded }) => recorded || state !== "in_progress"),
    },
    {
      name: "no outcome was purged before its retention was over",
      looked: finished.length,
      wrong: finished.filter(({ expired }) => !expired),
    },
  ];
}

const isCapture = ({ runKind }: EntryRow): boolean => runKind === "capture";

function isDone({ tenant, client, operation, key }: EntryRow, effects: readonly EffectRow[]): boolean {
  return effects.some((one) => {
    const sameCaller = one.tenant === tenant && one.client === client;
    return sameCaller && `${one.what}s.create` === operation && one.key === key;
  });
}
