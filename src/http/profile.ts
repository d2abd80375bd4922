import type { ClientErrorCode } from "../core/errors.ts";
import type { HeaderLine } from "../core/outcome.ts";
import type { Settings } from "../engine/settings.ts";
import type { Problem } from "./problem.ts";
import type { Asked, ProfileRequest } from "./profile-request.ts";

/**
 * An HTTP dialect, as data: where the key travels, what is compared and kept, and what a client reads. Header names in
 * lower case. Another dialect is another file under `profiles/` and one row in its registry; whoever adds one holds it
 * against the vendor's page.
 */
export interface Profile {
  readonly name: string;
  readonly key: KeyRule;
  /** What an instance of this dialect does unless its options say otherwise. */
  readonly defaults: ProfileDefaults;
  /**
   * Sent with every answer that comes from a stored outcome, waiters included, and never with the executor's; `null`: the
   * dialect has no such sign.
   */
  readonly replayMarker: HeaderLine | null;
  /**
   * The header that names the instant of the first attempt, read where late retries are refused. `required`: key and instant
   * come both or not at all. Default: `idempotency-first-sent`, not required.
   */
  readonly firstSent?: FirstSentRule;
  /** What a client gets while nobody knows what the first request did but a 5xx of it was kept. */
  readonly provisional: "refused" | "replayed";
  /**
   * GraphQL dialects: the member of a field's payload that takes the refusals whose `kind` is its name, in place of an
   * error of the request. Default: no refusal is part of a payload.
   */
  readonly payloadErrors?: string;
  /** Media type of the refusals. */
  readonly mediaType: string;
  /** Every refusal of ours, in the dialect's terms. */
  readonly refusals: Readonly<Record<ClientErrorCode, RefusalRow>>;
  /** The body of a refusal. */
  write(row: RefusalRow, problem: Problem, asked: Asked): string;
  /** Header lines that the dialect adds to an answer. Default: none. */
  headers?(answered: Answered, asked: Asked): readonly HeaderLine[];
  /** The region, zone or queue within which this request's key counts. Default: keys count everywhere. */
  partition?(request: ProfileRequest): string | null;
}

/** Carries the retention in seconds, where the instance publishes it. No vendor has one: ours, in every dialect. */
export const RETENTION_HEADER = "idempotency-retention";

/** Where the instant of the first attempt stands. */
export interface FirstSentRule {
  readonly header: string;
  readonly required: boolean;
}

const OWN_FIRST_SENT: FirstSentRule = { header: "idempotency-first-sent", required: false };

/** The dialect's rule for the instant of the first attempt, or else ours. */
export function firstSentRule({ firstSent = OWN_FIRST_SENT }: Profile): FirstSentRule {
  return firstSent;
}

/** Where the key travels, and what it looks like. Its length is the instance's `maxKeyLength`. */
export interface KeyRule {
  readonly place: KeyPlace;
  /** Whether a request without a key is refused, unless its binding says otherwise. */
  readonly required: boolean;
  /** What a key must match beside the rules of every key; `says` completes "the key must be …". */
  readonly syntax?: { readonly pattern: RegExp; readonly says: string };
  /** The one spelling of keys that may be written in several, such as the case of a UUID. Default: as it was sent. */
  spelling?(key: string): string;
  /** Methods whose requests run as if they had no key. */
  readonly ignoredOn?: readonly string[];
  /** The key of a request that brings none and need not; `null` or no such rule: it runs once for itself. */
  otherwise?(request: ProfileRequest): string | null;
}

/** One header, or a member of the body (JSON or form) or else of the query, under the first of its names that is there. */
export type KeyPlace =
  | { readonly in: "header"; readonly name: string }
  | { readonly in: "member"; readonly names: readonly string[] };

/** Options of the instance that a dialect has an opinion on. */
export type ProfileDefaults = Partial<
  Pick<
    Settings,
    | "compare"
    | "keySpace"
    | "afterFailure"
    | "refuseLateRetries"
    | "retentionMs"
    | "clientRetryWindowMs"
    | "waitMs"
    | "maxKeyLength"
  >
>;

/** One refusal in a dialect's terms. */
export interface RefusalRow {
  readonly status: number;
  /** The vendor's name for the error. */
  readonly error: string;
  /** The vendor's class of errors, where it has two names for one. */
  readonly kind?: string;
  /** What is said to people. Default: the problem's own detail. */
  readonly message?: (asked: Asked) => string;
}

/**
 * An answer, as the lines that a dialect adds to it depend on it. `own`: the request's that carried the operation out;
 * `not_begun`: a handler's that says it has done nothing, of which nothing is kept.
 */
export type Answered =
  | { readonly kind: "own" | "not_begun" | "replayed"; readonly status: number }
  | { readonly kind: "refused"; readonly status: number; readonly code: ClientErrorCode };
