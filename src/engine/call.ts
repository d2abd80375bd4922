import { pause } from "../core/clock.ts";
import { decodeValue, encodeValue } from "../core/codec.ts";
import { sameDigest } from "../core/fingerprint.ts";
import { derivedKey, requestDigest } from "../core/intent.ts";
import type { CallArguments, Found, RecoverByDedupe } from "../core/recover.ts";
import { type Attempt, halt, type TimedIntent } from "./attempt.ts";
import { growingPause, jittered } from "./context.ts";
import type { CallOptions } from "./definition.ts";
import { LeaseLost } from "./lease.ts";
import { untilAborted } from "./until-aborted.ts";

const SENDS_PER_ATTEMPT = 3;

/** One outside call of one attempt. */
interface Call {
  readonly attempt: Attempt;
  readonly name: string;
  readonly options: CallOptions<unknown, unknown>;
  readonly encoded: Uint8Array;
  readonly digest: Uint8Array;
}

/** What one try of sending, or of looking, gave. */
type Tried = { readonly kind: "value"; readonly value: unknown } | { readonly kind: "failed"; readonly error: unknown };

/** Makes an outside call that has no recorded result: sends it, or finds out what an earlier send did. Halts where nobody can know. */
export async function makeCall(
  attempt: Attempt,
  name: string,
  options: CallOptions<unknown, unknown>,
): Promise<unknown> {
  const encoded = encodeValue(options.request);
  const call: Call = { attempt, name, options, encoded, digest: requestDigest(encoded) };
  const known = attempt.intents.get(name);
  if (known !== undefined && !sameDigest(known.intent.requestDigest, call.digest)) {
    halt(attempt, { kind: "recovery", reason: `call_changed: ${name} has other arguments than when it was sent` });
  }
  return "dedupes" in options.recover ? dedupedCall(call, options.recover) : intendedCall(call);
}

/** The other side dedupes: repeated under one key while its window surely lasts, asked about afterwards. */
async function dedupedCall(call: Call, recover: RecoverByDedupe<unknown, unknown>): Promise<unknown> {
  // This form writes no intents: one that is open was sent by code that did not count on being deduped.
  if (openIntentOf(call) !== undefined) {
    halt(call.attempt, { kind: "recovery", reason: `recover_changed: ${call.name} was sent under another form` });
  }
  let failure: unknown;
  for (let sends = 0; sends < SENDS_PER_ATTEMPT; sends++) {
    const provenFirst = call.attempt.entry.attempt === 1 && sends === 0;
    if (!provenFirst && !windowLasts(call, recover)) return afterWindow(call, recover);
    const tried = await send(call, 1);
    if (tried.kind === "value") return tried.value;
    failure = tried.error;
    report(call, failure);
    await pause(call.attempt.context.settings.clock, jittered(call.attempt.context, 100, sends, 2_000));
  }
  return comeBack(call, failure);
}

const WINDOW_MARGIN_MS = 1_000;

/** Whether a send that starts now is certain to arrive inside the window, by the longest the entry's age can be. */
function windowLasts({ attempt, options }: Call, { dedupes }: RecoverByDedupe<unknown, unknown>): boolean {
  const elapsedMs = attempt.context.settings.clock.monotonicMs() - attempt.clockRead.sentAtMs;
  return attempt.entry.clock.ageMs + elapsedMs + options.timeoutMs + WINDOW_MARGIN_MS <= dedupes.forMs;
}

async function afterWindow(call: Call, { find }: RecoverByDedupe<unknown, unknown>): Promise<unknown> {
  if (find !== undefined) {
    const answer = await look(call, find, 1);
    if (answer.kind === "found") return answer.value;
    if (answer.kind === "unknown") return comeBack(call, undefined);
  }
  return halt(call.attempt, { kind: "recovery", reason: `dedupe_window_over: ${call.name}` });
}

/** Every other form: the intent is committed before the call, and an open one is settled before anything is sent again. */
async function intendedCall(call: Call): Promise<unknown> {
  if (mayHaveBeenSent(call)) await openIntent(call, 1);
  let failure: unknown;
  for (let sends = 0; ; sends++) {
    const open = openIntentOf(call);
    const generation = open === undefined ? nextGeneration(call) : await settle(call, open);
    if (typeof generation === "object") return generation.value;
    if (sends >= SENDS_PER_ATTEMPT) return comeBack(call, failure);
    await openIntent(call, generation);
    const tried = await send(call, generation);
    if (tried.kind === "value") return tried.value;
    failure = tried.error;
    report(call, failure);
  }
}

/** Code of another version may have sent the call without an intent (deduped): then its absence proves nothing. */
function mayHaveBeenSent({ attempt, name }: Call): boolean {
  const isOtherCode = attempt.entry.operationVersion !== attempt.operation.version;
  return isOtherCode && attempt.entry.attempt > 1 && !attempt.intents.has(name);
}

function openIntentOf({ attempt, name }: Call): TimedIntent | undefined {
  const known = attempt.intents.get(name);
  return known?.intent.state === "open" ? known : undefined;
}

function nextGeneration({ attempt, name }: Call): number {
  return (attempt.intents.get(name)?.intent.generation ?? 0) + 1;
}

/** Finds out what an open intent's call did: its value, or the generation that may now be sent. Halts while nobody can tell. */
async function settle(call: Call, open: TimedIntent): Promise<number | { readonly value: unknown }> {
  const { recover } = call.options;
  const { generation } = open.intent;
  if (!("find" in recover) || recover.find === undefined) {
    return halt(call.attempt, { kind: "recovery", reason: `call_unknown: ${call.name} may have been carried out` });
  }
  const unsettledMs = "settlesWithinMs" in recover ? settlesIn(call, open, recover.settlesWithinMs) : 0;
  const answer = await look(call, recover.find, generation);
  if (answer.kind === "found") return answer;
  if (answer.kind === "unknown") return comeBack(call, undefined, unsettledMs);
  if ("cancel" in recover) return cancelled(call, recover, generation);
  // "None" counts only if it was asked after everything sent had landed or never will.
  return unsettledMs > 0 ? comeBack(call, undefined, unsettledMs) : generation;
}

/** How long until "none" may be believed, by the least the intent's age can be. */
function settlesIn({ attempt }: Call, { intent, read }: TimedIntent, settlesWithinMs: number): number {
  const elapsedMs = attempt.context.settings.clock.monotonicMs() - read.receivedAtMs;
  return settlesWithinMs + SEND_MARGIN_MS - (intent.ageMs + elapsedMs);
}

/** Makes "none" true: cancels the generation at the other side, looks once more, and only then allows the next one. */
async function cancelled(
  call: Call,
  recover: Extract<CallOptions<unknown, unknown>["recover"], { cancel: unknown }>,
  generation: number,
): Promise<number | { readonly value: unknown }> {
  const { attempt, name } = call;
  attempt.lease.check();
  const gone = await bounded(call, generation, (args) => recover.cancel(args));
  if (gone.kind === "failed") {
    report(call, gone.error);
    return comeBack(call, gone.error);
  }
  const answer = await look(call, recover.find, generation);
  if (answer.kind === "found") return answer;
  if (answer.kind === "unknown") return comeBack(call, undefined);
  const { id, fence } = attempt.lease;
  if (!(await attempt.context.store.cancelIntent(id, fence, name, generation))) throw new LeaseLost("taken over");
  return generation + 1;
}

/** Longest time between an intent's commit and its sending; the margin of the settle times (see {@link settlesIn}). */
const SEND_MARGIN_MS = 1_000;

/**
 * Commits the intent before its call; what is not committed must never be sent. "None" is believed so long after the
 * intent, not after the sending: where the commit's answer was long on its way, the intent's age is started again.
 */
async function openIntent(call: Call, generation: number): Promise<void> {
  const { attempt, name, digest } = call;
  const { clock } = attempt.context.settings;
  const sentAtMs = clock.monotonicMs();
  const key = derivedKey(attempt.entry, name, generation);
  const wanted = { call: name, generation, derivedKey: key, requestDigest: digest };
  const intent = await attempt.context.store.openIntent(attempt.lease.id, attempt.lease.fence, wanted);
  if (intent === null) throw new LeaseLost("another attempt took over");
  const receivedAtMs = clock.monotonicMs();
  attempt.intents.set(name, { intent, read: { sentAtMs, receivedAtMs } });
  attempt.lease.check();
  const isTimed = "settlesWithinMs" in call.options.recover;
  if (isTimed && receivedAtMs - sentAtMs > SEND_MARGIN_MS) return openIntent(call, generation);
}

/** Sends the call. The deadline is tested directly before: a paused process must not send what its successor settles. */
async function send(call: Call, generation: number): Promise<Tried> {
  const { attempt, name } = call;
  await attempt.context.point(`call:${name}:before`);
  attempt.lease.check();
  attempt.sent = true;
  const tried = await bounded(call, generation, (args) => call.options.run(args));
  await attempt.context.point(`call:${name}:after`);
  return tried;
}

async function look(
  call: Call,
  find: (args: CallArguments<unknown>) => Promise<Found<unknown>>,
  generation: number,
): Promise<Exclude<Found<unknown>, { kind: "ambiguous" }>> {
  call.attempt.lease.check();
  const tried = await bounded(call, generation, find);
  if (tried.kind === "failed") {
    report(call, tried.error);
    return { kind: "unknown", why: "the look-up failed" };
  }
  const answer = tried.value as Found<unknown>;
  if (answer.kind !== "ambiguous") return answer;
  return halt(call.attempt, { kind: "recovery", reason: `call_found_twice: ${call.name} (${answer.count} hits)` });
}

/** Runs user code with the call's arguments for at most `timeoutMs`; a throw and a time-out alike mean "unknown". */
async function bounded(
  call: Call,
  generation: number,
  run: (args: CallArguments<unknown>) => Promise<unknown>,
): Promise<Tried> {
  const { attempt, name, options, encoded } = call;
  const timeout = new AbortController();
  const late = () => timeout.abort(new Error(`no answer within ${options.timeoutMs} ms`));
  const cancel = attempt.context.settings.clock.after(options.timeoutMs, late);
  const signal = AbortSignal.any([attempt.lease.signal, timeout.signal]);
  const args = { request: decodeValue(encoded), key: derivedKey(attempt.entry, name, generation), signal };
  try {
    return { kind: "value", value: await untilAborted(run(args), signal) };
  } catch (error) {
    return { kind: "failed", error };
  } finally {
    cancel();
  }
}

/** Ends the attempt with the outcome unknown for now; the entry may be taken up again after a pause that grows. */
function comeBack(call: Call, cause: unknown, atLeastMs = 0): never {
  const { attempt, name } = call;
  attempt.lease.check();
  const waitMs = Math.ceil(Math.max(atLeastMs, growingPause(attempt.entry.attempt)));
  return halt(attempt, { kind: "suspend", waitMs, reason: `call_unknown: ${name}` }, cause);
}

function report({ attempt, name }: Call, error: unknown): void {
  attempt.context.settings.onError(error, { operation: attempt.operation.name, at: `call ${name}` });
}
