import type { EraseReport, EraseResult } from "../stores/postgres/index.ts";
import { alarming, aligned, counted, grouped } from "./layout.ts";

/** What was erased and what was left, for people. */
export function eraseText(result: EraseResult): string {
  if (result.kind === "absent") return "Nothing is stored for this selection; nothing was changed.\n";
  const isPlan = result.kind === "planned";
  const head = isPlan ? "Would be erased (nothing was changed; --apply erases)" : "Erased";
  return `${head}\n${aligned(erasedRows(result), "  ")}${leftText(result, isPlan)}`;
}

function erasedRows({ entries, bodies, messages, deliveries }: EraseReport): (readonly [string, string])[] {
  const notAsked = "not looked at: they belong to a tenant, not to a part of it";
  return [
    ["finished entries", grouped(entries)],
    ["bodies elsewhere", `${grouped(bodies)}${bodies === 0 ? "" : ", which the sweeper removes"}`],
    ["messages", `${grouped(messages.delivered)} delivered, ${grouped(messages.dead)} given up`],
    ["deliveries", deliveries === null ? notAsked : grouped(deliveries)],
  ];
}

function leftText({ left }: EraseReport, isPlan: boolean): string {
  const { unfinished, unfinishedIds, pendingMessages, busy } = left;
  const rows = [
    row(unfinished.inProgress, "entry", "entries", "in progress: run it again when they have ended"),
    row(unfinished.needsRecovery, "entry", "entries", "in needs_recovery: oncekey resolve <id>, then run it again"),
    row(unfinished.released, "entry", "entries", "released: a retry ends them, or oncekey resolve <id>"),
    row(pendingMessages, "message", "messages", "pending: let the relay deliver them, or oncekey outbox discard"),
    row(busy, "row", "rows", "in use by others: run it again"),
  ].filter((one) => one !== null);
  if (rows.length === 0) return "";
  const ids = unfinishedIds.map((id) => `  ${id}\n`).join("");
  return `\n${isPlan ? "Would be left" : "Left"}\n${rows.map((one) => `  ${one}\n`).join("")}${ids}`;
}

function row(count: number, one: string, many: string, advice: string): string | null {
  return count === 0 ? null : alarming(`${counted(count, one, many)} ${advice}`);
}
