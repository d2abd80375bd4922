import type { Completion } from "../core/completion.ts";
import { OncekeyError } from "../core/errors.ts";
import type { AnyOutcome } from "../core/outcome.ts";
import { headerAllowlist, isSendable, storableHeaders } from "../core/outcome.ts";
import type { OperationResponse, Rejection } from "../core/response.ts";
import { type EngineContext, keeping } from "./context.ts";
import type { Operation } from "./operation.ts";
import { storeOutcome } from "./stored-outcome.ts";

/** What a handler's return value means. */
export interface SettledResponse {
  /** With all the headers the handler set. */
  readonly outcome: AnyOutcome;
  readonly state: "succeeded" | "failed";
  /** The business rows must be rolled back before the outcome is stored. */
  readonly rollsBack: boolean;
}

/** Leaves a transaction whose business rows a rejection rolls back; the rejection is then stored in a second one. */
export class RollBackRejection extends Error {
  readonly settled: SettledResponse;
  constructor(settled: SettledResponse) {
    super("rejected");
    this.settled = settled;
  }
}

/** Reads a handler's return value. Raises `oncekey_response_invalid` and `oncekey_reject_required`. */
export function settleResponse(returned: OperationResponse | Rejection): SettledResponse {
  if (returned?.kind === "rejection") {
    return { outcome: outcomeOf(returned.response), state: "failed", rollsBack: !returned.keepRows };
  }
  if (returned?.kind !== "response" || !Number.isInteger(returned.status)) {
    throw new OncekeyError(
      "oncekey_response_invalid",
      "The operation returned something that is no response. Everything was rolled back, nothing is stored. Return ok(), created(), respond() or reject().",
    );
  }
  if (returned.status >= 400) {
    throw new OncekeyError(
      "oncekey_reject_required",
      `The operation returned status ${returned.status} without reject(). Everything was rolled back, nothing is stored. Use reject(status, problem), with { keepRows: true } where its rows should stay.`,
    );
  }
  return { outcome: outcomeOf(returned), state: "succeeded", rollsBack: false };
}

/** What is stored of an outcome of the entry `id`: the allowed headers only. Raises as {@link storeOutcome}. */
export async function completionOf(
  context: EngineContext,
  operation: Operation,
  id: Uint8Array,
  { state, outcome }: Pick<SettledResponse, "state" | "outcome">,
): Promise<Completion> {
  const stored = await storeOutcome(context, operation, id, storedForm(operation, outcome));
  return { state, outcome: stored, ...keeping(context, operation, state) };
}

/** The outcome as every later retry will see it. */
export function storedForm(operation: Operation, outcome: AnyOutcome): AnyOutcome {
  const allowed = headerAllowlist(operation.definition.replayHeaders);
  return { ...outcome, headers: storableHeaders(outcome.headers, allowed) };
}

function outcomeOf({ status, headers, body }: OperationResponse): AnyOutcome {
  if (status < 200 || status > 599 || !headers.every(isSendable)) {
    throw new OncekeyError(
      "oncekey_response_invalid",
      "The operation returned a status outside 200 to 599, or a header that HTTP cannot carry. Everything was rolled back, nothing is stored. Encode the header's value (encodeURI for Location).",
    );
  }
  return { status, headers, body };
}
