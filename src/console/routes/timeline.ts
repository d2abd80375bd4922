import type { RecoverForm } from "../../core/intent.ts";
import type { RunEvent } from "../../engine/event.ts";
import type { InspectedEntry } from "../../stores/postgres/inspect.ts";
import type { AuditRecord } from "../../stores/postgres/operator/audit.ts";
import type { SentCall } from "../../stores/postgres/operator/calls.ts";
import type { RecordedSummary, ResolutionRecord } from "../../stores/postgres/recorded.ts";
import type { TrailItem } from "../trail.ts";
import { seenItem } from "./seen.ts";

/** One thing that happened to an entry. */
export interface TimelineItem {
  /** `null`: it is not known when; it stands where it belongs. */
  readonly at: Date | null;
  /** `process`: what this process saw, and will forget. */
  readonly from: "database" | "process";
  readonly kind: string;
  readonly title: string;
  readonly detail: string | null;
  readonly attempt: number | null;
  readonly weight: "plain" | "good" | "warn" | "bad";
  /** The two ends of an outside call's key. */
  readonly derivedKey?: string;
}

/** What a timeline is made of. */
export interface TimelineOf {
  readonly entry: InspectedEntry;
  readonly recorded: RecordedSummary;
  readonly calls: readonly SentCall[];
  readonly resolutions: readonly ResolutionRecord[];
  readonly notes: readonly Pick<AuditRecord, "at" | "by" | "action" | "note">[];
  readonly trail: readonly TrailItem[];
  /** The database's clock, as good as it is known. */
  readonly now: Date;
}

/** All that is known of an entry's life, oldest first. */
export function timelineOf(parts: TimelineOf): TimelineItem[] {
  const { entry, trail, now } = parts;
  const known = new Set(parts.calls.map(({ call, generation }) => `${call} ${generation}`));
  const seen = trail.filter(({ event }) => !isStored(event, entry, known)).map(seenItem);
  const timed = [
    ...parts.calls.map((one) => callItem(one, now)),
    ...parts.resolutions.map(resolutionItem),
    ...parts.notes.map(noteItem),
    ...endItems(entry, now),
    ...seen,
  ].sort((a, b) => (a.at?.getTime() ?? 0) - (b.at?.getTime() ?? 0));
  return [claimedItem(entry), ...withPhases(timed, phaseItems(parts)), ...stateItems(entry, trail)];
}

/** Whether the database tells it better. */
function isStored(event: RunEvent, entry: InspectedEntry, calls: ReadonlySet<string>): boolean {
  if (event.kind === "claimed") return event.attempt === 1;
  if (event.kind === "completed" || event.kind === "completed_late") return entry.completedAt !== null;
  if (event.kind === "call_started") return calls.has(`${event.call} ${event.generation}`);
  return false;
}

function item(at: Date | null, kind: string, title: string, more: Partial<TimelineItem> = {}): TimelineItem {
  return { at, from: "database", kind, title, detail: null, attempt: null, weight: "plain", ...more };
}

function claimedItem({ createdAt, operation, operationVersion, runKind }: InspectedEntry): TimelineItem {
  return item(createdAt, "claimed", "Claimed", {
    detail: `${operation}, version ${operationVersion} (${runKind})`,
    attempt: 1,
  });
}

const CALL_STATES: Readonly<Record<SentCall["state"], readonly [words: string, weight: TimelineItem["weight"]]>> = {
  open: ["what it did is not recorded", "warn"],
  settled: ["its result is recorded", "good"],
  cancelled: ["cancelled at the other side", "plain"],
};

/** What may be done where its answer is missing. */
const FORMS: Readonly<Record<RecoverForm, string>> = {
  dedupes: "may be sent again",
  cancel: "can be asked about and cancelled",
  settles: "can be asked about",
  never: "is sent once at most",
};

function callItem(
  { call, generation, state, form, derivedKey, startedAt, settlesAt }: SentCall,
  now: Date,
): TimelineItem {
  const [words, weight] = CALL_STATES[state];
  const how = form === null ? "" : `, ${FORMS[form]}`;
  return item(startedAt, "call", `Outside call ${call}`, {
    detail: `generation ${generation}${how}: ${words}${state === "open" ? landing(settlesAt, now) : ""}`,
    weight,
    ...(derivedKey === "" ? {} : { derivedKey }),
  });
}

function landing(settlesAt: Date | null, now: Date): string {
  if (settlesAt === null) return "";
  return settlesAt > now ? `; it may land until ${settlesAt.toISOString()}` : "; it can land no more";
}

/** Phases have no time of their own in the database; where this process saw them commit, that is told by itself. */
function phaseItems({ recorded, trail }: TimelineOf): TimelineItem[] {
  const seen = new Set(trail.flatMap(({ event }) => (event.kind === "phase_committed" ? [event.phase] : [])));
  return recorded.phases
    .filter(({ kind, name }) => kind === "call" || !seen.has(name))
    .map(({ kind, name }) =>
      kind === "phase"
        ? item(null, "phase", `Phase ${name} committed`, { weight: "good" })
        : item(null, "call_result", `Result of the outside call ${name} recorded`, { weight: "good" }),
    );
}

/** Each result behind its call, all else where it was recorded: behind what is already there. */
function withPhases(timed: readonly TimelineItem[], phases: readonly TimelineItem[]): TimelineItem[] {
  const items = [...timed];
  let at = 0;
  for (const phase of phases) {
    const call = items.findIndex(
      ({ kind, title }) =>
        kind.startsWith("call") && title !== phase.title && phase.title.endsWith(`${title.replace("O", "o")} recorded`),
    );
    at = Math.max(at, phase.kind === "call_result" ? call + 1 : at);
    items.splice(at, 0, phase);
    at += 1;
  }
  return items;
}

function resolutionItem({
  resolvedAt,
  by,
  note,
  verdict,
  status,
  forced,
  stateBefore,
}: ResolutionRecord): TimelineItem {
  const what = status === null ? verdict : `${verdict} with ${status}`;
  const insisted = forced ? ", although something sent could still land" : "";
  return item(resolvedAt, "resolved", `Decided by ${by}: ${what}`, {
    detail: `was ${stateBefore}${insisted}${note === null ? "" : `: ${note}`}`,
    weight: forced ? "warn" : "good",
  });
}

const NOTES: Readonly<Partial<Record<AuditRecord["action"], string>>> = {
  reveal_key: "looked at the key",
  reveal_derived_keys: "looked at the keys of outside calls",
  reveal_outcome: "looked at the stored outcome",
  retry: "asked the sweeper to take it up now",
  resend: "sent a message of it again",
  discard: "discarded a message of it",
};

function noteItem({ at, by, action, note }: Pick<AuditRecord, "at" | "by" | "action" | "note">): TimelineItem {
  return item(at, action, `${by} ${NOTES[action] ?? action}`, { detail: note });
}

function endItems({ state, status, completedAt, expiresAt, attempt }: InspectedEntry, now: Date): TimelineItem[] {
  const items: TimelineItem[] = [];
  if (completedAt !== null) {
    const weight = state === "failed" ? "warn" : "good";
    items.push(item(completedAt, "completed", `Completed: ${state}`, { detail: `status ${status}`, attempt, weight }));
  }
  if (expiresAt !== null) {
    const isOver = expiresAt.getTime() <= now.getTime();
    items.push(
      item(expiresAt, "expiry", isOver ? "Retention ended" : "Retention ends", { detail: "then the key is as new" }),
    );
  }
  return items;
}

/** What it is now, where that is no end. The instant is that which this process saw, or when its last lease ended. */
function stateItems(entry: InspectedEntry, trail: readonly TrailItem[]): TimelineItem[] {
  const { state, reason, attempt, recoveryPoint, leaseUntil } = entry;
  if (state === "needs_recovery") {
    const isSeen = trail.some(({ event }) => event.kind === "needs_recovery");
    const at = isSeen ? null : entry.notBefore;
    return [item(at, "needs_recovery", "Needs recovery", { detail: reason, attempt, weight: "bad" })];
  }
  if (state === "released") {
    const detail = recoveryPoint === null ? "the next retry runs it" : `the next retry goes on from ${recoveryPoint}`;
    return [item(null, "released", "Given back", { detail, attempt })];
  }
  if (state !== "in_progress") return [];
  const detail = leaseUntil === null ? null : `its lease ends at ${leaseUntil.toISOString()}`;
  return [item(null, "in_progress", "In progress", { detail, attempt })];
}
