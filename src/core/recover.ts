import type { RecoverForm } from "./intent.ts";

/** What looking up an outside call at the other side gave. */
export type Found<Value> =
  | { readonly kind: "found"; readonly value: Value }
  | { readonly kind: "none" }
  | { readonly kind: "unknown"; readonly why: string }
  | { readonly kind: "ambiguous"; readonly count: number };

/** The call was carried out (or refused: a decline is found) and this is what it gave, in the value type of `run`. */
export function found<Value>(value: Value): Found<Value> {
  return { kind: "found", value };
}

/** The other side has nothing under this key. Believed only where nothing sent can land any more. */
export function none(): Found<never> {
  return { kind: "none" };
}

/** The other side could not say. `why` is shown to operators. */
export function unknown(why: string): { readonly kind: "unknown"; readonly why: string } {
  return { kind: "unknown", why };
}

/** More than one hit under one key: an alarm. The entry goes to `needs_recovery`. */
export function ambiguous(count: number): Found<never> {
  return { kind: "ambiguous", count };
}

/** What an outside call and its look-ups get. */
export interface CallArguments<Request> {
  readonly request: Request;
  /** The derived key of this call and generation; send it as the other side's idempotency key. */
  readonly key: string;
  /** Aborts at the call's time-out and when the operation loses its lease. */
  readonly signal: AbortSignal;
}

/** Asks the other side what became of a key. */
export type Find<Request, Value> = (call: CallArguments<Request>) => Promise<Found<Value>>;

/**
 * Makes a key useless at the other side, so that nothing sent under it can land later. One that learns that the call has
 * landed throws, unless `find` shows that at once: where look-ups lag, "cancelled" would have it made a second time.
 */
export type Cancel<Request> = (call: CallArguments<Request>) => Promise<void>;

/** The other side guarantees one effect per key for `forMs` from the claim, concurrent calls included. */
export interface RecoverByDedupe<Request, Value> {
  readonly dedupes: { readonly forMs: number };
  /** Asked once the window is over; without it the entry then needs recovery. */
  readonly find?: Find<Request, Value>;
  /** For operators only: how long after it was sent a call may still land. Default: unknown, they must insist. */
  readonly settlesWithinMs?: number;
}

/** "None" is made true by cancelling the old key; the next call uses a new one. Needs no timing assumption. */
export interface RecoverByCancel<Request, Value> {
  readonly find: Find<Request, Value>;
  readonly cancel: Cancel<Request>;
  /** For operators only: how long after it was sent a call may still land. Default: unknown, they must insist. */
  readonly settlesWithinMs?: number;
}

/**
 * "None" is believed once `settlesWithinMs` have passed since the intent: socket time-out, plus the other side's queueing,
 * plus the lag of its index. Assumes that no process sleeps longer than the margin between its deadline test and its send.
 */
export interface RecoverBySettling<Request, Value> {
  readonly find: Find<Request, Value>;
  readonly settlesWithinMs: number;
}

/** Never repeated: an unknown outcome goes to `needs_recovery`. */
export interface RecoverNever {
  readonly atMostOnce: true;
  /** For operators only: how long after it was sent the call may still land. Default: unknown, they must insist. */
  readonly settlesWithinMs?: number;
}

/** How an outside call is settled when its answer is missing. One form must be chosen; there is no default. */
export type Recover<Request, Value> =
  | RecoverByDedupe<Request, Value>
  | RecoverByCancel<Request, Value>
  | RecoverBySettling<Request, Value>
  | RecoverNever;

/** The form of a call's recovery, as its intent stores it. */
export function formOf<Request, Value>(recover: Recover<Request, Value>): RecoverForm {
  // By what is defined, not by what is there: JavaScript may spell an option out as undefined.
  const given = recover as { readonly dedupes?: unknown; readonly cancel?: unknown; readonly atMostOnce?: unknown };
  if (given.dedupes !== undefined) return "dedupes";
  if (given.cancel !== undefined) return "cancel";
  return given.atMostOnce === undefined ? "settles" : "never";
}
