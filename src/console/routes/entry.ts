import type { StoredEntry } from "../../core/entry.ts";
import { idBytes } from "../../core/identity.ts";
import { StoreFailure } from "../../core/store.ts";
import { sqlState } from "../../stores/postgres/errors.ts";
import type { InspectedEntry } from "../../stores/postgres/inspect.ts";
import { entryNotes } from "../../stores/postgres/operator/audit.ts";
import { type SentCall, sentCalls } from "../../stores/postgres/operator/calls.ts";
import { entryOf } from "../../stores/postgres/operator/entries.ts";
import { type Offered, offered } from "../../stores/postgres/operator/indexes.ts";
import { entryMessages } from "../../stores/postgres/operator/messages.ts";
import { outcomeSummary } from "../../stores/postgres/operator/outcome-summary.ts";
import type { Ask } from "../../stores/postgres/operator/reading.ts";
import { type RecordedSummary, recordedOf, resolutionRecord } from "../../stores/postgres/recorded.ts";
import { storedEntry } from "../../stores/postgres/rows.ts";
import { type Call, look } from "../parts.ts";
import { notFound } from "../refusal.ts";
import { entryRow, messageRow } from "./rows.ts";
import { timelineOf } from "./timeline.ts";

/** `GET entries/<id>`: all that is known of one, without what clients sent or were answered. */
export async function getEntry(call: Call) {
  const { parts, id, tenant, who } = call;
  const seen = await look(call, async (ask) => {
    const facts = await offered(ask);
    const entry = await entryOf(ask, facts, id, tenant);
    return entry === null ? null : { entry, ...(await surroundings(ask, facts, id)) };
  });
  if (seen === null) throw notFound("entry");
  const { entry } = seen;
  return {
    entry: { ...entryRow(entry), ...details(entry), outcome: await outcomeOf(call) },
    timeline: timelineOf({ ...seen, trail: parts.trail.of(id, tenant), now: new Date() }),
    messages: seen.messages?.map(messageRow) ?? [],
    messagesHidden:
      seen.messages === null ? 'What it sent is found by an index: run "oncekey console --create-indexes" once.' : null,
    decisions: decisionsOf(entry, who.operator.readOnly),
  };
}

async function surroundings(ask: Ask, facts: Offered, id: string) {
  const bytes = idBytes(id);
  const recorded = recordedOf(await ask("recorded", [bytes]));
  return {
    recorded,
    calls: facts.keys ? await sentCalls(ask, id, true) : withoutKeys(recorded),
    resolutions: (await ask("resolutions", [bytes])).map(resolutionRecord),
    notes: await entryNotes(ask, id),
    messages: facts.indexes.has("sender") ? await entryMessages(ask, id) : null,
  };
}

/** For a role that may not see the keys of outside calls, not even their ends. */
function withoutKeys({ intents }: RecordedSummary): SentCall[] {
  const now = Date.now();
  return intents.map(({ ageMs, settlesInMs, ...intent }) => ({
    ...intent,
    derivedKey: "",
    startedAt: new Date(now - ageMs),
    settlesAt: settlesInMs === null ? null : new Date(now + settlesInMs),
  }));
}

function details(entry: InspectedEntry) {
  const { operationVersion, recoveryPoint, correlation, leaseUntil, notBefore, settlesAt, tombstoneUntil } = entry;
  return { version: operationVersion, recoveryPoint, correlation, leaseUntil, notBefore, settlesAt, tombstoneUntil };
}

/** How its outcome is stored; never what stands in it. */
async function outcomeOf(call: Call) {
  try {
    // By itself: a role that may not read it has spoiled the transaction in which it tries.
    const entry = await look(call, (ask) => wholeEntry(ask, call.id));
    return entry === null ? { kind: "none" as const } : outcomeSummary(entry, call.parts.cipher);
  } catch (error) {
    if (sqlState(error) === "42501") return { kind: "hidden" as const, why: "this database role may not read it" };
    if (error instanceof StoreFailure) throw error;
    return { kind: "hidden" as const, why: "it cannot be read: it was changed, or written by a newer version" };
  }
}

/** The entry with what is stored of its answer, wherever it lies; `null`: there is none. Raises as `ask` does. */
export async function wholeEntry(ask: Ask, id: string): Promise<StoredEntry | null> {
  const [row] = await ask("read_apart", [idBytes(id)]);
  return row === undefined || row.id === null ? null : storedEntry(row);
}

/** What an operator may decide about it now. */
function decisionsOf({ state, runKind, attempt }: InspectedEntry, readOnly: boolean) {
  const isOpen = state === "needs_recovery" || state === "released" || state === "in_progress";
  const mayResolve = isOpen && !readOnly;
  const mayRetry = (state === "needs_recovery" || state === "released") && runKind !== "transaction" && !readOnly;
  return { mayResolve, mayRetry, why: whyNot(isOpen, state, readOnly), attempt };
}

function whyNot(isOpen: boolean, state: string, readOnly: boolean): string | null {
  if (readOnly) return "You may look and not change.";
  if (!isOpen) return `It has an outcome already (${state}), which stays: retries have been answered with it.`;
  return state === "in_progress"
    ? "Its owner may still be at work: a decision is refused until its lease is over."
    : null;
}
