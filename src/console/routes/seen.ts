import type { EventKind, RunEvent } from "../../engine/event.ts";
import type { TrailItem } from "../trail.ts";
import type { TimelineItem } from "./timeline.ts";

type Words = readonly [title: string, weight: TimelineItem["weight"]];

/** Events of a run in the words of a timeline; one that is missing is told by its kind. */
const WORDS: Readonly<Partial<Record<EventKind, Words>>> = {
  claimed: ["Claimed again", "plain"],
  resumed: ["Taken over", "warn"],
  waited: ["A duplicate waited", "plain"],
  completed: ["Completed", "good"],
  completed_late: ["Completed late, after its lease was lost", "warn"],
  replayed: ["Replayed", "plain"],
  mismatch: ["Refused: the key came with another payload", "warn"],
  busy: ["Refused: still running", "plain"],
  outcome_unknown: ["Answered that the outcome is unknown", "warn"],
  gone: ["Refused: the answer is no longer kept", "warn"],
  not_begun: ["The handler had not begun", "plain"],
  provisional: ["The handler answered 5xx: unknown", "bad"],
  lease_lost: ["Lost its lease", "bad"],
  commit_unknown: ["COMMIT was not answered", "bad"],
  contention: ["Lost to contention", "warn"],
  store_unavailable: ["The store could not be reached", "bad"],
  threw: ["The operation's code threw", "bad"],
  phase_committed: ["Phase committed", "good"],
  call_started: ["Outside call sent", "plain"],
  call_repeated: ["Outside call sent again", "warn"],
  call_answered: ["Outside call answered", "good"],
  call_failed: ["Outside call failed: what it did is not known", "bad"],
  call_found: ["Outside call found at the other side", "good"],
  needs_recovery: ["Marked: needs recovery", "bad"],
  reconciled: ["The handler's reconcile was asked", "plain"],
  swept: ["The sweeper was done with it", "plain"],
};

/** What this process saw, as an item of a timeline. */
export function seenItem({ atMs, event }: TrailItem): TimelineItem {
  const [title, weight] = WORDS[event.kind] ?? [event.kind, "plain"];
  return {
    at: new Date(atMs),
    from: "process",
    kind: event.kind,
    title: `${title}${nameOf(event)}`,
    detail: detailOf(event),
    attempt: "attempt" in event ? event.attempt : null,
    weight,
  };
}

function nameOf(event: RunEvent): string {
  if ("phase" in event) return `: ${event.phase}`;
  return "call" in event ? `: ${event.call}, generation ${event.generation}` : "";
}

function detailOf(event: RunEvent): string | null {
  const facts: string[] = [];
  if (event.by === "sweeper") facts.push("by the sweeper");
  if ("status" in event) facts.push(`status ${event.status}`);
  if ("reason" in event) facts.push(event.reason);
  if ("found" in event) facts.push(event.found);
  if ("as" in event) facts.push(event.as.replace("_", " "));
  if ("error" in event) facts.push(event.error);
  if ("from" in event) facts.push(`from ${event.from}`);
  if ("durationMs" in event) facts.push(`${Math.round(event.durationMs * 10) / 10} ms`);
  return facts.length === 0 ? null : facts.join(", ");
}
