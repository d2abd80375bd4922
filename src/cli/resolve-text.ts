import type { Intent } from "../core/intent.ts";
import type { Resolution, Resolved } from "../core/resolution.ts";
import type { InspectedEntry } from "../stores/postgres/index.ts";
import type { Report } from "./command.ts";
import { alarming, aligned, duration, visible } from "./layout.ts";

/** An open intent as operators see it: not what was sent. */
type ShownIntent = Pick<Intent, "call" | "generation" | "form" | "ageMs" | "settlesInMs">;

/** No entry has the id. */
export function absentReport(prefix: string): Report {
  return {
    exitCode: 3,
    data: { id: prefix, resolved: false, why: "absent" },
    text: "No entry has this id: it was purged, or released with nothing recorded. Nothing was changed.\n",
  };
}

/** What became of the decision. */
export function resolvedReport(entry: InspectedEntry, resolution: Resolution, resolved: Resolved): Report {
  if (resolved.kind === "absent") return absentReport(entry.id);
  const { verdict, by } = resolution;
  if (resolved.kind !== "resolved") return refusedReport(entry, resolved);
  const openIntents = resolved.openIntents.map(shown);
  const lines = [
    aligned([...entryRows(entry), ["was", resolved.from], ["is", verdict], ["by", visible(by)]]),
    openIntents.length === 0 ? "" : `\nopen calls, which may have been made\n${intentsText(openIntents)}`,
    `\n${consequence(resolution, entry)}\n`,
  ];
  const data = { id: entry.id, resolved: true, verdict, from: resolved.from, by, openIntents };
  return { exitCode: 0, data, text: lines.join("") };
}

function entryRows({ id, tenant, operation }: InspectedEntry): (readonly [string, string])[] {
  return [
    ["id", id],
    ["tenant", visible(tenant)],
    ["operation", visible(operation)],
  ];
}

function consequence({ verdict, completion }: Resolution, { runKind }: InspectedEntry): string {
  if (completion !== null) {
    const { outcome, retentionMs } = completion;
    return `Every retry is now answered with the stored ${outcome.status}, for ${duration(retentionMs)}.`;
  }
  return runKind === "phases"
    ? `It is ${verdict}: the next retry or the sweeper goes on from its recovery point.`
    : `It is ${verdict}: the next retry runs it again.`;
}

type Refused = Exclude<Resolved, { kind: "resolved" } | { kind: "absent" }>;

function refusedReport(entry: InspectedEntry, refused: Refused): Report {
  const id = entry.id;
  const shownEntry = aligned(entryRows(entry));
  if (refused.kind === "finished") {
    const { state } = refused;
    const why = `It has an outcome already (${state}), which stays: retries have been answered with it.`;
    return refusal({ id, why: "finished", state }, `${shownEntry}\n${why}`);
  }
  if (refused.kind === "running") {
    const { claimableInMs } = refused;
    const why = `Its owner may still be at work, and --force does not change that. Come back in ${duration(claimableInMs)}.`;
    return refusal({ id, why: "running", claimableInMs }, `${shownEntry}\n${why}`);
  }
  if (refused.kind === "changed") {
    const { attempt } = refused;
    const why = `It was attempted again since you looked: it is at attempt ${attempt} now. Look at the other side once more, then give --attempt ${attempt}.`;
    return refusal({ id, why: "changed", attempt }, `${shownEntry}\n${why}`);
  }
  const openIntents = refused.openIntents.map(shown);
  const { settlesInMs } = refused;
  const open = openIntents.length === 0 ? "" : `\nopen calls, which may have been made\n${intentsText(openIntents)}`;
  const when =
    settlesInMs === null ? whenUnknown(refused.openIntents) : `for another ${duration(settlesInMs)}: come back then`;
  const why = `Something that was sent may still land, ${when}; or insist with --force.`;
  return refusal({ id, why: "unsettled", settlesInMs, openIntents }, `${shownEntry}${open}\n${why}`);
}

/** Where every open call has a time of its own, it is the entry's that is missing: it was not given up yet. */
function whenUnknown(open: readonly Intent[]): string {
  const allTimed = open.length > 0 && open.every(({ settlesInMs }) => settlesInMs !== null);
  return allTimed
    ? "and an attempt of the entry itself as well: come back when it is needs_recovery"
    : "and nobody declared for how long: look at the other side, make sure that nothing can land any more";
}

function refusal(data: Readonly<Record<string, unknown>>, text: string): Report {
  return { exitCode: 4, data: { resolved: false, ...data }, text: `${text}\nNothing was changed.\n` };
}

function shown({ call, generation, form, ageMs, settlesInMs }: Intent): ShownIntent {
  return { call, generation, form, ageMs, settlesInMs };
}

function intentsText(intents: readonly ShownIntent[]): string {
  const rows = intents.map(({ call, generation, ageMs, settlesInMs }) => {
    const name = `${visible(call)}, generation ${generation}`;
    return [name, alarming(`sent ${duration(ageMs)} ago, ${settling(settlesInMs)}`)] as const;
  });
  return aligned(rows, "  ");
}

/** Until when a call may still land, in words. */
export function settling(settlesInMs: number | null): string {
  if (settlesInMs === null) return "may land for a time that nobody declared";
  return settlesInMs > 0 ? `may land for another ${duration(settlesInMs)}` : "can land no more";
}
