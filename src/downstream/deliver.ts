import { type Cipher, openPayload, ownerOf } from "../core/cipher.ts";
import type { Clock } from "../core/clock.ts";
import { decodeValue } from "../core/codec.ts";
import { OncekeyError } from "../core/errors.ts";
import type { ClaimedMessage, OutboxStore } from "../core/outbox.ts";
import type { Random } from "../core/random.ts";
import type { Emit } from "../engine/emitter.ts";
import { untilAborted } from "../engine/until-aborted.ts";
import { DeliveryCut, holdMessage } from "./hold.ts";
import { dead, type OutboxMessage, type Published, type Publisher, retry } from "./publisher.ts";
import type { Routes } from "./routes.ts";
import type { Telling } from "./telling.ts";

/** What delivering works with. Durations in milliseconds. */
export interface Desk {
  readonly outbox: OutboxStore;
  readonly cipher: Cipher;
  readonly clock: Clock;
  readonly random: Random;
  readonly routes: Routes;
  readonly telling: Telling;
  /** Tells observers; `null`: there are none. */
  readonly emit: Emit | null;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  readonly longestPauseMs: number;
}

/** What became of a claimed message. `lost`: another relay may have it by now, nothing was written. */
export type Settled = "delivered" | "postponed" | "dead" | "lost";

/** A result, and for errors what stands behind it. */
interface Attempted {
  readonly published: Published;
  readonly cause?: unknown;
}

const SHORTEST_PAUSE_MS = 1_000;
const MOST_REASON_CHARACTERS = 500;

/** One delivery of a claimed message, from opening it to the statement that settles it. Raises what the store raises. */
export async function deliver(desk: Desk, message: ClaimedMessage, claimSentAtMs: number): Promise<Settled> {
  const publisher = desk.routes.publisherFor(message.topic);
  if (publisher === undefined) return giveBack(desk, message, "the relay has no destination for its topic");
  const attempted = await attempt(desk, publisher, message, claimSentAtMs);
  if (attempted === "lost") return "lost";
  const { published, cause } = attempted;
  if (published.kind === "delivered") return (await desk.outbox.delivered(message)) ? "delivered" : "lost";
  const why = cleaned(published.why);
  if (published.kind === "dead") return bury(desk, message, why, cause);
  if (message.attempt >= desk.maxAttempts) return bury(desk, message, `${why} (delivery ${message.attempt})`, cause);
  desk.telling.undelivered(publisher.name, message.topic, why, cause);
  return (await desk.outbox.postpone(message, pauseMs(desk, message.attempt, published.afterMs), why))
    ? "postponed"
    : "lost";
}

/** Lets another relay have it at once. */
export async function giveBack(desk: Desk, message: ClaimedMessage, why: string): Promise<Settled> {
  return (await desk.outbox.postpone(message, 0, why)) ? "postponed" : "lost";
}

async function attempt(
  desk: Desk,
  publisher: Publisher,
  message: ClaimedMessage,
  claimSentAtMs: number,
): Promise<Attempted | "lost"> {
  // A message whose deliveries never come to an end may be what ends the relay: it must not go on for ever.
  if (message.attempt > desk.maxAttempts) return { published: dead("none of its deliveries came to an end") };
  const opened = open(desk.cipher, message);
  if ("published" in opened) return opened;
  const { outbox, clock, leaseMs, timeoutMs } = desk;
  // No timer fires before the publisher is asked: a process that slept since its claim would send what another one has.
  if (clock.monotonicMs() - claimSentAtMs >= leaseMs) return "lost";
  const hold = holdMessage({ outbox, clock, held: message, leaseMs, timeoutMs, claimSentAtMs });
  try {
    return { published: checked(await untilAborted(call(publisher, opened, hold.signal), hold.signal)) };
  } catch (error) {
    const { aborted, reason } = hold.signal;
    if (!aborted) return { published: retry(`${publisher.name} threw ${nameOf(error)}`), cause: error };
    if (reason instanceof DeliveryCut && reason.why === "lease_lost") return "lost";
    return { published: retry(`${publisher.name} gave no answer within ${timeoutMs} ms`) };
  } finally {
    hold.stop();
  }
}

/** A function that throws before it gives a promise is a failed delivery like any other. */
async function call(publisher: Publisher, message: OutboxMessage, signal: AbortSignal): Promise<unknown> {
  return await publisher.publish(message, signal);
}

/** The message as publishers get it, or why nobody can: a damaged one never, one that a newer release can read later. */
function open(cipher: Cipher, claimed: ClaimedMessage): OutboxMessage | Attempted {
  const { id, topic, key, orderBy, tenant, client, correlation, createdAt, attempt } = claimed;
  let what = "payload";
  try {
    const payload = openPayload(cipher, claimed, claimed.payload);
    what = "context";
    const context =
      claimed.context === null ? null : decodeValue(cipher.open(ownerOf(id, tenant), "message", claimed.context));
    return { id, topic, payload, key, orderBy, tenant, client, context, correlation, createdAt, attempt };
  } catch (cause) {
    if (!(cause instanceof OncekeyError)) throw cause;
    const why = `its ${what} cannot be opened (${cause.code})`;
    // A key or a version that this process lacks is a rollout's matter; changed bytes are for good.
    return { published: cause.code === "oncekey_store_broken" ? dead(why) : retry(why), cause };
  }
}

async function bury(desk: Desk, message: ClaimedMessage, why: string, cause: unknown): Promise<Settled> {
  if (!(await desk.outbox.bury(message, why))) return "lost";
  desk.telling.dead(message, why, cause);
  return "dead";
}

function checked(value: unknown): Published {
  const { kind, why } = (value ?? {}) as { readonly kind?: unknown; readonly why?: unknown };
  if (kind === "delivered") return { kind };
  if ((kind === "retry" || kind === "dead") && typeof why === "string") return value as Published;
  return retry("its publisher answered something that is neither delivered, retry nor dead");
}

/**
 * 1 s, 2 s, 4 s … up to the longest pause, or what the other side asked for within these bounds. Spread, so that a crowd
 * does not come back at one instant.
 */
function pauseMs({ random, longestPauseMs }: Desk, attempt: number, askedMs?: number): number {
  if (askedMs !== undefined && askedMs >= 0) {
    return Math.min(longestPauseMs, Math.max(SHORTEST_PAUSE_MS, askedMs) * (1 + random.unit() / 10));
  }
  const growingMs = Math.min(longestPauseMs, SHORTEST_PAUSE_MS * 2 ** Math.min(attempt - 1, 30));
  return growingMs * (0.75 + random.unit() / 4);
}

/** Name and code of an error, never its message: that is the application's, and may hold what must not be stored. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return "something that is no Error";
  const { code } = error as { readonly code?: unknown };
  const name = /^\w{1,60}$/.test(error.name) ? error.name : "an Error";
  return typeof code === "string" && /^[A-Za-z]\w{1,60}$/.test(code) ? `${name} ${code}` : name;
}

/** One line that every database takes. */
function cleaned(why: string): string {
  return why.replace(/\p{Cc}+/gu, " ").slice(0, MOST_REASON_CHARACTERS);
}
