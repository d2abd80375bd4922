import { OncekeyError } from "../errors.ts";

const NOTHING_KEPT = "Nothing was run or stored.";

/** Refuses a request that cannot be read: `what` says what is wrong with it, never what it holds. */
export function refuseRequest(what: string): never {
  throw new OncekeyError(
    "idempotency_request_invalid",
    `${what}. ${NOTHING_KEPT} Correct the request and send it again with the same key.`,
  );
}

/** Refuses a media type, charset or coding that is not read here (415). */
export function refuseCoding(what: string): never {
  throw new OncekeyError(
    "idempotency_request_unsupported",
    `${what}. ${NOTHING_KEPT} Send the request in a supported form with the same key.`,
  );
}

/** Decodes UTF-8 strictly; a BOM stays as text. `what` names the text in the error. */
export function decodeText(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refuseRequest(`${what} is not valid UTF-8`);
  }
}

/** Refuses U+0000 unless allowed: PostgreSQL's text and jsonb cannot store it. */
export function checkNul(text: string, allowNul: boolean, what: string): void {
  if (!allowNul && text.includes("\0"))
    refuseRequest(`${what} holds the NUL character (U+0000), which cannot be stored`);
}
