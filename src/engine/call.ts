import { pause } from "../core/clock.ts";
import { encodeValue } from "../core/codec.ts";
import { sameDigest } from "../core/fingerprint.ts";
import { requestDigest } from "../core/intent.ts";
import { unseenMs } from "../core/policy.ts";
import { formOf, type RecoverByDedupe } from "../core/recover.ts";
import { type Attempt, halt, haltUnfit, type TimedIntent } from "./attempt.ts";
import { bounded, type Call, keyOf, look, type Prepare, prepared, report, send } from "./call-tries.ts";
import { claimCommitOf, growingPause, jittered } from "./context.ts";
import type { CallOptions } from "./definition.ts";
import { LeaseLost } from "./lease.ts";

const SENDS_PER_ATTEMPT = 3;

/** Makes an outside call that has no recorded result: sends it, or finds out what an earlier send did. Halts where nobody can know. */
export async function makeCall(
  attempt: Attempt,
  name: string,
  options: CallOptions<unknown, unknown>,
  prepare?: Prepare,
): Promise<unknown> {
  const encoded = encodeValue(options.request);
  const known = attempt.intents.get(name);
  const sent = { times: known !== undefined || isWhereOneStopped(attempt, options) ? 1 : 0 };
  const call: Call = { attempt, name, options, prepare, encoded, digest: requestDigest(encoded), sent };
  if (known !== undefined && !sameDigest(known.intent.requestDigest, call.digest)) {
    haltUnfit(attempt, `call_changed: ${name} has other arguments than when it was sent`);
  }
  // A look-up under a key that was never sent would find nothing, and be believed.
  if (known?.intent.state === "open" && known.intent.derivedKey !== keyOf(call, known.intent.generation)) {
    haltUnfit(attempt, `call_changed: ${name} has another keyForm than when it was sent`);
  }
  checkRecoverForm(call, known);
  return isDeduped(options.recover) ? dedupedCall(call, options.recover) : intendedCall(call);
}

/** An earlier attempt came as far as this call, whose sending is written down nowhere. Only for those who are told of it. */
function isWhereOneStopped({ entry, position, records }: Attempt, { recover }: CallOptions<unknown, unknown>): boolean {
  return isDeduped(recover) && entry.attempt > 1 && position === records.length;
}

function isDeduped(recover: CallOptions<unknown, unknown>["recover"]): recover is RecoverByDedupe<unknown, unknown> {
  return formOf(recover) === "dedupes";
}

/** What was sent under one form must not be settled by the rules of another: each says what *its* sender could rely on. */
function checkRecoverForm({ attempt, name, options }: Call, known: TimedIntent | undefined): void {
  if (known?.intent.state !== "open") return;
  const form = formOf(options.recover);
  // An intent without a form is of a release that wrote none for deduped calls.
  const fits = known.intent.form === null ? form !== "dedupes" : known.intent.form === form;
  if (!fits) haltUnfit(attempt, `recover_changed: ${name} was sent under another form`);
}

/** The other side dedupes: repeated under one key while its window surely lasts, asked about afterwards. */
async function dedupedCall(call: Call, recover: RecoverByDedupe<unknown, unknown>): Promise<unknown> {
  const generation = openIntentOf(call)?.intent.generation ?? nextGeneration(call);
  let failure: unknown;
  for (let sends = 0; sends < SENDS_PER_ATTEMPT; sends++) {
    const provenFirst = call.attempt.entry.attempt === 1 && !call.attempt.untold.has(call.name);
    const ready = await prepared(call, generation);
    // An earlier sending may have arrived: then this one's failure says nothing of the call.
    if (ready.kind === "failed" && provenFirst) return unsent(call, ready.error);
    call.attempt.untold.add(call.name);
    const mayRepeat = !provenFirst || unseenMsOf(call) > 0;
    if (mayRepeat && !windowLasts(call, recover)) return afterWindow(call, recover, generation);
    const tried = ready.kind === "failed" ? ready : await send(call, generation, ready.value);
    if (tried.kind === "value") return tried.value;
    failure = tried.error;
    report(call, failure);
    await pause(call.attempt.context.settings.clock, jittered(call.attempt.context, 100, sends, 2_000));
  }
  await tellSent(call, generation);
  return comeBack(call, failure);
}

/** A deduped call costs no intent while all goes well; one that stays open is written down, for operators. */
async function tellSent(call: Call, generation: number): Promise<void> {
  await openIntent(call, generation);
  call.attempt.untold.delete(call.name);
}

const WINDOW_MARGIN_MS = 1_000;

/** Whether a send that starts now is certain to arrive inside the window, by the longest the entry's age can be. */
function windowLasts(call: Call, { dedupes }: RecoverByDedupe<unknown, unknown>): boolean {
  const { attempt, options } = call;
  const elapsedMs = attempt.context.settings.clock.monotonicMs() - attempt.clockRead.sentAtMs;
  const ageMs = unseenMsOf(call) + attempt.entry.clock.ageMs + elapsedMs;
  return ageMs + options.timeoutMs + WINDOW_MARGIN_MS <= dedupes.forMs;
}

/**
 * How long before its entry the call may have been sent first, by a claim that was lost. Only the first step: every later
 * one comes after a synchronous commit, which makes the claim before it durable as well.
 */
function unseenMsOf({ attempt }: Call): number {
  return attempt.position > 0 ? 0 : unseenMs(claimCommitOf(attempt.operation), attempt.context.settings);
}

async function afterWindow(
  call: Call,
  { find }: RecoverByDedupe<unknown, unknown>,
  generation: number,
): Promise<unknown> {
  const answer = find === undefined ? undefined : await look(call, find, generation);
  if (answer?.kind === "found") return answer.value;
  await tellSent(call, generation);
  if (answer?.kind === "unknown") return comeBack(call, undefined);
  const reason = `dedupe_window_over: ${call.name}`;
  if (answer === undefined) return halt(call.attempt, { kind: "recovery", reason });
  // Sent again it might have a second effect; that a look-up finds it yet is all that can be hoped for.
  const sweepInMs = growingPause(call.attempt.entry.attempt);
  return halt(call.attempt, { kind: "recovery", reason: `${reason}, and it is not found`, sweepInMs });
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
    // Whatever was sent before can have no effect any more.
    const ready = await prepared(call, generation);
    if (ready.kind === "failed") return unsent(call, ready.error);
    await openIntent(call, generation);
    const tried = await send(call, generation, ready.value);
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
  const unsettledMs = formOf(recover) === "settles" ? settlesIn(call, open) : 0;
  const answer = await look(call, recover.find, generation);
  if (answer.kind === "found") return answer;
  if (answer.kind === "unknown") return comeBack(call, undefined, unsettledMs);
  if ("cancel" in recover && recover.cancel !== undefined) return cancelled(call, recover, generation);
  // "None" counts only if it was asked after everything sent had landed or never will.
  return unsettledMs > 0 ? comeBack(call, undefined, unsettledMs) : generation;
}

/** How long until "none" may be believed, by the least the intent's age can be. */
function settlesIn(call: Call, { intent, read }: TimedIntent): number {
  const elapsedMs = call.attempt.context.settings.clock.monotonicMs() - read.receivedAtMs;
  const byThisCode = (settleTime(call) ?? 0) - intent.ageMs;
  // The code that sent it may have declared a longer time.
  return Math.max(byThisCode, intent.settlesInMs ?? byThisCode) - elapsedMs;
}

/** How long after its intent a call may still land, as far as that was declared. */
function settleTime({ options }: Call): number | null {
  const { settlesWithinMs } = options.recover;
  return settlesWithinMs === undefined ? null : settlesWithinMs + SEND_MARGIN_MS;
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
  const key = keyOf(call, generation);
  const form = formOf(call.options.recover);
  const settlesWithinMs = settleTime(call);
  const wanted = { call: name, generation, derivedKey: key, requestDigest: digest, form, settlesWithinMs };
  const intent = await attempt.context.store.openIntent(attempt.lease.id, attempt.lease.fence, wanted);
  if (intent === null) throw new LeaseLost("another attempt took over");
  const receivedAtMs = clock.monotonicMs();
  attempt.intents.set(name, { intent, read: { sentAtMs, receivedAtMs } });
  attempt.lease.check();
  if (settlesWithinMs !== null && receivedAtMs - sentAtMs > SEND_MARGIN_MS) return openIntent(call, generation);
}

/** Nothing of the call was sent that could still have an effect. */
function unsent({ attempt }: Call, error: unknown): never {
  attempt.lease.check();
  throw error;
}

/** Ends the attempt with the outcome unknown for now; the entry may be taken up again after a pause that grows. */
function comeBack(call: Call, cause: unknown, atLeastMs = 0): never {
  const { attempt, name } = call;
  attempt.lease.check();
  const waitMs = Math.ceil(Math.max(atLeastMs, growingPause(attempt.entry.attempt)));
  return halt(attempt, { kind: "suspend", waitMs, reason: `call_unknown: ${name}` }, cause);
}
