import { jsonOf, storedAnswer, typeOf } from "./answer.ts";
import type { AttemptEnd } from "./attempt.ts";
import type { PauseWhy } from "./options.ts";
import type { ClientResponse, StoredSubmission, SubmissionResult, UnknownWhy } from "./submission.ts";

/** The results that an attempt can lead to. */
export type AttemptResult = SubmissionResult & { readonly kind: "succeeded" | "refused" | "unknown" };

/** What an attempt means. */
export interface Verdict {
  /** The result, where this was the last attempt. */
  readonly result: AttemptResult;
  /** Why the same bytes are to be sent again; absent: they are not. */
  readonly again?: PauseWhy | undefined;
  /** Whether it may have been carried out. One that was not tells nothing of an earlier attempt. */
  readonly begun: boolean;
  /** The server does not know itself. */
  readonly dark?: boolean;
}

/**
 * Status and body of what tells of the work. The others may be said in front of it (sign-in, routing, limits, conditions, a
 * proxy's page), or because of an earlier attempt (a conflict); or they tell of the key, but for one: that the answer is no
 * longer kept.
 */
const OF_THE_WORK = /^(5|4(00|02|08|22)(?!\s*<[!h]|.*idempotency_))|idempotency_response_unavailable/is;
/** Ours, Stripe's, PayPal's and Adyen's words for a request that still runs, or of which the server knows no end. */
const OPEN = /"(idempotency_(in_progress|key_in_use|\w+_unknown)|PREVIOUS_REQUEST_IN_PROGRESS|errorCode": ?"704)"/;
/** Nothing is wrong with the request; it may be sent again, with other credentials or later. */
const LATER = /^4(01|03|07|08|25|29)/;

/** Judges how an attempt of a submission ended. */
export function judge(end: AttemptEnd, { request }: StoredSubmission): Verdict {
  if (typeof end === "string") {
    const begun = end !== "unsent";
    if (end === "redirected") return { result: unknown(end, null), begun };
    return { result: unknown("window_over", null), again: begun ? end : "no_answer", begun };
  }
  const { status, body } = end;
  const known = { response: end, replayed: end.header("idempotent-replayed") === "true" };
  if (status >= 400) return judgeFailure(known);
  const html = request.headers.some(([name, value]) => name === "accept" && /html/.test(value));
  // A page for people is what a login, a captive portal or a wrong address answers; a problem contradicts a 2xx.
  const strange = body.length > 0 && (html ? /problem\+/ : /html|problem\+/).test(typeOf(end));
  const result: AttemptResult =
    status < 200 || strange ? unknown("not_understood", end) : { kind: "succeeded", ...known };
  return { result, begun: true };
}

function judgeFailure(known: { readonly response: ClientResponse; readonly replayed: boolean }): Verdict {
  const { response } = known;
  const { status, header } = response;
  const body = jsonOf(response) as
    | { code?: unknown; retry?: unknown; error?: { code?: unknown } | null }
    | null
    | undefined;
  const said = body?.code ?? body?.error?.code;
  const code = typeof said === "string" ? said : null;
  // Only our own problems (RFC 9457) are asked for advice.
  const ours = /problem\+json/.test(typeOf(response)) && /^idempotency_/.test(`${code}`);
  const advised = ADVICE.find((one) => ours && one === body?.retry);
  const stripe = header("stripe-should-retry");
  const hinted = stripe === "true" || header("transient-error") === "true";
  const again = stripe === "false" ? undefined : againWhy(response, advised, hinted);
  const retry = advised ?? (LATER.test(`${status}`) ? "same_key" : "new_key");
  return {
    // A server error that will stay was stored as it was, so nobody knows how far the work came.
    result:
      status >= 500 ? unknown("in_the_dark", response) : { kind: "refused", ...known, code, certain: true, retry },
    again,
    begun: again === "in_progress" || OF_THE_WORK.test(status + response.text()),
    dark: /_unknown$|lease_lost/.test(`${code}`),
  };
}

function againWhy(
  { status, header, text }: ClientResponse,
  advised: Advice | undefined,
  hinted: boolean,
): PauseWhy | undefined {
  // After a server error no advice can make another key safe.
  if (status >= 500) return "server_error";
  const same = hinted || advised === "same_key";
  if (advised && !same) return;
  if (OPEN.test(text()) || (status === 409 && (same || header("retry-after") !== null))) return "in_progress";
  if (status === 429) return "too_many";
  return hinted || status === 408 || status === 425 ? "server_error" : undefined;
}

const ADVICE = ["same_key", "new_key", "never"] as const;
type Advice = (typeof ADVICE)[number];

/** Nobody knows; an attempt may have been carried out. */
export function unknown(why: UnknownWhy, response: ClientResponse | null, sent = true): AttemptResult {
  return { kind: "unknown", why, response, sent };
}

/** The result of a submission that is settled; `null` where it is not. Read from its answer, as it was the first time. */
export function storedResult(record: StoredSubmission): AttemptResult | null {
  return record.settled && judge(storedAnswer(record.settled), record).result;
}
