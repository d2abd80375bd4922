import { OncekeyError } from "../core/errors.ts";
import type { ClaimedMessage } from "../core/outbox.ts";
import type { Settings } from "../engine/settings.ts";

/** How a relay tells people what they must know. Nothing told holds a payload, a key or a secret. */
export interface Telling {
  /** A delivery failed and is tried again: told at most once a minute for each publisher and reason. */
  undelivered(publisher: string, topic: string, why: string, cause?: unknown): void;
  /** A message was given up: told each time, for somebody has to decide. */
  dead(message: Pick<ClaimedMessage, "id" | "topic" | "orderBy">, why: string, cause?: unknown): void;
  /** Messages wait for topics that this relay does not know. */
  unknownTopics(topics: readonly string[], count: number): void;
  /** The store failed. */
  failed(error: unknown, at: string): void;
}

const QUIET_MS = 60_000;
const MOST_REASONS = 1_000;
const MOST_NAMES = 10;

/** Tells `onError`. */
export function tellingOf({ onError, clock }: Pick<Settings, "onError" | "clock">): Telling {
  const toldAtMs = new Map<string, number>();
  const tell = (error: unknown, at: string) => onError(error, { operation: "relay", at });
  const isNews = (what: string) => {
    const now = clock.monotonicMs();
    const last = toldAtMs.get(what);
    if (last !== undefined && now - last < QUIET_MS) return false;
    // Reasons are the publishers' own text: a varying one must not fill the memory.
    if (toldAtMs.size >= MOST_REASONS) toldAtMs.clear();
    toldAtMs.set(what, now);
    return true;
  };
  return {
    undelivered(publisher, topic, why, cause) {
      if (!isNews(`${publisher}\n${why}`)) return;
      const message =
        `A message of topic ${JSON.stringify(topic)} was not delivered: ${why}. It stays in the outbox and is tried ` +
        "again, with pauses that grow. See that its receiver can be reached.";
      tell(undelivered(message, cause), `delivery by ${publisher}`);
    },
    dead({ id, topic, orderBy }, why, cause) {
      const held = orderBy === null ? "" : " What was sent after it under the same orderBy waits for it.";
      const message =
        `Message ${id} of topic ${JSON.stringify(topic)} was given up: ${why}. It is kept as a dead letter.${held} ` +
        "Find the cause, then retry or discard it.";
      tell(undelivered(message, cause), "dead letter");
    },
    unknownTopics(topics, count) {
      const names = topics.slice(0, MOST_NAMES).map((topic) => JSON.stringify(topic));
      const more = topics.length > MOST_NAMES ? ` and ${topics.length - MOST_NAMES} more` : "";
      const message =
        `${count} messages wait for topics that this relay has no destination for: ${names.join(", ")}${more}. They ` +
        "were left in the outbox. Add the topics to createRelay, or run the relay that has them.";
      tell(new OncekeyError("oncekey_topic_unknown", message), "topics without a destination");
    },
    failed: tell,
  };
}

function undelivered(message: string, cause: unknown): OncekeyError {
  return new OncekeyError("oncekey_message_undelivered", message, cause === undefined ? {} : { cause });
}
