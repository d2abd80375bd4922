import type { Message } from "./outbox.ts";
import { type Asking, ask, pathWith } from "./request.ts";

/** The states an entry can be in. */
export const STATES = ["in_progress", "needs_recovery", "released", "succeeded", "failed"] as const;

/** A state of an entry. */
export type State = (typeof STATES)[number];

/** An entry as lists show it. */
export interface Row {
  readonly id: string;
  readonly tenant: string;
  readonly client: string | null;
  readonly operation: string;
  readonly runKind: string;
  readonly state: State;
  readonly reason: string | null;
  readonly attempt: number;
  readonly status: number | null;
  /** Its ends only. */
  readonly key: string;
  readonly createdAt: string;
  readonly completedAt: string | null;
  readonly expiresAt: string | null;
  /** When the sweeper takes it up next; `null`: it does not. */
  readonly sweepAt: string | null;
}

/** One page of a list. */
export interface EntryPage {
  readonly entries: readonly Row[];
  readonly next: string | null;
}

/** What is looked for. Keys and references travel in a body, never in an address. */
export interface Search {
  readonly id?: string;
  readonly reference?: string;
  readonly key?: string;
  readonly tenant?: string;
  readonly client?: string;
  readonly operation?: string;
  readonly state?: string;
  readonly from?: string;
  readonly to?: string;
}

/** Raises `RequestError`: 409 `console_index_missing` where nothing finds it quickly. */
export function findEntries(search: Search, cursor: string | null, asking: Asking): Promise<EntryPage> {
  const { key, reference, ...rest } = search;
  if (key === undefined && reference === undefined) {
    return ask<EntryPage>(pathWith("entries", { ...rest, cursor }), asking);
  }
  const body = { ...search, ...(cursor !== null && { cursor }) };
  return ask<EntryPage>("entries/search", { ...asking, method: "POST", body });
}

/** What needs a person, oldest first. Raises `RequestError`. */
export const unresolved = (cursor: string | null, asking: Asking) =>
  ask<EntryPage>(pathWith("unresolved", { cursor }), asking);

/** Something that happened to an entry. */
export interface Item {
  readonly at: string | null;
  /** `process`: seen by the process that serves the console, and forgotten with it. */
  readonly from: "database" | "process";
  readonly kind: string;
  readonly title: string;
  readonly detail: string | null;
  readonly attempt: number | null;
  readonly weight: "plain" | "good" | "warn" | "bad";
  readonly derivedKey?: string | null;
}

/** What is told of an outcome: never its content. */
export interface OutcomeSummary {
  readonly kind: "none" | "gone" | "stored" | "provisional" | "sealed" | "hidden";
  readonly keyId?: number | null;
  readonly storedBytes?: number;
  readonly pointer?: string | null;
  readonly headerNames?: readonly string[];
  readonly bodyBytes?: number;
  readonly bodySha256?: string;
  readonly compressed?: boolean;
  readonly why?: string;
}

/** One entry, with all that is known of it. */
export interface EntryView {
  readonly entry: Row & {
    readonly version: number;
    readonly recoveryPoint: string | null;
    readonly correlation: string | null;
    readonly leaseUntil: string | null;
    readonly notBefore: string | null;
    readonly settlesAt: string | null;
    readonly tombstoneUntil: string | null;
    readonly outcome: OutcomeSummary;
  };
  readonly timeline: readonly Item[];
  readonly messages: readonly Message[];
  /** Why they are not shown, and how they would be; `null`: they are. */
  readonly messagesHidden?: string | null;
  readonly decisions: {
    readonly mayResolve: boolean;
    readonly mayRetry: boolean;
    readonly why: string | null;
    readonly attempt: number;
  };
}

/** Raises `RequestError`: 404 where there is none, or none to be seen. */
export const entryView = (id: string, asking: Asking) => ask<EntryView>(`entries/${id}`, asking);

/** What may be revealed. */
export type Revealable = "key" | "derived_keys" | "outcome";

/** Audited before it is shown. Raises `RequestError`. */
export const reveal = (id: string, what: Revealable, reason: string) =>
  ask<{ readonly value: unknown }>(`entries/${id}/reveal`, { method: "POST", body: { what, reason } });

/** A decision about an entry. */
export interface Decision {
  readonly verdict: "succeeded" | "failed" | "released";
  readonly attempt: number;
  /** `bodyText`: JSON as it was typed; `null`: no body. */
  readonly outcome?: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly bodyText: string | null;
  };
  readonly force?: boolean;
  readonly reason: string;
}

/** What became of a change. */
export interface Done {
  readonly kind: string;
  readonly message: string;
}

/** Raises `RequestError`: 409 where it was refused, with what was kept. */
export function resolve(id: string, { outcome, ...decision }: Decision): Promise<Done> {
  const text = JSON.stringify(decision);
  const bodyText = outcome === undefined ? text : `${text.slice(0, -1)},"outcome":${outcomeText(outcome)}}`;
  return ask<Done>(`entries/${id}/resolve`, { method: "POST", bodyText });
}

/** Put together by hand: a parsed body would lose digits of what every retry is going to be answered with. */
function outcomeText({ status, headers, bodyText }: NonNullable<Decision["outcome"]>): string {
  const text = JSON.stringify({ status, headers });
  return bodyText === null ? text : `${text.slice(0, -1)},"body":${bodyText}}`;
}

/** Asks the sweeper to take it up at once. Raises `RequestError`. */
export const retryNow = (id: string, reason: string) =>
  ask<Done>(`entries/${id}/retry`, { method: "POST", body: { reason } });
