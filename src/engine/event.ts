import type { EntryState, RunKind } from "../core/entry.ts";
import type { MessageState } from "../core/outbox.ts";

/** Who works on an entry: a request that somebody waits for, or the sweeper. */
export type WorkedBy = "request" | "sweeper";

/** Whose work an event tells of. Holds no key, body, header or token: entries are named by their digest. */
export interface RunAbout {
  /** `null`: not known yet, or the row cannot be read. */
  readonly tenant: string | null;
  readonly operation: string;
  readonly runKind: RunKind;
  /** The entry's id in hex, as `oncekey resolve` takes it; `null`: the key was refused, or many entries are meant. */
  readonly entryId: string | null;
  readonly by: WorkedBy;
  /** The same for all events of one request (or of one entry that a sweeper took up) in this process; `null`: no run. */
  readonly runId: number | null;
  /** The `traceparent` that came with the request; `null`: none. Another correlation is not told: it may be anything. */
  readonly trace: string | null;
}

/** How long the whole run took, and how much of that it waited for a duplicate. Milliseconds. */
interface Ended {
  readonly durationMs: number;
  readonly waitedMs: number;
}

/** What a run came to; a request has exactly one of these, as its last event. */
export type RunEnd = Ended &
  (
    | { readonly kind: "completed"; readonly state: "succeeded" | "failed"; readonly status: number }
    /** `originTrace`: the `traceparent` of the request that ran. */
    | { readonly kind: "replayed"; readonly status: number; readonly originTrace: string | null }
    | { readonly kind: "mismatch" | "gone" | "version_unknown"; readonly state: EntryState }
    | { readonly kind: "outcome_unknown"; readonly state: EntryState; readonly reason: string }
    | { readonly kind: "not_begun" | "provisional" | "unprotected"; readonly status: number }
    | { readonly kind: "busy" | "too_late" | "lease_lost" | "commit_unknown" | "contention" | "store_unavailable" }
    | { readonly kind: "refused"; readonly code: string }
    | { readonly kind: "threw"; readonly error: string }
  );

/** What happened in a run. Durations in milliseconds. */
export type Happening =
  | RunEnd
  | { readonly kind: "began" }
  | { readonly kind: "claimed"; readonly attempt: number }
  | { readonly kind: "resumed"; readonly attempt: number; readonly from: EntryState }
  | { readonly kind: "waited"; readonly durationMs: number }
  | { readonly kind: "phase_committed"; readonly phase: string; readonly attempt: number; readonly durationMs: number }
  | { readonly kind: "call_started" | "call_repeated"; readonly call: string; readonly generation: number }
  | {
      readonly kind: "call_answered" | "call_failed" | "call_found";
      readonly call: string;
      readonly generation: number;
      readonly durationMs: number;
    }
  /** `count` entries at once, where a sweeper marks those of dead owners. */
  | { readonly kind: "needs_recovery"; readonly reason: string; readonly count: number }
  | { readonly kind: "completed_late"; readonly status: number }
  | { readonly kind: "reconciled"; readonly found: "happened" | "not_done" | "unknown"; readonly durationMs: number }
  | {
      readonly kind: "swept";
      readonly as: "resumed" | "reconciled" | "gave_up" | "failed" | "left";
      readonly durationMs: number;
    };

/** An event of a run: what happened, and whose it is. */
export type RunEvent = RunAbout & Happening;

/** What a sweeper or relay deleted in one pass, `count: 0` included: a pass that never comes is seen by its absence. */
export interface PurgedEvent {
  readonly kind: "purged";
  readonly what: "entries" | "deliveries" | "messages" | "bodies";
  readonly count: number;
}

/** An event of a message on its way out. */
export type MessageEvent = {
  readonly tenant: string;
  readonly topic: string;
  readonly messageId: string;
  /** The `traceparent` of the request that sent it; `null`: none. */
  readonly trace: string | null;
} & (
  | { readonly kind: "message_sent" }
  | {
      readonly kind: `message_${Exclude<MessageState, "pending"> | "postponed"}`;
      readonly attempt: number;
      readonly durationMs: number;
    }
);

/** An event of a delivery: one arrival of a queue message or webhook. */
export type DeliveryEvent = {
  readonly tenant: string;
  readonly source: string;
  readonly durationMs: number;
} & (
  | {
      readonly kind:
        | "delivery_done"
        | "delivery_duplicate"
        | "delivery_rejected"
        | "delivery_out_of_order"
        | "delivery_unknown_producer"
        | "delivery_fenced";
    }
  | { readonly kind: "delivery_unsettled"; readonly why: string }
  | { readonly kind: "delivery_threw"; readonly error: string }
);

/** A webhook that was refused before it could be a delivery. Its tenant is what its route said, unproven. */
export interface WebhookRefusedEvent {
  readonly kind: "webhook_refused";
  readonly source: string;
  readonly why: string;
}

/** What `observe` is told of: one row for each thing that can happen. Told after it happened, never before. */
export type OncekeyEvent = RunEvent | PurgedEvent | MessageEvent | DeliveryEvent | WebhookRefusedEvent;

/** The kind of an event. */
export type EventKind = OncekeyEvent["kind"];

/** What each kind means, in the order of docs/observe.md. */
export const EVENT_MEANINGS: { readonly [K in EventKind]: string } = {
  began: "A request reached the engine, or a sweeper took an entry up.",
  claimed: "A new key was claimed: the operation runs for the first time.",
  resumed: "An entry whose owner left was taken over; it goes on from its recovery point.",
  waited: "A duplicate waited for another request with its key.",
  completed: "This run carried the operation out, and its outcome is stored.",
  replayed: "A stored outcome was given again.",
  mismatch: "The key belongs to another request. Nothing ran.",
  busy: "The first request still runs (409).",
  outcome_unknown: "Nobody knows yet what the first request did (409).",
  gone: "Carried out; the answer is no longer kept.",
  too_late: "First sent before anything that is still remembered. Nothing ran.",
  version_unknown: "A newer release wrote the entry (503).",
  not_begun: "A captured handler answered that it had not begun; the key is free.",
  provisional: "A captured handler answered 5xx; the key needs recovery.",
  unprotected: "The store was down, and the operation runs without it (`onStoreDown`).",
  lease_lost: "The run lost its lease or its time; another one may go on.",
  commit_unknown: "COMMIT was sent, its answer never came.",
  contention: "Serialisation failures outlasted the retries; rolled back.",
  store_unavailable: "The store could not be reached (503).",
  refused: "Refused before it ran: the key or the request is malformed, or the instance closes.",
  threw: "The operation's own code threw.",
  phase_committed: "A phase was committed.",
  call_started: "An outside call was sent for the first time.",
  call_repeated: "An outside call was sent again, by the rules of its `recover`.",
  call_answered: "An outside call gave its result.",
  call_failed: "An outside call threw or took too long: what it did is not known.",
  call_found: "A look-up found what an earlier sending did.",
  needs_recovery: "Entries were marked: only reconcile, the sweeper or an operator can tell.",
  completed_late: "A captured handler answered after its lease was lost, and nobody had taken over: stored.",
  reconciled: "`reconcile` was asked what a captured run did.",
  swept: "The sweeper is done with an entry that it took up.",
  purged: "One pass deleted what is kept no longer; also told where that was nothing.",
  message_sent: "A message was committed to the outbox.",
  message_delivered: "A message was delivered.",
  message_postponed: "A delivery failed; the message is tried again later.",
  message_dead: "A message was given up: a dead letter.",
  delivery_done: "A delivery's handler ran, and that it did is remembered.",
  delivery_duplicate: "A delivery that was taken in before. Nothing ran.",
  delivery_rejected: "A duplicate that its consumer rejects.",
  delivery_out_of_order: "A numbered delivery with a gap or an overlap. Nothing ran.",
  delivery_unknown_producer: "A numbered batch of a producer of whom nothing is known. Nothing ran.",
  delivery_fenced: "A delivery of a producer that a newer one has replaced. Nothing ran.",
  delivery_unsettled: "Nothing is known to be done; redelivery settles it.",
  delivery_threw: "A delivery's handler threw; rolled back.",
  webhook_refused: "A webhook was refused: signature, time, tenant or size.",
};
