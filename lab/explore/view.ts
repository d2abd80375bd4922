import type { EntryRow } from "../../src/stores/memory/entry-row.ts";
import type { Cast } from "./actors.ts";
import { digestOf, rowDigest, textOf } from "./digest.ts";
import type { PendingStep, Stage } from "./stage.ts";
import type { TakenStep, View } from "./world.ts";

/** What was committed at one moment. */
export interface Committed {
  readonly entries: ReadonlyMap<string, EntryRow>;
  readonly business: ReadonlyMap<string, readonly object[]>;
}

/** What is committed now. Rows are replaced, never changed, so that copying the maps is enough. */
export function committedNow({ backend: { tables } }: Stage): Committed {
  return { entries: new Map(tables?.entries), business: new Map(tables?.business) };
}

/** What invariants see after a step. */
export function viewOf(stage: Stage, before: Committed): View {
  const { tables } = stage.backend;
  return {
    nowMs: stage.nowMs,
    step: stage.taken === null ? null : takenStep(stage, stage.taken, before),
    alsoSettled: stage.settled.map((step) => takenStep(stage, step, before)),
    before: before.entries,
    entries: tables?.entries ?? new Map(),
    rows: <Row extends object>(table: string) => (tables?.business.get(table) ?? []) as unknown as readonly Row[],
    messages: [...(tables?.messages.values() ?? [])],
    deliveries: [...(tables?.deliveries.keys() ?? [])],
    told: stage.told,
    notes: stage.notes,
    outside: stage.outside,
    actors: stage.world.actors,
  };
}

function takenStep({ backend }: Stage, taken: PendingStep, before: Committed): TakenStep {
  const committed = [...(backend.tables?.business ?? [])].flatMap(([table, rows]) => {
    const known = before.business.get(table)?.length ?? 0;
    return rows.slice(known).map((row) => ({ table, row }));
  });
  return { process: taken.owner?.name ?? null, label: taken.label, ...taken.about, committed };
}

/** A digest of where a schedule stands: two states with one digest go on in the same ways. */
export function stateDigest(stage: Stage, { clients, workers }: Cast): string {
  const members = [...stage.processes.values()].map(({ name, status, chain, pausedAtMs, inbox }) => [
    ...[name, status, chain, inbox.length],
    status === "paused" ? pausedAtMs : 0,
  ]);
  const onTheirWay = stage.pending.filter(({ owner }) => owner === null).map(({ label }) => label);
  const waiting = [...stage.blocked].map(({ owner, label }) => `${owner?.name}:${label}`);
  const people = [
    ...clients.map(({ attempts, asked, last }) => [attempts, asked?.name, asked?.status, last?.kind, last?.text]),
    ...workers.map(({ rounds, on }) => [rounds, on?.name]),
  ];
  const told = stage.told.map(({ client, answer }) => `${client.name}:${answer.kind}:${answer.text}`).sort();
  const parts = [stage.nowMs, members, onTheirWay, waiting, people, told, stage.outside?.state(), storeState(stage)];
  return digestOf(textOf(parts));
}

function storeState({ backend: { tables } }: Stage): unknown {
  if (tables === null) return null;
  const digests = (rows: Iterable<object>) => Array.from(rows, rowDigest).sort();
  return [
    digests(tables.entries.values()),
    [...tables.business].map(([table, rows]) => [table, digests(rows)]).sort(),
    digests(tables.messages.values()),
    digests(tables.deliveries.values()),
    digests(tables.producers.values()),
    digests(tables.subjects.values()),
    digests(tables.resolutions),
  ];
}
