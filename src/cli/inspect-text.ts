import type { ListedMessage, RecordedSummary, ResolutionRecord } from "../stores/postgres/index.ts";
import type { OutcomeSummary, StoredForm } from "../stores/postgres/operator/outcome-summary.ts";
import { alarming, aligned, bytes, counted, duration, visible } from "./layout.ts";
import { stateText } from "./outbox-text.ts";
import { settling } from "./resolve-text.ts";
import type { Shown, ShownEntry } from "./shown-entry.ts";

/** The entries for people, oldest first, one block each; `truncated`: there may be more. */
export function entriesText(entries: readonly ShownEntry[], truncated: boolean): string {
  if (entries.length === 0) {
    return "No entry has this key. Check tenant and operation; it never arrived, was rolled back, or is purged.\n";
  }
  const fact = truncated
    ? "These are the oldest entries of this key; there may be more."
    : `${counted(entries.length, "entry has", "entries have")} this key, oldest first.`;
  const several = `${fact} --tenant and --operation narrow it.`;
  const blocks = entries.map(entryText);
  return (entries.length === 1 ? blocks : [`${several}\n`, ...blocks]).join("\n");
}

function entryText(entry: ShownEntry): string {
  const rows: readonly (readonly [string, string | null])[] = [
    ["id", entry.id],
    ["tenant", visible(entry.tenant)],
    ["client", entry.client === null ? "(none)" : visible(entry.client) || '""'],
    ["operation", `${visible(entry.operation)}, version ${entry.operationVersion}`],
    ["run kind", entry.runKind],
    ["state", entry.state === "needs_recovery" ? alarming(entry.state) : entry.state],
    ["reason", entry.reason === null ? null : visible(entry.reason)],
    ["attempt", String(entry.attempt)],
    ["recovery point", entry.recoveryPoint === null ? null : visible(entry.recoveryPoint)],
    ["created", instant(entry.createdAt)],
    ["lease until", instant(entry.leaseUntil)],
    ["not before", instant(entry.notBefore)],
    ["completed", instant(entry.completedAt)],
    ["expires", instant(entry.expiresAt)],
    ["tombstone until", instant(entry.tombstoneUntil)],
    ["sweeper asks at", instant(entry.sweepAt)],
    ["settled at", instant(entry.settlesAt)],
    ["correlation", entry.correlation === null ? null : visible(entry.correlation)],
    ["status", entry.status === null ? null : String(entry.status)],
    ...outcomeRows(entry.outcome),
    ...recordedRows(entry.recorded),
    ["messages", linesOf(entry.messages, messageText)],
    ["resolved", linesOf(entry.resolutions, resolutionText)],
  ];
  return aligned(rows.filter((row): row is readonly [string, string] => row[1] !== null));
}

function instant(date: Date | null): string | null {
  return date?.toISOString() ?? null;
}

function outcomeRows(outcome: Shown<OutcomeSummary>): [string, string | null][] {
  if (outcome.kind === "none") return [];
  if (outcome.kind === "hidden") return [["outcome", `not shown: ${outcome.why}`]];
  if (outcome.kind === "gone") return [["outcome", "no longer kept"]];
  if (outcome.kind === "sealed") {
    const what = outcome.provisional ? "provisional, not shown" : "not shown";
    return [["outcome", `${what}: ${outcome.why}`], ...storedRows(outcome, false)];
  }
  const { kind, bodyBytes, bodySha256, headerNames, compressed } = outcome;
  return [
    ["outcome", `${kind}, body of ${bytes(bodyBytes)}, SHA-256 ${bodySha256}`],
    ["headers", headerNames.length === 0 ? null : visible(headerNames.join(", "))],
    ...storedRows(outcome, compressed),
  ];
}

/** How it is stored; nothing where it is stored as it is. */
function storedRows({ keyId, storedBytes, pointer }: StoredForm, compressed: boolean): [string, string | null][] {
  const forms = [...(keyId === null ? [] : [`sealed under key ${keyId}`]), ...(compressed ? ["compressed"] : [])];
  return [
    ["stored", forms.length === 0 ? null : `${forms.join(", ")}, ${bytes(storedBytes)}`],
    ["body lies at", pointer === null ? null : visible(pointer)],
  ];
}

function recordedRows(recorded: Shown<RecordedSummary>): [string, string | null][] {
  if ("kind" in recorded) return [["recorded", `not shown: ${recorded.why}`]];
  const phases = recorded.phases.map(({ position, kind, name }) => `${position}  ${kind}  ${visible(name)}`);
  const intents = recorded.intents.map(intentText);
  return [
    ["phases", phases.length === 0 ? null : phases.join("\n")],
    ["intents", intents.length === 0 ? null : intents.join("\n")],
  ];
}

function intentText({ call, generation, state, form, ageMs, settlesInMs }: RecordedSummary["intents"][number]): string {
  const shown = [visible(call), `generation ${generation}`, ...(form === null ? [] : [form]), state].join(", ");
  return state === "open" ? alarming(`${shown} for ${duration(ageMs)}, ${settling(settlesInMs)}`) : shown;
}

/** One line each; what may not be read says why. */
function linesOf<One>(shown: Shown<readonly One[]>, text: (one: One) => string): string | null {
  if ("kind" in shown) return `not shown: ${shown.why}`;
  return shown.length === 0 ? null : shown.map(text).join("\n");
}

function messageText(message: ListedMessage): string {
  return `${message.id}  ${visible(message.topic)}, ${stateText(message)}`;
}

function resolutionText({ verdict, by, note, forced, resolvedAt, stateBefore, openIntents }: ResolutionRecord): string {
  const open = openIntents.map(({ call, generation }) => `${visible(call)} ${generation}`).join(", ");
  return [
    `${resolvedAt.toISOString()}  ${verdict} by ${visible(by)}, was ${stateBefore}`,
    ...(forced ? [alarming("forced")] : []),
    ...(open === "" ? [] : [`open then: ${open}`]),
    ...(note === null ? [] : [visible(note)]),
  ].join(", ");
}
