import type { EntryRow } from "../../src/stores/memory/entry-row.ts";
import type { Landed, ProviderState } from "./outside.ts";
import type { Invariant, TakenStep, Told, View } from "./world.ts";

/** A business row of a world: whose request it is of. */
export interface EffectRow {
  readonly identity: string;
  readonly payload: string;
  /** Which phase (or `transaction`, `delivery`, `message`) wrote it: each may be there once an identity. */
  readonly phase: string;
  /** Which attempt of which client ran the code: `Ann/1`. Only where a world tells them apart. */
  readonly by?: string;
  /** When the code wrote it (store's clock). Only where outcomes are forgotten in a world. */
  readonly at?: number;
}

/** The business table of every world. */
export const EFFECTS = "effect";

/** The effects inside, in the order of their commit. */
function effectsOf(view: View): readonly EffectRow[] {
  return view.rows<EffectRow & Record<string, unknown>>(EFFECTS);
}

/** The effects outside, in the order in which they landed. */
function landedOf({ outside }: View): readonly Landed[] {
  return (outside?.state() as ProviderState | undefined)?.landed ?? [];
}

/**
 * Each phase of an identity has its rows at most once. `keptMs`: how long outcomes and tombstones are kept together; after
 * it the same key is a new request, and may have an effect again.
 */
export function onceInside({ keptMs = Number.POSITIVE_INFINITY } = {}): Invariant {
  return always("at most one effect per identity and phase", (view) => {
    const [twice] = repeated(effectsOf(view), ({ identity, phase }) => `${identity} ${phase}`).filter(
      ([first, second]) => (second.at ?? 0) - (first.at ?? 0) < keptMs,
    );
    return twice === undefined ? null : `${twice[0].phase} of ${twice[0].identity} has its effect twice`;
  });
}

/** Each outside call of an identity has its effect at most once, under whatever keys it was sent. */
export const onceOutside: Invariant = always("at most one effect per outside call", (view) => {
  const [twice] = repeated(landedOf(view), ({ identity, call }) => `${identity} ${call}`);
  return twice === undefined ? null : `${twice[0].call} of ${twice[0].identity} has landed twice`;
});

/** What an answered success must have: rows of these phases, landed calls of these names. */
export interface Expected {
  readonly phases?: readonly string[];
  readonly calls?: readonly string[];
}

/** Whoever is told a success finds its effects there. */
export function successHasEffect({ phases = [], calls = [] }: Expected): Invariant {
  return always("an answered success has its effect", (view) => {
    for (const { client } of view.told.filter(isSuccess)) {
      const isOurs = (one: Pick<EffectRow, "identity" | "payload">) =>
        one.identity === client.identity && one.payload === client.payload;
      const lacks = (name: string) => `${client.name} was told a success, but ${name} of its request has no effect`;
      const rows = effectsOf(view).filter(isOurs);
      const noPhase = phases.find((phase) => !rows.some((row) => row.phase === phase));
      if (noPhase !== undefined) return lacks(noPhase);
      const landed = landedOf(view).filter(isOurs);
      const noCall = calls.find((call) => !landed.some((one) => one.call === call));
      if (noCall !== undefined) return lacks(noCall);
    }
    return null;
  });
}

/** All final answers to one identity are equal, status and bytes. */
export const answersAgree: Invariant = always("final answers to one identity are equal", ({ told }) => {
  const first = new Map<string, Told>();
  for (const one of told.filter(isFinal)) {
    const before = first.get(one.client.identity);
    if (before === undefined) first.set(one.client.identity, one);
    else if (before.answer.text !== one.answer.text) {
      return `${before.client.name} was told ${before.answer.text}, ${one.client.name} ${one.answer.text}`;
    }
  }
  return null;
});

/** One identity, one payload: no effect of another one, inside or outside, and none of one that was refused. */
export const mismatchNeverRuns: Invariant = always("a mismatching payload never runs", (view) => {
  const effects = [...effectsOf(view), ...landedOf(view)];
  const payloads = new Map<string, string>();
  for (const { identity, payload } of effects) {
    const before = payloads.get(identity) ?? payload;
    payloads.set(identity, before);
    if (before !== payload) return `${identity} has effects of the payloads ${before} and ${payload}`;
  }
  const refused = view.told.find(({ client, answer }) => {
    return answer.kind === "refused" && payloads.get(client.identity) === client.payload;
  });
  return refused === undefined ? null : `${refused.client.name} was refused, and has its effect`;
});

/** Statements that name the fence of an owner. Those that bring a new one (claim, takeOver, resolve) are not among them. */
const FENCED: readonly string[] = [
  ...["renew", "release", "suspend", "markUnknown", "complete", "openIntent", "cancelIntent", "recordCall"],
  ...["session.recordPhase", "session.complete", "COMMIT"],
];

/** A statement under a fence that does not own the entry changes nothing: not the entry, and no business row. */
export const fencedOutChangesNothing: Invariant = always("a fenced-out worker changes nothing", (view) => {
  const steps = view.step === null ? view.alsoSettled : [view.step, ...view.alsoSettled];
  const strangers = steps.filter((step) => isFencedOut(step, view));
  const [first] = strangers;
  // What others did in the same instant is theirs.
  if (first?.id == null || strangers.length < steps.length) return null;
  const changed = view.entries.get(first.id) !== view.before.get(first.id);
  const wrote = strangers.some(({ committed }) => committed.length > 0);
  return changed || wrote ? `${first.label} changed an entry that its fence does not own` : null;
});

function isFencedOut({ id, fence, method }: TakenStep, { before, nowMs }: View): boolean {
  if (id === null || fence === null || !FENCED.includes(method ?? "")) return false;
  const owned = before.get(id);
  return owned !== undefined && !isForgotten(owned, nowMs) && hex(owned.fence) !== fence;
}

/** Finished and over: a run of the same key may take its place. The tombstone of a failure holds nobody back. */
function isForgotten({ state, expiresAt, tombstoneUntil }: EntryRow, nowMs: number): boolean {
  const until = state === "failed" ? expiresAt : (tombstoneUntil ?? expiresAt);
  return until !== null && until <= nowMs;
}

/** An entry goes away only when its retention is over, or when its owner gives it back with nothing recorded or sent. */
export const unresolvedIsKept: Invariant = always(
  "nothing unresolved is purged",
  ({ step, before, entries, nowMs }) => {
    for (const [id, row] of before) {
      if (entries.has(id) || isForgotten(row, nowMs) || isGivenBack(step, row)) continue;
      return `an entry that is ${row.state} was deleted by ${step?.label ?? "time"}`;
    }
    return null;
  },
);

function isGivenBack(step: TakenStep | null, row: EntryRow): boolean {
  const isBlank = row.records.length === 0 && row.intents.length === 0 && row.attempt === 1;
  return step?.method === "release" && isBlank && row.reason === null;
}

/** Whoever is told a failure for good may ask anew with another key: nothing of it may exist outside, nor land later. */
export const failureHasNoEffect: Invariant = always("a failed answer has no effect", (view) => {
  const failed = view.told.find((one) => isFinal(one) && !isSuccess(one));
  if (failed === undefined) return null;
  const { identity, name } = failed.client;
  const landed = landedOf(view).find((one) => one.identity === identity);
  if (landed !== undefined) return `${name} was told ${failed.answer.text}, and ${landed.call} has landed`;
  const row = effectsOf(view).find((one) => one.identity === identity);
  return row === undefined ? null : `${name} was told ${failed.answer.text}, and ${row.phase} has its effect`;
});

/** What these answers mean in one transaction: it was rolled back. */
const ROLLED_BACK: readonly string[] = ["contention", "store_unavailable", "busy"];

/** An attempt that is told that its one transaction was rolled back leaves no row, then or later. */
export const rolledBackLeavesNothing: Invariant = always("what was rolled back has no effect", (view) => {
  for (const { client, attempt, answer } of view.told) {
    if (answer.kind !== "threw" && !ROLLED_BACK.includes(answer.text)) continue;
    const row = effectsOf(view).find(({ by }) => by === `${client.name}/${attempt}`);
    if (row !== undefined)
      return `attempt ${attempt} of ${client.name} was told ${answer.text}, and ${row.phase} is there`;
  }
  return null;
});

/** An outbox message exists if and only if the rows of its transaction do. */
export const messagesGoWithRows: Invariant = always("a message exists exactly with its rows", (view) => {
  const rows = effectsOf(view).filter(({ phase }) => phase === "message").length;
  const { length } = view.messages;
  return rows === length ? null : `${rows} transactions sent a message, ${length} are in the outbox`;
});

/** What every world must hold. */
export const COMMON: readonly Invariant[] = [
  onceOutside,
  answersAgree,
  mismatchNeverRuns,
  fencedOutChangesNothing,
  unresolvedIsKept,
  failureHasNoEffect,
  rolledBackLeavesNothing,
];

function always(name: string, check: (view: View) => string | null): Invariant {
  return { name, when: "always", check };
}

function isFinal({ answer }: Told): boolean {
  return answer.kind === "final";
}

/** Final texts begin with their status. */
function isSuccess(told: Told): boolean {
  return isFinal(told) && Number.parseInt(told.answer.text, 10) < 400;
}

/** Pairs of what has the same name as the one before it. */
function repeated<T>(all: readonly T[], nameOf: (one: T) => string): (readonly [first: T, second: T])[] {
  const last = new Map<string, T>();
  return all.flatMap((one) => {
    const before = last.get(nameOf(one));
    last.set(nameOf(one), one);
    return before === undefined ? [] : [[before, one] as const];
  });
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
