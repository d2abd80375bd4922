import type { Answer } from "./history.ts";

/**
 * What an answer says. `done` and `refused` are final: the effect exists, or the business said no. `mismatch`: the key
 * belongs to another payload. `come_back`: nothing is said about the end. `strange`: no contract allows it.
 */
export type Meaning = "done" | "refused" | "mismatch" | "come_back" | "strange";

const REFUSALS: ReadonlyMap<string, number> = new Map([
  ["card_declined", 402],
  ["refund_exceeds_charge", 422],
  ["charge_not_settled", 422],
]);
const COME_BACK = new Set(["idempotency_in_progress", "idempotency_outcome_unknown"]);

/** Judges an answer by the contract of the example. */
export function meaningOf({ status, body, retryAfter }: Answer): Meaning {
  const code = codeOf(body);
  if (status === 201) return code === null ? "done" : "strange";
  if (code === null) return "strange";
  if (REFUSALS.get(code) === status) return "refused";
  if (status === 422 && code === "idempotency_payload_mismatch") return "mismatch";
  if (status === 409 && COME_BACK.has(code)) return retryAfter === null ? "strange" : "come_back";
  if (status === 503 && code.startsWith("idempotency_")) return retryAfter === null ? "strange" : "come_back";
  // The handler met a fault of ours: rolled back, or kept as unfinished. The same key may come again.
  return status === 500 && code === "internal_error" ? "come_back" : "strange";
}

/** True where the answer ends a submission. */
export function isFinal(answer: Answer): boolean {
  const meaning = meaningOf(answer);
  return meaning !== "come_back" && meaning !== "strange";
}

function codeOf(body: string): string | null {
  try {
    const { code } = JSON.parse(body) as { readonly code?: unknown };
    return typeof code === "string" ? code : null;
  } catch {
    return "not JSON";
  }
}
