import { decodeValue } from "../core/codec.ts";
import { OncekeyError } from "../core/errors.ts";
import { derivedKey } from "../core/intent.ts";
import type { CallArguments, Found } from "../core/recover.ts";
import { type Attempt, halt } from "./attempt.ts";
import type { CallOptions } from "./definition.ts";
import { untilAborted } from "./until-aborted.ts";

/** Sends a call, and gives what the other side answered. */
export type Send = (args: CallArguments<unknown>) => Promise<unknown>;

/**
 * Makes one sending ready, and gives what sends it. Called before the sending's intent: where it throws nothing was sent,
 * which is the operation's own error and no unknown call.
 */
export type Prepare = (args: CallArguments<unknown>) => Promise<Send>;

/** One outside call of one attempt. */
export interface Call {
  readonly attempt: Attempt;
  readonly name: string;
  readonly options: CallOptions<unknown, unknown>;
  readonly prepare: Prepare | undefined;
  readonly encoded: Uint8Array;
  readonly digest: Uint8Array;
  /** How often it was sent, in this attempt, or perhaps in an earlier one. */
  readonly sent: { times: number };
}

/** What one try of sending, or of looking, gave. */
export type Tried<Value = unknown> =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "failed"; readonly error: unknown };

/** The key of one generation of the call. */
export function keyOf({ attempt, name, options }: Call, generation: number): string {
  return derivedKey(attempt.entry, name, generation, options.keyForm);
}

/** Makes one sending ready; what sends it. */
export async function prepared(call: Call, generation: number): Promise<Tried<Send>> {
  const { prepare, options } = call;
  if (prepare === undefined) return { kind: "value", value: (args) => options.run(args) };
  call.attempt.lease.check();
  return bounded(call, generation, prepare);
}

/** Sends the call. The deadline is tested directly before: a paused process must not send what its successor settles. */
export async function send(call: Call, generation: number, run: Send): Promise<Tried> {
  const { attempt, name } = call;
  await attempt.context.point(`call:${name}:before`);
  attempt.lease.check();
  attempt.sent = true;
  const { context } = attempt;
  const kind = call.sent.times++ === 0 ? "call_started" : "call_repeated";
  context.observed?.tell({ kind, call: name, generation });
  const startedAtMs = context.settings.clock.monotonicMs();
  const tried = await bounded(call, generation, run);
  tell(call, tried.kind === "value" ? "call_answered" : "call_failed", generation, startedAtMs);
  await attempt.context.point(`call:${name}:after`);
  return tried;
}

/** Asks the other side what became of a generation. Halts where it finds several. */
export async function look(
  call: Call,
  find: (args: CallArguments<unknown>) => Promise<Found<unknown>>,
  generation: number,
): Promise<Exclude<Found<unknown>, { kind: "ambiguous" }>> {
  call.attempt.lease.check();
  const askedAtMs = call.attempt.context.settings.clock.monotonicMs();
  const tried = await bounded(call, generation, find);
  if (tried.kind === "failed") {
    report(call, tried.error);
    return { kind: "unknown", why: "the look-up failed" };
  }
  const answer = tried.value as Found<unknown> | null | undefined;
  switch (answer?.kind) {
    case "found":
      tell(call, "call_found", generation, askedAtMs);
      return answer;
    case "none":
    case "unknown":
      return answer;
    case "ambiguous":
      return halt(call.attempt, {
        kind: "recovery",
        reason: `call_found_twice: ${call.name} (${Number(answer.count)} hits)`,
      });
    default:
      // Whatever it means, it is no proof that nothing was done.
      report(call, unknownAnswer(call.name));
      return { kind: "unknown", why: "the look-up gave no answer" };
  }
}

function unknownAnswer(name: string): OncekeyError {
  return new OncekeyError(
    "oncekey_recover_missing",
    `The look-up of ${name} gave none of found(value), none(), unknown(why) and ambiguous(count). Nothing was sent again; return one of these.`,
  );
}

/** Runs user code with the call's arguments for at most `timeoutMs`; a throw and a time-out alike mean "unknown". */
export async function bounded<Value>(
  call: Call,
  generation: number,
  run: (args: CallArguments<unknown>) => Promise<Value>,
): Promise<Tried<Value>> {
  const { attempt, options, encoded } = call;
  const timeout = new AbortController();
  const late = () => timeout.abort(new Error(`no answer within ${options.timeoutMs} ms`));
  const cancel = attempt.context.settings.clock.after(options.timeoutMs, late);
  const signal = AbortSignal.any([attempt.lease.signal, timeout.signal]);
  const args = { request: decodeValue(encoded), key: keyOf(call, generation), signal };
  try {
    return { kind: "value", value: await untilAborted(run(args), signal) };
  } catch (error) {
    return { kind: "failed", error };
  } finally {
    cancel();
  }
}

function tell(
  { attempt, name }: Call,
  kind: "call_answered" | "call_failed" | "call_found",
  generation: number,
  sinceMs: number,
): void {
  const { observed, settings } = attempt.context;
  observed?.tell({ kind, call: name, generation, durationMs: settings.clock.monotonicMs() - sinceMs });
}

/** Tells of what the caller cannot see. */
export function report({ attempt, name }: Call, error: unknown): void {
  attempt.context.settings.onError(error, { operation: attempt.operation.name, at: `call ${name}` });
}
