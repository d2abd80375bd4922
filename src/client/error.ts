import type { ErrorCode } from "../core/errors.ts";

/**
 * What the client raises on its own account: `oncekey_config_invalid`, `oncekey_submission_invalid`,
 * `oncekey_store_broken`. A class of its own, because the server's one brings the whole table of codes, which a browser has
 * no use for. The message names what was wrong, never its value: no key, body, address or header's value.
 */
export class SubmissionError extends Error {
  override readonly name = "SubmissionError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Raises `oncekey_submission_invalid`. `why`: a sentence without its full stop, on what cannot be submitted. */
export function refuse(why: string, cause?: unknown): never {
  throw new SubmissionError("oncekey_submission_invalid", `${why}. Nothing was kept or sent.`, { cause });
}
