import { OncekeyError } from "../../core/errors.ts";
import { sameDigest } from "../../core/fingerprint.ts";
import type { Intent, Journal, JournalRecord, NewIntent } from "../../core/intent.ts";
import { type EntryRow, type IntentRow, isOwned } from "./entry-row.ts";
import { type EntryStep, keep, write } from "./tables.ts";

/** Records a phase's value and moves the recovery point, fenced. */
export function recordPhaseStep(fence: Uint8Array, record: JournalRecord): EntryStep<boolean> {
  return (row) => (isOwned(row, fence) ? write(withRecord(row, record), true) : keep(false));
}

/** Records a call's result and settles its open intents, fenced. */
export function recordCallStep(fence: Uint8Array, record: JournalRecord): EntryStep<boolean> {
  return (row) => {
    if (!isOwned(row, fence)) return keep(false);
    const isOpen = (intent: IntentRow) => intent.call === record.name && intent.state === "open";
    const intents = row.intents.map((intent) => (isOpen(intent) ? { ...intent, state: "settled" as const } : intent));
    return write({ ...withRecord(row, record), intents }, true);
  };
}

/** Commits an intent, or restarts the age of an open one; `null` where it is not ours, or settled or cancelled already. */
export function openIntentStep(fence: Uint8Array, opened: NewIntent): EntryStep<Intent | null> {
  return (row, now) => {
    if (!isOwned(row, fence)) return keep(null);
    const existing = row.intents.find((intent) => isIntent(intent, opened.call, opened.generation));
    if (existing !== undefined && existing.state !== "open") return keep(null);
    const { settlesWithinMs } = opened;
    const intent: IntentRow = { ...(existing ?? opened), settlesWithinMs, state: "open", startedAt: now };
    const others = row.intents.filter((other) => other !== existing);
    return write({ ...row, intents: [...others, intent] }, storedIntent(intent, now));
  };
}

/** Commits that a generation can never land any more, fenced. */
export function cancelIntentStep(fence: Uint8Array, call: string, generation: number): EntryStep<boolean> {
  return (row) => {
    const cancelled = isOwned(row, fence) && row.intents.find((intent) => isIntent(intent, call, generation));
    if (!cancelled || cancelled.state === "settled") return keep(false);
    const intents = row.intents.map((intent) =>
      intent === cancelled ? { ...intent, state: "cancelled" as const } : intent,
    );
    return write({ ...row, intents }, true);
  };
}

/** All that is recorded for an entry, in order. */
export function journalOf(row: EntryRow | undefined, now: number): Journal {
  const records = (row?.records ?? []).toSorted((a, b) => a.position - b.position);
  const intents = (row?.intents ?? []).toSorted((a, b) => compareText(a.call, b.call) || a.generation - b.generation);
  return { records, intents: intents.map((intent) => storedIntent(intent, now)) };
}

const isIntent = (intent: IntentRow, call: string, generation: number): boolean =>
  intent.call === call && intent.generation === generation;

const compareText = (a: string, b: string): number => Number(a > b) - Number(a < b);

function storedIntent({ startedAt, settlesWithinMs, ...intent }: IntentRow, now: number): Intent {
  const settlesInMs = settlesWithinMs === null ? null : startedAt + settlesWithinMs - now;
  return { ...intent, ageMs: now - startedAt, settlesInMs };
}

function withRecord(row: EntryRow, record: JournalRecord): EntryRow {
  const existing = row.records.find(({ position }) => position === record.position);
  // The same record sent again, because its answer was lost, is no second record.
  if (existing !== undefined && isSameRecord(existing, record)) return row;
  if (existing !== undefined) {
    throw new OncekeyError(
      "oncekey_store_broken",
      `Position ${record.position} of the entry's journal is taken by another record. The first one was kept; report this as a bug.`,
    );
  }
  return { ...row, records: [...row.records, record], recoveryPoint: record.name };
}

function isSameRecord(a: JournalRecord, b: JournalRecord): boolean {
  return a.kind === b.kind && a.name === b.name && sameDigest(a.value, b.value);
}
