import type { Observer } from "../engine/emitter.ts";
import { EVENT_MEANINGS, type EventKind, type OncekeyEvent } from "../engine/event.ts";

/** Levels of a structured logger. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What is used of a logger: pino and its like, whose methods take fields and a message. */
export type StructuredLogger = {
  readonly [L in LogLevel]: (fields: Record<string, unknown>, message: string) => unknown;
};

/** How events are logged. */
export interface LogOptions {
  /** The level of some kinds, where it is another one than below; `null`: not logged. */
  readonly levels?: { readonly [K in EventKind]?: LogLevel | null };
}

const WARNINGS: readonly EventKind[] = [
  "mismatch",
  "outcome_unknown",
  "too_late",
  "version_unknown",
  "provisional",
  "lease_lost",
  "contention",
  "call_failed",
  "message_postponed",
  "delivery_out_of_order",
  "delivery_unknown_producer",
  "delivery_unsettled",
  "webhook_refused",
];
const ERRORS: readonly EventKind[] = [
  "needs_recovery",
  "unprotected",
  "commit_unknown",
  "store_unavailable",
  "threw",
  "message_dead",
  "delivery_threw",
];
const NEWS: readonly EventKind[] = [
  "completed",
  "completed_late",
  "replayed",
  "resumed",
  "reconciled",
  "delivery_done",
];

/**
 * Logs each event as fields and a sentence: pino's way. No line holds a key, body, header or token. What is routine is
 * `debug`, what was done `info`, what a client or a bad moment caused `warn`, what somebody should look at `error`.
 */
export function logEvents(logger: StructuredLogger, { levels = {} }: LogOptions = {}): Observer {
  return (event) => {
    const level = levels[event.kind] === undefined ? levelOf(event) : levels[event.kind];
    if (level == null) return;
    const { kind, ...fields } = event;
    logger[level]({ event: `oncekey.${kind}`, ...fields }, EVENT_MEANINGS[kind]);
  };
}

function levelOf(event: OncekeyEvent): LogLevel {
  const { kind } = event;
  if (ERRORS.includes(kind)) return "error";
  if (WARNINGS.includes(kind)) return "warn";
  return NEWS.includes(kind) ? "info" : "debug";
}
