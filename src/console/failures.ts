import { OncekeyError } from "../core/errors.ts";
import { StoreFailure, type StoreFailureKind } from "../core/store.ts";
import { sqlState } from "../stores/postgres/errors.ts";
import { type Answered, jsonAnswer } from "./exchange.ts";
import { Refusal } from "./refusal.ts";

const STORE: { readonly [K in StoreFailureKind]?: Refusal } = {
  timeout: new Refusal(
    422,
    "console_too_broad",
    "The database did not find it within 3 seconds, and was told to stop. Nothing was changed; narrow the search by time, tenant or operation.",
  ),
  contention: new Refusal(
    409,
    "console_busy",
    "Somebody else works on it at this moment. Nothing was changed; try again.",
  ),
  unavailable: new Refusal(503, "console_database_unavailable", "The database cannot be reached. Try again."),
  commit_unknown: new Refusal(
    503,
    "console_commit_unknown",
    "It is not known whether the change was stored. Look again before you repeat it.",
  ),
};

const LACKING = new Refusal(
  403,
  "console_role_lacks",
  'The console\'s database role may not do this. Nothing was changed. Grant it what printGrants({ operator: "…" }) prints, or keep the console read-only.',
);

/** What an error is answered with; `null`: it is a bug, or something of the application's. */
export function refusalOf(error: unknown): Refusal | null {
  if (error instanceof Refusal) return error;
  if (error instanceof StoreFailure) return STORE[error.kind] ?? null;
  if (sqlState(error) === "42501") return LACKING;
  if (error instanceof OncekeyError && error.code === "oncekey_schema_missing") {
    return new Refusal(503, "console_schema_missing", "The database has no Oncekey schema. Run oncekey migrate.");
  }
  if (sqlState(error) === "42P01" || sqlState(error) === "42703") {
    return new Refusal(
      503,
      "console_schema_old",
      "The database's schema is older than this console. Run oncekey migrate.",
    );
  }
  return null;
}

/** The answer to a request that failed. What is no refusal is told to `onError` only: its message may hold anything. */
export function failureAnswer(error: unknown, onError: (error: unknown) => void): Answered {
  const refusal = refusalOf(error);
  if (refusal === null) {
    onError(error);
    const message = "The console failed; the service's log says how. Look before you repeat a change.";
    return jsonAnswer(500, { error: { code: "console_failed", message } });
  }
  const { status, code, message, more, retryAfterS } = refusal;
  const headers: Answered["headers"] = retryAfterS === null ? [] : [["retry-after", String(retryAfterS)]];
  return jsonAnswer(status, { error: { code, message, ...more } }, headers);
}
