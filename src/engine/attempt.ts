import type { StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import type { Intent, JournalRecord } from "../core/intent.ts";
import type { AnyOutcome } from "../core/outcome.ts";
import type { Owned } from "./claim.ts";
import { type EngineContext, growingPause } from "./context.ts";
import { failureResult } from "./failures.ts";
import type { Lease } from "./lease.ts";
import type { Operation } from "./operation.ts";
import type { AnyResult } from "./run-result.ts";

/**
 * Why an attempt of a `phases` operation must not go on, whatever the operation's own code does with the error:
 * `suspend`: an outside call is open, come back after `waitMs`; `recovery`: another attempt would be no wiser, an operator
 * must find out (or the sweeper, where `sweepInMs` says when asking again may help); `threw`: after something was sent.
 */
export type HaltReason =
  | { readonly kind: "suspend"; readonly waitMs: number; readonly reason: string }
  | { readonly kind: "recovery"; readonly reason: string; readonly sweepInMs?: number }
  | { readonly kind: "failed"; readonly result: AnyResult }
  | { readonly kind: "threw"; readonly error: unknown };

/** Thrown through the operation's code when it must stop. Catching it changes nothing: every later step throws it again. */
export class Halted extends Error {
  override readonly name = "Halted";
  readonly reason: HaltReason;

  constructor(reason: HaltReason, cause?: unknown) {
    super("The operation was stopped; it will be resumed from its last recovery point.", { cause });
    this.reason = reason;
  }
}

/** One attempt of a `phases` operation: what it owns, what is recorded, and where it stands. */
export interface Attempt {
  readonly context: EngineContext;
  readonly operation: Operation;
  readonly entry: StoredEntry;
  readonly lease: Lease;
  readonly records: JournalRecord[];
  readonly intents: Map<string, TimedIntent>;
  /** Bounds of when the entry's clock was read, on the local monotonic clock. */
  readonly clockRead: ClockRead;
  readonly names: Set<string>;
  /** Every step begun, so that those still under way at the attempt's end can fail unheard. */
  readonly steps: Promise<unknown>[];
  position: number;
  /** The phase or call that is running now. */
  active: string | null;
  /** A call was sent in this attempt: the entry must survive, whatever happens. */
  sent: boolean;
  /** A step was reached that nothing is recorded of: what earlier attempts may have sent is that step, or nothing. */
  reachedNew: boolean;
  /** Calls that may have been sent and have neither intent nor result. */
  readonly untold: Set<string>;
  halted: Halted | null;
  outcome: AnyOutcome | null;
}

/** A store's clock was read between these two local instants. */
export interface ClockRead {
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

/** An intent and when its age was read. */
export interface TimedIntent {
  readonly intent: Intent;
  readonly read: ClockRead;
}

/** Begins an attempt on an owned entry; the journal is read only where there can be one. */
export async function beginAttempt(context: EngineContext, operation: Operation, owned: Owned): Promise<Attempt> {
  const { entry, lease, sentAtMs, receivedAtMs } = owned;
  const { clock } = context.settings;
  const askedAtMs = clock.monotonicMs();
  const journal = entry.attempt === 1 ? { records: [], intents: [] } : await context.store.journal(entry.id);
  const read = { sentAtMs: askedAtMs, receivedAtMs: clock.monotonicMs() };
  const intents = new Map<string, TimedIntent>();
  for (const intent of journal.intents) {
    const known = intents.get(intent.call);
    if (known === undefined || known.intent.generation < intent.generation) intents.set(intent.call, { intent, read });
  }
  return {
    context,
    operation,
    entry,
    lease,
    records: [...journal.records],
    intents,
    clockRead: { sentAtMs, receivedAtMs },
    names: new Set(),
    steps: [],
    position: 0,
    active: null,
    sent: false,
    reachedNew: false,
    untold: new Set(),
    halted: null,
    outcome: null,
  };
}

/** Stops the attempt for good and raises the error that says so. */
export function halt(attempt: Attempt, reason: HaltReason, cause?: unknown): never {
  attempt.halted ??= new Halted(reason, cause);
  throw attempt.halted;
}

/**
 * Stops an attempt whose code does not fit what is recorded. Other code may: in a rollout, or when this one is taken back.
 * So sweepers look again, and no person has to come.
 */
export function haltUnfit(attempt: Attempt, reason: string): never {
  return halt(attempt, { kind: "recovery", reason, sweepInMs: growingPause(attempt.entry.attempt) });
}

/**
 * Runs one phase or call at the next position: gives the recorded value where there is one, else `run`'s. Refuses what
 * would make a resume ambiguous: two at a time, two under one name, another order than recorded.
 */
export async function step<T>(
  attempt: Attempt,
  kind: JournalRecord["kind"],
  name: string,
  recorded: (record: JournalRecord) => T,
  run: () => Promise<T>,
): Promise<T> {
  enterStep(attempt, name);
  try {
    const record = attempt.records[attempt.position];
    if (record === undefined) reachNew(attempt, kind, name);
    else checkRecord(attempt, record, kind, name);
    const value = record === undefined ? await run() : recorded(record);
    attempt.position++;
    return value;
  } catch (error) {
    attempt.names.delete(name);
    throw sticky(attempt, name, error);
  } finally {
    attempt.active = null;
  }
}

const MAX_NAME_LENGTH = 255;

/** Ill-formed text is stored and digested as other text is: two names would be one, and two calls have one key. */
function isName(name: unknown): name is string {
  const isText = typeof name === "string" && name !== "" && name.length <= MAX_NAME_LENGTH;
  return isText && name.isWellFormed() && !name.includes("\0");
}

function enterStep(attempt: Attempt, name: string): void {
  if (attempt.halted !== null) throw attempt.halted;
  if (!isName(name)) {
    throw new OncekeyError(
      "oncekey_phase_duplicate",
      `Names of phases and calls are 1 to ${MAX_NAME_LENGTH} characters of well-formed text without NUL. What was committed before is kept.`,
    );
  }
  if (attempt.active !== null || attempt.outcome !== null) {
    throw new OncekeyError(
      "oncekey_phase_nested",
      `${name} was started ${attempt.outcome === null ? `while ${attempt.active} was still running` : "after op.complete()"}. What was committed before is kept. Await each phase and call before the next, and make calls outside of phases.`,
    );
  }
  if (attempt.names.has(name)) {
    throw new OncekeyError(
      "oncekey_phase_duplicate",
      `${name} names two phases or calls of ${attempt.operation.name}. What was committed before is kept. Give each its own name.`,
    );
  }
  attempt.lease.check();
  attempt.names.add(name);
  attempt.active = name;
}

function checkRecord(attempt: Attempt, record: JournalRecord, kind: JournalRecord["kind"], name: string): void {
  if (record.kind === kind && record.name === name) return;
  const reason = `phase_changed: recorded ${record.kind} ${record.name} at ${record.position}, the code has ${kind} ${name}`;
  haltUnfit(attempt, reason);
}

/**
 * The first step without a record is where earlier attempts stopped. A call that they left open was sent here: code that
 * has another step (the call was renamed, dropped, moved) would send it twice, or answer as if it had never been sent.
 */
function reachNew(attempt: Attempt, kind: JournalRecord["kind"], name: string): void {
  attempt.reachedNew = true;
  for (const [call, { intent }] of attempt.intents) {
    if (intent.state !== "open" || (kind === "call" && call === name)) continue;
    haltUnfit(attempt, `phase_changed: call ${call} may have been carried out, the code has ${kind} ${name}`);
  }
}

/**
 * Errors that end the attempt whatever the operation's code does with them; others are the operation's own. Code that
 * caught the failure of a call that was sent might store an outcome that its effect contradicts.
 */
function sticky(attempt: Attempt, name: string, error: unknown): unknown {
  if (error instanceof Halted) return error;
  const result = failureResult(error);
  const mayHaveLanded = attempt.untold.has(name) || attempt.intents.get(name)?.intent.state === "open";
  if (result === null && !mayHaveLanded) return error;
  attempt.halted ??= new Halted(result === null ? { kind: "threw", error } : { kind: "failed", result }, error);
  return attempt.halted;
}
