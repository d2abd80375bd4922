import { fromBase64 } from "./bytes.ts";
import { SubmissionError } from "./error.ts";
import type { StoredSettlement, StoredSubmission } from "./submission.ts";

/**
 * What a medium gave back as the submission of that name. Raises `oncekey_store_broken` where it is none, damaged, or of
 * a layout that this version does not know: whether it was carried out cannot be told from it, so it is never taken for a missing one.
 */
export function readStored(value: unknown, name: string, where: string): StoredSubmission {
  const stored = value as Partial<StoredSubmission> | null;
  // Each of these decides what is sent, or until when: an instant that is missing would end no window.
  const sound =
    stored?.form === 1 &&
    stored.name === name &&
    typeof stored.key === "string" &&
    isRequest(stored.request, stored.key) &&
    isNumber(stored.createdAt) &&
    isNumber(stored.attempts) &&
    isNumber(stored.spentMs) &&
    isNumber(stored.spentAt) &&
    (stored.firstSentAt === null || isNumber(stored.firstSentAt)) &&
    (stored.retentionMs === null || isNumber(stored.retentionMs)) &&
    (stored.settled === null || isSettlement(stored.settled));
  if (sound) return stored as StoredSubmission;
  throw new SubmissionError(
    "oncekey_store_broken",
    `${where} holds a submission that cannot be read. It was left as it is. Find out what became of it before you remove it.`,
  );
}

function isRequest(request: Partial<StoredSubmission["request"]> | undefined, key: string): boolean {
  const { method, url, headers, keyHeader, bodyBase64 } = request ?? {};
  return (
    typeof method === "string" &&
    typeof url === "string" &&
    typeof keyHeader === "string" &&
    Array.isArray(headers) &&
    (bodyBase64 === null || typeof bodyBase64 === "string") &&
    // The platform would raise for it at each attempt, which looks like an answer that was lost.
    passes(() => new Request(url, { method, headers: [...headers, [keyHeader, key]] }), bodyBase64)
  );
}

/** Whether making it does not raise, and the base64 is some. */
function passes(make: () => unknown, base64: string | null): boolean {
  try {
    return Boolean(make() && fromBase64(base64 ?? ""));
  } catch {
    return false;
  }
}

function isSettlement(settled: Partial<StoredSettlement> | undefined): boolean {
  return (
    (settled?.kind === "succeeded" || settled?.kind === "refused") &&
    isNumber(settled.at) &&
    isNumber(settled.status) &&
    Array.isArray(settled.headers) &&
    typeof settled.bodyBase64 === "string" &&
    passes(() => new Headers(settled.headers as [string, string][]), settled.bodyBase64)
  );
}

const isNumber = (value: unknown): boolean => Number.isFinite(value);

/** The same, from JSON text. */
export function parseStored(text: string, name: string, where: string): StoredSubmission {
  return readStored(parsed(text), name, where);
}

/** The value of JSON text; `null` where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
