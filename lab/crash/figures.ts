import { grouped, storiesOf } from "./checks/view.ts";
import type { Evidence } from "./evidence.ts";
import { isFinal } from "./meaning.ts";

/** What the campaign tried, in the order of reading. */
export function figuresOf(evidence: Evidence): (readonly [label: string, figure: string | number])[] {
  const { exchanges, faults, entries, effects, deleted, late, deliveries, payments } = evidence;
  const answers = exchanges.filter(({ answer }) => answer !== null);
  const replays = answers.filter(({ answer }) => answer?.replayed === true);
  const finals = answers.filter(({ answer }) => answer !== null && isFinal(answer));
  const done = faults.filter(({ runs }) => runs > 0);
  const missing = faults.filter((one) => one.missing !== null);
  return [
    ["kinds of faults done", `${done.length} of ${faults.length}`],
    ["kinds not possible here", missing.map(({ name, missing: why }) => `${name} (${why})`).join("; ") || "none"],
    ["faults", faults.reduce((sum, { runs }) => sum + runs, 0)],
    ["of them met traffic", faults.reduce((sum, { metRuns }) => sum + metRuns, 0)],
    ["keys", storiesOf(evidence).length],
    ["of them sent again after their retention (left out)", late.length],
    ["requests sent", exchanges.length],
    ["of them without an answer", exchanges.length - answers.length],
    ["final answers", finals.length],
    ["replays", replays.length],
    ["effects", countsOf(effects, ({ what, status }) => `${what} ${status}`)],
    ["payments at the provider", countsOf(payments, ({ kind, status }) => `${kind} ${status}`)],
    ["deliveries", deliveries.length],
    ["of them again", deliveries.length - new Set(deliveries.map(({ id }) => id)).size],
    ["entries left", countsOf(entries, ({ state }) => state)],
    ["still in recovery, by reason", countsOf(inRecovery(evidence), ({ reason }) => reason ?? "none given")],
    ["entries deleted", countsOf(deleted, ({ state }) => state)],
    ["entries taken up again", [...entries, ...deleted].filter(({ attempt }) => attempt > 1).length],
    ["each fault (met / done)", faults.map(({ name, metRuns, runs }) => `${name} ${metRuns}/${runs}`).join(", ")],
  ];
}

const inRecovery = ({ entries }: Evidence) => entries.filter(({ state }) => state === "needs_recovery");

function countsOf<T>(all: readonly T[], nameOf: (one: T) => string): string {
  const counts = [...grouped(all, nameOf)].map(([name, group]) => `${name} ${group.length}`).sort();
  return counts.join(", ") || "none";
}
