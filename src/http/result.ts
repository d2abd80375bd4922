import { type ClientErrorCode, isClientError, OncekeyError } from "../core/errors.ts";
import { type AnyOutcome, letGo } from "../core/outcome.ts";
import type { AnyResult } from "../engine/run-result.ts";
import type { Answer } from "./exchange.ts";
import type { Problem, ProblemState } from "./problem.ts";
import type { Profile } from "./profile.ts";
import type { Asked } from "./profile-request.ts";
import { problemAnswer } from "./refusal.ts";
import { freshAnswer, replayAnswer } from "./replay.ts";

type Refused = Exclude<AnyResult, { readonly outcome: AnyOutcome }>;

interface Meaning {
  readonly code: ClientErrorCode;
  /** The entry's state, for results that do not name it themselves. */
  readonly state?: ProblemState;
  readonly detail: string;
}

/** Where a request that got no outcome stands, one row for each kind of result. */
const meanings: { readonly [K in Refused["kind"]]: Meaning } = {
  mismatch: {
    code: "idempotency_payload_mismatch",
    detail: "The key was first used for another request, which is untouched. Use a new key for this one.",
  },
  busy: {
    code: "idempotency_in_progress",
    state: "in_progress",
    detail:
      "The first request with this key has not finished; if its process died, another takes over when its lease ends. Send the same request again with the same key.",
  },
  unknown: {
    code: "idempotency_outcome_unknown",
    detail: "It is not known yet what the first request did; nothing was repeated. Ask again with the same key.",
  },
  gone: {
    code: "idempotency_response_unavailable",
    detail: "The request was carried out, but its answer is no longer kept. Look the result up; do not send it again.",
  },
  too_late: {
    code: "idempotency_retry_too_late",
    state: "none",
    detail:
      "The request was first sent before anything that is still remembered; nothing was run, but an earlier attempt may have been carried out. Look its result up before you send it anew with a new key.",
  },
  lease_lost: {
    code: "idempotency_lease_lost",
    state: "in_progress",
    detail: "The request lost its lease while it ran; another attempt may finish it. Ask again with the same key.",
  },
  commit_unknown: {
    code: "idempotency_commit_unknown",
    state: "in_progress",
    detail: "The connection broke while the result was committed. Ask again with the same key to learn what happened.",
  },
  contention: {
    code: "idempotency_contention",
    state: "none",
    detail:
      "Too many concurrent transactions touched the same rows; this one was rolled back. Try again with the same key.",
  },
  version_unknown: {
    code: "idempotency_version_unknown",
    detail: "The key was last used by a newer version of the service; nothing was run. Try again with the same key.",
  },
  store_unavailable: {
    code: "idempotency_store_unavailable",
    state: "none",
    detail:
      "The idempotency store cannot be reached. What was committed before is kept and is not repeated. Try again with the same key.",
  },
};

/** What a run gave, as an answer in the profile's dialect. `shown`: an outcome in the form of the route, where that is another. */
export async function resultAnswer(
  profile: Profile,
  result: AnyResult,
  asked: Asked,
  shown?: (outcome: AnyOutcome) => Promise<AnyOutcome>,
): Promise<Answer> {
  const inForm = (outcome: AnyOutcome) => shown?.(outcome) ?? outcome;
  switch (result.kind) {
    case "not_begun":
      return freshAnswer(profile, await inForm(result.outcome), asked, "not_begun");
    case "completed":
    case "provisional":
    case "unprotected":
      return freshAnswer(profile, await inForm(result.outcome), asked);
    case "replayed":
      return replayAnswer(profile, await inForm(result.outcome), asked);
    case "unknown":
      if (result.provisional !== null && profile.provisional === "replayed") {
        return replayAnswer(profile, await inForm(result.provisional), asked);
      }
      // An answer that was kept and is not shown: nobody else lets go of its bytes.
      if (result.provisional !== null) void letGo(result.provisional.body);
      return problemAnswer(profile, problemOf(result), asked);
    default:
      return problemAnswer(profile, problemOf(result), asked);
  }
}

function problemOf(result: Refused): Problem {
  const meaning = meanings[result.kind];
  const state = "state" in result ? result.state : (meaning.state ?? "none");
  return { ...meaning, state, retryAfterMs: "retryAfterMs" in result ? result.retryAfterMs : undefined };
}

const UNAVAILABLE_RETRY_MS = 1_000;

const closing: Problem = {
  code: "idempotency_closing",
  state: "none",
  detail: "This instance is shutting down; nothing was run. Try again with the same key.",
  retryAfterMs: UNAVAILABLE_RETRY_MS,
};

/** An error that a client may see, as an answer; `null` for every other one, which belongs to the framework. */
export function errorAnswer(profile: Profile, error: unknown, asked: Asked): Answer | null {
  if (error instanceof OncekeyError && error.code === "oncekey_closed") return problemAnswer(profile, closing, asked);
  if (!isClientError(error)) return null;
  const { code, message } = error;
  return problemAnswer(profile, { code, detail: message, state: "none", retryAfterMs: retryAfterOf(error) }, asked);
}

function retryAfterOf(error: OncekeyError): number | undefined {
  const comesBack = ["idempotency_store_unavailable", "idempotency_version_unknown", "idempotency_contention"];
  return error.retryAfterMs ?? (comesBack.includes(error.code) ? UNAVAILABLE_RETRY_MS : undefined);
}
