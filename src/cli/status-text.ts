import { ENTRY_STATES } from "../core/entry.ts";
import type { WaitingMessages } from "../core/outbox.ts";
import type { OrphanedGroup, RecoveryGroup, StoreStatus } from "../stores/postgres/index.ts";
import { alarming, aligned, bytes, counted, duration, grouped, visible } from "./layout.ts";
import { layoutRows, partitionRows } from "./store-layout-text.ts";

/** The status for people: sections, of which those with nothing in them are left out. */
export function statusText(
  schema: { readonly name: string; readonly version: number },
  status: Omit<StoreStatus, "schemaVersion">,
): string {
  const sizes = Object.entries(status.bytes).map(([table, size]) => [table, bytes(size)] as const);
  return [
    aligned([["schema", `${schema.name}, migration ${schema.version}`], ...layoutRows(status.layout)]),
    section("entries", stateRows(status)),
    section("needs recovery", status.recovery.map(recoveryRow)),
    section("due, but no running worker knows them", status.orphaned.map(orphanedRow)),
    section("waiting", waitingRows(status)),
    section("messages", status.messages.map(messagesRow)),
    section("partitions of outcomes", partitionRows(status.layout)),
    section("size with indexes", sizes),
  ].join("");
}

type Row = readonly [label: string, value: string];

function section(title: string, rows: readonly Row[]): string {
  return rows.length === 0 ? "" : `\n${title}\n${aligned(rows, "  ")}`;
}

function stateRows({
  entries,
  lapsed,
  oldestInProgressMs,
}: Pick<StoreStatus, "entries" | "lapsed" | "oldestInProgressMs">) {
  const states = ENTRY_STATES.map((state) => [state, grouped(entries[state])] as const);
  const width = Math.max(...states.map(([, count]) => count.length));
  const notes: Partial<Record<string, string>> = {
    in_progress: oldestInProgressMs === null ? "" : `oldest ${duration(oldestInProgressMs)}, ${grouped(lapsed)} lapsed`,
    needs_recovery: entries.needs_recovery === 0 ? "" : alarming("nobody knows what these did"),
  };
  return states.map(([state, count]): Row => [state, `${count.padStart(width)}  ${notes[state] ?? ""}`]);
}

function recoveryRow({ operation, reason, count, oldestMs, ids, sweepInMs }: RecoveryGroup): Row {
  const facts = `${counted(count, "entry", "entries")}, oldest ${duration(oldestMs)}, ${nextLook(sweepInMs)}`;
  return [visible(operation), `${alarming(visible(reason))}\n${facts}\n${ids.join("\n")}`];
}

function nextLook(sweepInMs: number | null): string {
  if (sweepInMs === null) return "waits for a retry or a person (oncekey resolve <id>)";
  return sweepInMs > 0 ? `the sweeper asks again in ${duration(sweepInMs)}` : "the sweeper asks now";
}

function orphanedRow({ operation, runKind, operationVersion, count, oldestMs }: OrphanedGroup): Row {
  const facts = `${counted(count, "entry", "entries")}, oldest ${duration(oldestMs)}`;
  return [visible(operation), `${runKind}, version ${operationVersion}: ${facts}`];
}

function waitingRows({
  lapsed,
  expired,
  pendingMessages,
}: Pick<StoreStatus, "lapsed" | "expired" | "pendingMessages">) {
  const rows: Row[] = [
    ["sweeper", counted(lapsed, "lapsed entry", "lapsed entries")],
    ["purge", counted(expired, "expired entry", "expired entries")],
    ["relay", counted(pendingMessages, "pending message", "pending messages")],
  ];
  return rows;
}

function messagesRow({ topic, state, count, oldestMs }: WaitingMessages): Row {
  const facts = `${grouped(count)} ${state}, oldest ${duration(oldestMs)}`;
  return [visible(topic), state === "dead" ? alarming(facts) : facts];
}
